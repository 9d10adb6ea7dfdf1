import { RecordChanges } from '../../stores/state/record-changes.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
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

export type GrantStore = Pick<StateStore, 'create' | 'read' | 'list' | 'take' | 'write' | 'remove' | 'shared'>

const KIND = 'grant'

/** What to do with a grant: write `next` if there is one, and return the result. */
export type GrantChange<T> =
  | { readonly next?: undefined; readonly result: T }
  | { readonly next: GrantRecord; readonly expires: number; readonly result: T }

/** Reads and changes grants; changes of one grant, in whatever process, follow each other. */
export class GrantRecords {
  readonly #store: GrantStore
  readonly #changes: RecordChanges<GrantRecord>

  constructor(store: GrantStore) {
    this.#store = store
    this.#changes = new RecordChanges(store, KIND)
  }

  /** Rejects with a StateError `exists` if there is one of that id. */
  async create(id: string, grant: GrantRecord, expires: number): Promise<void> {
    await this.#store.create(KIND, id, Buffer.from(JSON.stringify(grant)), { expires, durable: true })
  }

  read(id: string): Promise<GrantRecord | undefined> {
    return this.#changes.read(id)
  }

  /** Grants of all principals whose codes were redeemed, in no order. */
  async all(limit: number): Promise<readonly { readonly id: string; readonly grant: GrantRecord }[]> {
    const records = await this.#store.list(KIND, limit)
    return records.flatMap(({ id, body }) => {
      const grant = JSON.parse(body.toString()) as Partial<GrantRecord> // indexes of principals are of this kind, too
      return grant.refresh && grant.access ? { id, grant: grant as GrantRecord } : []
    })
  }

  /** Undefined if there is no such grant. `decide` may run several times. */
  change<T>(id: string, decide: (grant: GrantRecord) => GrantChange<T>): Promise<T | undefined> {
    return this.#changes.change<T | undefined>(id, grant => {
      if (!grant) return { result: undefined }
      const change = decide(grant)
      return change.next
        ? { result: change.result, next: { body: change.next, expires: change.expires } }
        : { result: change.result }
    })
  }

  /** Returns the removed grant; undefined if there was none. */
  remove(id: string): Promise<GrantRecord | undefined> {
    return this.#changes.change(id, grant => (grant ? { result: grant, next: 'removed' } : { result: undefined }))
  }
}
