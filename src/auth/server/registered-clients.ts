import { type ChangeableStore, RecordChanges } from '../../stores/state/record-changes.ts'
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

/**
 * Clients that have registered themselves. Equal registrations are one client: it has no secret, so that nothing but its redirect
 * URIs protects it. Beyond 1,000 clients that no visitor has used, the oldest of them is forgotten.
 */
export class RegisteredClients {
  readonly #clients: RecordChanges<ClientRecord>
  readonly #index: RecordChanges<UnusedIndex>

  constructor(store: ChangeableStore) {
    this.#clients = new RecordChanges(store, KIND)
    this.#index = new RecordChanges(store, KIND)
  }

  /** `beforeNew` is called before a client is stored that is not registered yet; it may throw. */
  async register(metadata: ClientMetadata, beforeNew: () => void = () => {}): Promise<Registration> {
    const id = idOf(metadata)
    if (!(await this.#clients.read(id))) beforeNew()
    const registered = await this.#clients.change<Registration>(id, known => {
      if (known) return { result: { id, registeredAt: known.registeredAt, isNew: false } }
      const registeredAt = Date.now()
      const until = registeredAt + UNUSED_MS
      const body: ClientRecord = { ...metadata, registeredAt, isUsed: false, until }
      return { next: { body, expires: until }, result: { id, registeredAt, isNew: true } }
    })
    if (registered.isNew) for (const oldest of await this.#addToIndex(id)) await this.#forgetUnused(oldest)
    return registered
  }

  async find(id: string): Promise<OAuthClient | undefined> {
    const record = CLIENT_ID.test(id) ? await this.#clients.read(id) : undefined
    return record && { id, source: 'registered', name: record.name, redirectUris: record.redirectUris }
  }

  /** A visitor has allowed the client something, or it has got new tokens: it is kept for a year from now. */
  async markUsed(id: string): Promise<void> {
    const until = Date.now() + USED_MS
    const isKept = (record: ClientRecord | undefined): boolean =>
      !record || (record.isUsed && until - record.until < DAY_MS)
    if (isKept(await this.#clients.read(id))) return // most often: nothing is written
    await this.#clients.change(id, record =>
      !record || isKept(record)
        ? { result: undefined }
        : { next: { body: { ...record, isUsed: true, until }, expires: until }, result: undefined },
    )
  }

  /** Returns the oldest clients that are too many now. */
  #addToIndex(id: string): Promise<UnusedIndex> {
    return this.#index.change(INDEX, (known = []) => {
      const ids = [...known, id]
      const next = { body: ids.slice(-MOST_UNUSED), expires: Number.POSITIVE_INFINITY }
      return { next, result: ids.slice(0, -MOST_UNUSED) }
    })
  }

  async #forgetUnused(id: string): Promise<void> {
    await this.#clients.change(id, record =>
      record && !record.isUsed ? { next: 'removed', result: undefined } : { result: undefined },
    )
  }
}

const CLIENT_ID = /^client-[0-9a-f]{32}$/

const idOf = ({ name, redirectUris }: ClientMetadata): string =>
  `client-${hashSecret(JSON.stringify([name ?? null, ...redirectUris])).slice(0, 32)}`
