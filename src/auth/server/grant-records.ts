import type { Held, StateStore } from '../../stores/state/state-store.ts'
import type { Subject } from './access.ts'
import type { RefreshChain } from './grant-tokens.ts'

/** A record of kind `grant`: what a visitor has allowed a client. Secrets are stored as hashes. */
export interface GrantRecord {
  readonly client: string
  readonly clientName?: string | undefined
  readonly created: number
  readonly redirectUri: string
  readonly subject: Subject
  readonly principal: string
  readonly workspace?: string | undefined // undefined: every workspace that the visitor may use
  readonly scopes: readonly string[]
  readonly seed: string // successors of refresh tokens are derived with it
  readonly code: CodeRecord
  readonly refresh?: RefreshChain | undefined // undefined: the code was not redeemed yet
  readonly access: readonly AccessTokenRecord[]
}

/** The code that the grant began with. */
interface CodeRecord {
  readonly hash: string
  readonly challenge: string // PKCE
  readonly isUsed: boolean
}

export interface AccessTokenRecord {
  readonly hash: string
  readonly issued: number
  readonly expires: number
  readonly scopes: readonly string[]
}

export type GrantStore = Pick<StateStore, 'create' | 'read' | 'take' | 'write' | 'remove' | 'shared'>

const KIND = 'grant'
const ATTEMPTS = 20 // to change a record that other requests change at the same time

/** What to do with a grant: write `next` if there is one, and return the result. */
export type GrantChange<T> =
  | { readonly next?: undefined; readonly result: T }
  | { readonly next: GrantRecord; readonly expires: number; readonly result: T }

/** Reads and changes grants; changes of one grant, in whatever process, follow each other. */
export class GrantRecords {
  readonly #store: GrantStore

  constructor(store: GrantStore) {
    this.#store = store
  }

  /** Rejects with a StateError `exists` if there is one of that id. */
  async create(id: string, grant: GrantRecord, expires: number): Promise<void> {
    await this.#store.create(KIND, id, encode(grant), { expires, durable: true })
  }

  async read(id: string): Promise<GrantRecord | undefined> {
    const held = await this.#store.read(KIND, id)
    return held && decode(held)
  }

  /** Undefined if there is no such grant. `decide` may run several times. */
  async change<T>(id: string, decide: (grant: GrantRecord) => GrantChange<T>): Promise<T | undefined> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const taken = await this.#store.take(KIND, id)
      if (taken.kind !== 'mine') return undefined
      const change = decide(decode(taken.held))
      if (!change.next) return change.result
      const options = { expires: change.expires, durable: true }
      if (await this.#store.write(taken.held, encode(change.next), options)) return change.result
    }
    throw new Error('the grant is being changed by too many requests at once')
  }

  /** False if there was none. */
  async remove(id: string): Promise<boolean> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const taken = await this.#store.take(KIND, id)
      if (taken.kind !== 'mine') return attempt > 0
      await this.#store.remove(taken.held)
    }
    return true
  }
}

const encode = (grant: GrantRecord): Buffer => Buffer.from(JSON.stringify(grant))
const decode = ({ body }: Held): GrantRecord => JSON.parse(body.toString()) as GrantRecord
