import type { StateStore } from '../../stores/state/state-store.ts'
import { hashSecret } from '../token.ts'
import { withoutLoopbackPort } from './redirect-uris.ts'

const KIND = 'grant'
const MOST = 200 // grants of one principal
const IDLE_MS = 31 * 24 * 60 * 60_000 // longer than any of the grants
const ATTEMPTS = 20

/** The id of a grant, and the hash of what it was given for. */
type Entry = readonly [id: string, key: string]

type IndexStore = Pick<StateStore, 'create' | 'read' | 'take' | 'write'>

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
  readonly #store: IndexStore

  constructor(store: IndexStore) {
    this.#store = store
  }

  /** Ids of all grants of a principal, also of those that have ended, the newest first. */
  async all(principal: string): Promise<readonly string[]> {
    const held = await this.#store.read(KIND, indexId(principal))
    return (held ? entriesIn(held.body) : []).map(([id]) => id).reverse()
  }

  /** Ids of the grants that were given for the same, the newest first. */
  async find(principal: string, consent: ConsentKey): Promise<readonly string[]> {
    const held = await this.#store.read(KIND, indexId(principal))
    const key = keyOf(consent)
    return (held ? entriesIn(held.body) : []).flatMap(([id, each]) => (each === key ? [id] : [])).reverse()
  }

  /** Adds a grant; returns the ids of the oldest ones if there are too many now: they are to be ended. */
  async add(principal: string, id: string, consent: ConsentKey): Promise<readonly string[]> {
    const entry: Entry = [id, keyOf(consent)]
    const index = indexId(principal)
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const options = { expires: Date.now() + IDLE_MS }
      const taken = await this.#store.take(KIND, index)
      if (taken.kind === 'none') {
        const isCreated = await this.#store.create(KIND, index, encode([entry]), options).then(
          () => true,
          () => false, // by another request, just now
        )
        if (isCreated) return []
      }
      if (taken.kind !== 'mine') continue
      const entries = [...entriesIn(taken.held.body).filter(([each]) => each !== id), entry]
      if (await this.#store.write(taken.held, encode(entries.slice(-MOST)), options))
        return entries.slice(0, -MOST).map(([each]) => each)
    }
    throw new Error('the grants of the principal are being changed by too many requests at once')
  }
}

const encode = (entries: readonly Entry[]): Buffer => Buffer.from(JSON.stringify(entries))
const entriesIn = (body: Buffer): readonly Entry[] => JSON.parse(body.toString()) as readonly Entry[]
