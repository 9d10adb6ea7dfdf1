import { boundedKey } from '../../protocol/capabilities.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'

const MOST_CALLERS = 500
const MOST_EACH = 1000
const MOST_SESSIONS = 10_000
const FOREVER = Number.POSITIVE_INFINITY
const LONGEST = 64 // characters of a reference; a longer one is replaced by its hash

/** Identifies a caller in caches. Undefined for an anonymous caller without a session: nothing is cached for it. */
export const callerKey = ({ principal, session }: Caller): string | undefined => {
  if (principal !== undefined) return `p${principal}`
  return session === undefined ? undefined : `s${session}`
}

export const shortReference = (reference: string): string => boundedKey(reference, LONGEST)

/**
 * Which server sent a caller a reference (a link, a task) or an app, and which servers a session has used. Keeps server
 * names, so that it can outlive a change of the configuration.
 */
export class Provenance {
  readonly #references = new BoundedCache<BoundedCache<string>>(MOST_CALLERS, FOREVER)
  readonly #apps = new BoundedCache<string>(MOST_CALLERS, FOREVER)
  readonly #sessions = new BoundedCache<Set<string>>(MOST_SESSIONS, FOREVER)

  record(caller: Caller, reference: string, server: string): void {
    const key = callerKey(caller)
    if (key === undefined) return
    const references = this.#references.get(key) ?? new BoundedCache<string>(MOST_EACH, FOREVER)
    references.set(shortReference(reference), server)
    this.#references.set(key, references)
  }

  serverOf(caller: Caller, reference: string): string | undefined {
    const key = callerKey(caller)
    return key === undefined ? undefined : this.#references.get(key)?.get(shortReference(reference))
  }

  recordApp(caller: Caller, server: string): void {
    const key = callerKey(caller)
    if (key !== undefined) this.#apps.set(key, server)
  }

  /** The server of the app that the caller read last. */
  appServerOf(caller: Caller): string | undefined {
    const key = callerKey(caller)
    return key === undefined ? undefined : this.#apps.get(key)
  }

  recordSession(session: string, server: string): void {
    const servers = this.#sessions.get(session)
    if (servers) servers.add(server)
    else this.#sessions.set(session, new Set([server]))
  }

  /** The servers that a session has used. */
  serversOf(session: string): ReadonlySet<string> {
    return this.#sessions.get(session) ?? new Set()
  }
}
