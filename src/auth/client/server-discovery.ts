import type { DeclaredEndpoints } from '../../protocol/oauth.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import type { GuardedFetch } from '../fetch/guarded-fetch.ts'
import type { BearerChallenge } from './challenge.ts'
import { type DiscoveredIssuer, discover } from './discover.ts'
import { LoginProblem } from './messages.ts'
import type { LoginServer } from './server-tokens.ts'

const FOUND_MS = 60_000
const FAILED_MS = 5000 // many calls fail at once

interface RecentDiscovery {
  readonly resourceMetadata: string | undefined // of the challenge
  readonly found: DiscoveredIssuer | LoginProblem
  readonly at: number
  readonly until: number
}

/** The authorization server of one server: found once for calls that need it at about the same time. */
export class ServerDiscovery {
  readonly #fetch: GuardedFetch
  readonly #server: LoginServer
  readonly #searching = new SingleFlight<DiscoveredIssuer>()
  #recent: RecentDiscovery | undefined
  #declared: DeclaredEndpoints | undefined

  constructor(fetch: GuardedFetch, server: LoginServer) {
    this.#fetch = fetch
    this.#server = server
  }

  /** What the server's own description says; used if there is no metadata. */
  declare(endpoints: DeclaredEndpoints): void {
    this.#declared = endpoints
    this.#recent = undefined
  }

  /** Rejects with LoginProblem. */
  async find(challenge: BearerChallenge | undefined): Promise<DiscoveredIssuer> {
    const recent = this.#recent
    const isRecent = recent?.resourceMetadata === challenge?.resourceMetadata && Date.now() < (recent?.until ?? 0)
    if (recent && isRecent) {
      if (recent.found instanceof LoginProblem) throw recent.found
      return recent.found
    }
    return this.#searching.run(() => this.#search(challenge))
  }

  /** The server refuses a token that was issued then: its metadata may have changed before that. */
  forget(issued: number): void {
    if (!this.#searching.running && this.#recent && this.#recent.at < issued) this.#recent = undefined
  }

  async #search(challenge: BearerChallenge | undefined): Promise<DiscoveredIssuer> {
    const { url, oauth } = this.#server
    const at = Date.now()
    const keep = (found: DiscoveredIssuer | LoginProblem, ms: number): void => {
      this.#recent = { resourceMetadata: challenge?.resourceMetadata, found, at, until: Date.now() + ms }
    }
    try {
      const found = await discover(this.#fetch, { url, issuer: oauth?.issuer, declared: this.#declared }, challenge)
      keep(found, FOUND_MS)
      return found
    } catch (error) {
      if (error instanceof LoginProblem) keep(error, FAILED_MS)
      throw error
    }
  }
}
