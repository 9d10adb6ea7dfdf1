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

const entryOf = (id: string, consent: ConsentKey): Entry => [id, keyOf(consent)]

const indexId = (principal: string): string => `of-${hashSecret(principal)}`

/** The grants of each principal: how many there may be, and which consent was given before. */
export class PrincipalGrants {
  readonly #index: RecordChanges<readonly Entry[]>

  constructor(store: ChangeableStore) {
    this.#index = new RecordChanges(store, KIND)
  }

  /** Ids of all grants of a principal, also of those that have expired, the newest first. */
  async all(principal: string): Promise<readonly string[]> {
    return ((await this.#index.read(indexId(principal))) ?? []).map(([id]) => id).reverse()
  }

  /** Ids of the grants that were given for the same, the newest first. */
  async find(principal: string, consent: ConsentKey): Promise<readonly string[]> {
    const key = keyOf(consent)
    const entries = (await this.#index.read(indexId(principal))) ?? []
    return entries.flatMap(([id, each]) => (each === key ? [id] : [])).reverse()
  }

  /**
   * Adds a grant; returns the ids of the oldest ones if there are too many now: they are to be ended. `isLive` is asked at the limit,
   * because grants that expire are not removed from the list.
   */
  async add(
    principal: string,
    id: string,
    consent: ConsentKey,
    isLive: (id: string) => Promise<boolean>,
  ): Promise<readonly string[]> {
    const before = (await this.#index.read(indexId(principal))) ?? []
    const gone = new Set<string>()
    if (before.length >= MOST) for (const [each] of before) if (!(await isLive(each))) gone.add(each)
    return this.#index.change(indexId(principal), (known = []) => {
      const entries = [...known.filter(([each]) => each !== id && !gone.has(each)), entryOf(id, consent)]
      return {
        next: { body: entries.slice(-MOST), expires: Date.now() + IDLE_MS },
        result: entries.slice(0, -MOST).map(([each]) => each),
      }
    })
  }

  /** The grant is used: the list does not expire before it. */
  keep(principal: string, id: string, consent: ConsentKey): Promise<void> {
    return this.#index.change(indexId(principal), (known = []) => {
      const entries = known.some(([each]) => each === id) ? known : [...known, entryOf(id, consent)]
      return { next: { body: entries, expires: Date.now() + IDLE_MS }, result: undefined }
    })
  }

  /** The grant has ended. */
  remove(principal: string, id: string): Promise<void> {
    return this.#index.change(indexId(principal), (known = []) => {
      const entries = known.filter(([each]) => each !== id)
      if (entries.length === known.length) return { result: undefined }
      if (entries.length === 0) return { next: 'removed', result: undefined }
      return { next: { body: entries, expires: Date.now() + IDLE_MS }, result: undefined }
    })
  }
}
