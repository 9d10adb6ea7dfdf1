import { type ChangeableStore, RecordChanges } from '../../stores/state/record-changes.ts'
import { hashSecret } from '../token.ts'
import { withoutLoopbackPort } from './redirect-uris.ts'

const KIND = 'grant'
const MOST = 200 // grants of one principal
const IDLE_MS = 31 * 24 * 60 * 60_000 // longer than any of the grants

/** The id of a grant, and the hash of what it was given for. */
type Entry = readonly [id: string, key: string]

/** What a visitor consents to, besides scopes. */
export interface ConsentKey {
  readonly client: string
  readonly redirectUri: string
  readonly workspace?: string | undefined
}

const keyOf = ({ client, redirectUri, workspace }: ConsentKey): string =>
  hashSecret(JSON.stringify([client, withoutLoopbackPort(redirectUri), workspace ?? null])).slice(0, 32)

const indexId = (principal: string): string => `of-${hashSecret(principal)}`

/** The grants of each principal: how many there may be, and which consent was given before. */
export class PrincipalGrants {
  readonly #index: RecordChanges<readonly Entry[]>

  constructor(store: ChangeableStore) {
    this.#index = new RecordChanges(store, KIND)
  }

  /** Ids of all grants of a principal, also of those that have ended, the newest first. */
  async all(principal: string): Promise<readonly string[]> {
    return ((await this.#index.read(indexId(principal))) ?? []).map(([id]) => id).reverse()
  }

  /** Ids of the grants that were given for the same, the newest first. */
  async find(principal: string, consent: ConsentKey): Promise<readonly string[]> {
    const key = keyOf(consent)
    const entries = (await this.#index.read(indexId(principal))) ?? []
    return entries.flatMap(([id, each]) => (each === key ? [id] : [])).reverse()
  }

  /** Adds a grant; returns the ids of the oldest ones if there are too many now: they are to be ended. */
  add(principal: string, id: string, consent: ConsentKey): Promise<readonly string[]> {
    const entry: Entry = [id, keyOf(consent)]
    return this.#index.change(indexId(principal), (known = []) => {
      const entries = [...known.filter(([each]) => each !== id), entry]
      return {
        next: { body: entries.slice(-MOST), expires: Date.now() + IDLE_MS },
        result: entries.slice(0, -MOST).map(([each]) => each),
      }
    })
  }
}
