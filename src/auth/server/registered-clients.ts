import type { Held, StateStore } from '../../stores/state/state-store.ts'
import { StateError } from '../../stores/state/state-store.ts'
import { hashSecret } from '../token.ts'
import type { ClientMetadata, OAuthClient } from './client-metadata.ts'

/** A record of kind `oauth-client`. */
interface ClientRecord extends ClientMetadata {
  readonly registeredAt: number
  readonly isUsed: boolean // a visitor has allowed it something
  readonly until: number
}

interface Registration {
  readonly id: string
  readonly registeredAt: number
  readonly isNew: boolean
}

/** Clients without a consent yet, oldest first. */
type UnusedIndex = readonly string[]

const KIND = 'oauth-client'
const INDEX = 'unused'
const MOST_UNUSED = 1000
const DAY_MS = 24 * 60 * 60_000
const UNUSED_MS = 30 * DAY_MS
const USED_MS = 365 * DAY_MS
const ATTEMPTS = 20

type ClientStore = Pick<StateStore, 'create' | 'read' | 'take' | 'write' | 'remove'>

/**
 * Clients that have registered themselves. Equal registrations are one client: it has no secret, so that nothing but its redirect
 * URIs protects it. Beyond 1,000 clients that no visitor has used, the oldest of them is forgotten.
 */
export class RegisteredClients {
  readonly #store: ClientStore
  #queue: Promise<unknown> = Promise.resolve() // changes of the index in this process

  constructor(store: ClientStore) {
    this.#store = store
  }

  /** `beforeNew` is called before a client is stored that is not registered yet; it may throw. */
  async register(metadata: ClientMetadata, beforeNew: () => void = () => {}): Promise<Registration> {
    const id = idOf(metadata)
    const known = await this.#read(id)
    if (known) return { id, registeredAt: known.registeredAt, isNew: false }
    beforeNew()
    const registeredAt = Date.now()
    const until = registeredAt + UNUSED_MS
    const record: ClientRecord = { ...metadata, registeredAt, isUsed: false, until }
    const isNew = await this.#store.create(KIND, id, encode(record), { expires: until, durable: true }).then(
      () => true,
      error => {
        if (error instanceof StateError && error.reason === 'exists') return false
        throw error
      },
    )
    if (isNew) await this.#limit(id)
    return { id, registeredAt, isNew }
  }

  async find(id: string): Promise<OAuthClient | undefined> {
    const record = CLIENT_ID.test(id) ? await this.#read(id) : undefined
    return record && { id, source: 'registered', name: record.name, redirectUris: record.redirectUris }
  }

  /** A visitor has allowed the client something: it is kept for a year from now. */
  async markUsed(id: string): Promise<void> {
    const taken = await this.#store.take(KIND, id)
    if (taken.kind !== 'mine') return
    const record = decode(taken.held)
    const until = Date.now() + USED_MS
    if (record.isUsed && until - record.until < DAY_MS) return
    await this.#store.write(taken.held, encode({ ...record, isUsed: true, until }), { expires: until })
  }

  async #read(id: string): Promise<ClientRecord | undefined> {
    const held = await this.#store.read(KIND, id)
    return held && decode(held)
  }

  /** Adds a client to the index, and forgets the oldest ones that are too many. */
  #limit(id: string): Promise<void> {
    const work = this.#queue.then(async () => {
      for (const oldest of await this.#addToIndex(id)) await this.#forgetUnused(oldest)
    })
    this.#queue = work.catch(() => {})
    return work
  }

  async #addToIndex(id: string): Promise<UnusedIndex> {
    const options = { expires: Number.POSITIVE_INFINITY }
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const taken = await this.#store.take(KIND, INDEX)
      if (taken.kind === 'none') await this.#store.create(KIND, INDEX, Buffer.from('[]'), options).catch(() => {})
      if (taken.kind !== 'mine') continue
      const ids = [...(JSON.parse(taken.held.body.toString()) as UnusedIndex), id]
      if (await this.#store.write(taken.held, Buffer.from(JSON.stringify(ids.slice(-MOST_UNUSED))), options))
        return ids.slice(0, -MOST_UNUSED)
    }
    throw new Error('too many registrations at once')
  }

  async #forgetUnused(id: string): Promise<void> {
    const taken = await this.#store.take(KIND, id)
    if (taken.kind === 'mine' && !decode(taken.held).isUsed) await this.#store.remove(taken.held)
  }
}

const CLIENT_ID = /^client-[0-9a-f]{32}$/

const idOf = ({ name, redirectUris }: ClientMetadata): string =>
  `client-${hashSecret(JSON.stringify([name ?? null, ...redirectUris])).slice(0, 32)}`

const encode = (record: ClientRecord): Buffer => Buffer.from(JSON.stringify(record))
const decode = ({ body }: Held): ClientRecord => JSON.parse(body.toString()) as ClientRecord
