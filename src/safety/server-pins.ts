import { principalKey } from '../protocol/callers.ts'
import { BoundedCache } from '../std/bounded-cache.ts'
import { SingleFlight } from '../std/single-flight.ts'
import type { Log } from '../telemetry/log.ts'
import type { PinDocuments } from './pin-documents.ts'
import {
  EMPTY_RECORD,
  isApproved,
  type ListSighting,
  type PinRecord,
  withApproved,
  withPrincipal,
  withSighting,
} from './pin-record.ts'
import type { ToolDefinition } from './tool-definition.ts'

const MOST_LISTS = 1000
const IDLE_MS = 3_600_000

/** What happened to a tool; `principal` if the list is that of one caller. */
export interface PinEvent {
  readonly kind: 'quarantined' | 'approved'
  readonly server: string
  readonly tool: string
  readonly hash: string
  readonly isNew: boolean // no definition of it was approved before
  readonly principal?: string | undefined
}

interface ServerPinsOptions {
  readonly server: string
  readonly documents: PinDocuments
  readonly onEvent: (event: PinEvent) => void
  /** Tools were approved, here or at another replica: what is listed changes. */
  readonly onApproved: () => void
  readonly log: Log
}

/** The pinned tools of one server: of its list for all callers, and of lists that are those of one principal. */
export class ServerPins {
  readonly server: string
  readonly #options: ServerPinsOptions
  readonly #lists = new BoundedCache<PinnedList>(MOST_LISTS, IDLE_MS)
  readonly #reading = new SingleFlight()
  readonly #stopListening: () => void
  #record: PinRecord | undefined // undefined: not read yet
  #fault: string | undefined

  constructor(options: ServerPinsOptions) {
    this.server = options.server
    this.#options = options
    this.#stopListening = options.documents.onChanged(options.server, () => this.readAgain())
  }

  /** Approvals for all callers; undefined: not read yet. */
  get record(): PinRecord | undefined {
    return this.#record
  }

  /** Why the pins cannot be used. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** The list of a principal; undefined: the one for all callers. */
  listOf(principal: string | undefined): PinnedList {
    const key = principalKey(principal)
    const known = this.#lists.get(key)
    if (known) return known
    const list = new PinnedList(this, principal, this.#options)
    this.#lists.set(key, list)
    return list
  }

  /** Names and definitions in quarantine, as far as this replica knows. */
  quarantined(): number {
    const found = new Set<string>()
    const add = (record: PinRecord | undefined): void => {
      for (const [name, { hash }] of record?.quarantined ?? [])
        if (!isApproved({ name, hash }, this.#record ?? EMPTY_RECORD)) found.add(`${name}\n${hash}`)
    }
    add(this.#record)
    for (const [, list] of this.#lists.entries()) add(list.own)
    return found.size
  }

  /** Reads the record of all callers, once; rejects with PinsUnavailable. */
  async load(): Promise<PinRecord> {
    if (!this.#record) await this.#reading.run(() => this.#read())
    return this.#record ?? EMPTY_RECORD
  }

  /** Reads the record in the background. */
  readAgain(): void {
    this.#reading.run(() => this.#read()).catch(() => {}) // `fault` says why
  }

  async #read(): Promise<void> {
    await this.keep(() => this.#options.documents.read(this.server, undefined))
  }

  /** What a list has shown counts at once, and is stored later. */
  setSighted(record: PinRecord): void {
    this.#record = record
  }

  /** Changes the record of all callers; rejects with PinsUnavailable. */
  update(change: (record: PinRecord) => PinRecord): Promise<PinRecord> {
    return this.keep(() => this.#options.documents.update(this.server, undefined, change))
  }

  /** Takes over the record that the work resolves with, and remembers why it failed. */
  async keep(work: () => Promise<PinRecord>): Promise<PinRecord> {
    const before = this.#record
    const record = await this.attempt(work)
    this.#record = record
    if (before?.isPinned && hasMorePins(before, record)) this.#options.onApproved()
    return record
  }

  async attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      const done = await work()
      this.#fault = undefined
      return done
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error)
      if (this.#fault === undefined)
        this.#options.log.error({ server: this.server, reason: fault }, 'pins cannot be used')
      this.#fault = fault
      throw error
    }
  }

  /** Approves definitions for all callers. */
  async approve(definitions: readonly Pick<ToolDefinition, 'name' | 'hash'>[]): Promise<void> {
    const before = await this.load()
    await this.update(record => ({ ...withApproved(record, definitions), isPinned: record.isPinned }))
    for (const { name, hash } of definitions)
      this.#options.onEvent({ kind: 'approved', server: this.server, tool: name, hash, isNew: !before.pins.has(name) })
    if (!before.isPinned) this.#options.onApproved() // of lists of principals
  }

  close(): void {
    this.#stopListening()
  }
}

const hasMorePins = (before: PinRecord, after: PinRecord): boolean =>
  [...after.pins].some(([name, hashes]) => hashes.some(hash => !before.pins.get(name)?.includes(hash)))

/** The pins that one list is compared with. */
export class PinnedList {
  readonly #server: ServerPins
  readonly #principal: string | undefined
  readonly #options: ServerPinsOptions
  readonly #writing = new SingleFlight()
  #own: PinRecord | undefined
  #unwritten: ListSighting | undefined

  constructor(server: ServerPins, principal: string | undefined, options: ServerPinsOptions) {
    this.#server = server
    this.#principal = principal
    this.#options = options
  }

  /** The record of the principal; undefined: there is none, or it was not read yet. */
  get own(): PinRecord | undefined {
    return this.#own
  }

  get isLoaded(): boolean {
    return this.#server.record !== undefined && (this.#principal === undefined || this.#own !== undefined)
  }

  /** A server that begins to ask for logins gets no second first list: its list for all callers stays pinned. */
  get isPinned(): boolean {
    return this.#server.record?.isPinned === true || this.#own?.isPinned === true
  }

  /** Rejects with PinsUnavailable. */
  async load(): Promise<void> {
    await this.#server.load()
    const principal = this.#principal
    if (principal === undefined || this.#own) return
    this.#own = await this.#server.attempt(() => this.#options.documents.read(this.#server.server, principal))
  }

  isApproved(definition: Pick<ToolDefinition, 'name' | 'hash'>): boolean {
    return isApproved(definition, this.#server.record ?? EMPTY_RECORD, this.#own ?? EMPTY_RECORD)
  }

  /** Whether some definition of that name was approved. */
  hasApproved(name: string): boolean {
    return this.#server.record?.pins.has(name) === true || this.#own?.pins.has(name) === true
  }

  /** Whether the latest list has a definition of that name that is not approved. */
  isQuarantined(name: string): boolean {
    const entry = (this.#principal === undefined ? this.#server.record : this.#own)?.quarantined.get(name)
    return entry !== undefined && !this.isApproved({ name, hash: entry.hash })
  }

  /** Pins a first list, unless another replica was faster; rejects with PinsUnavailable. */
  async pinFirst(definitions: readonly ToolDefinition[]): Promise<void> {
    if (definitions.length === 0) return
    const { documents } = this.#options
    const pin = (record: PinRecord): PinRecord =>
      record.isPinned ? record : { ...withApproved(record, definitions), isPinned: true }
    await this.#storeTexts(definitions)
    const principal = this.#principal
    if (principal === undefined) await this.#server.update(pin)
    else {
      await this.#server.update(record => withPrincipal(record, principal))
      this.#own = await this.#server.attempt(() => documents.update(this.#server.server, principal, pin))
    }
    this.#options.log.info({ server: this.#server.server, tools: definitions.length }, 'tools pinned')
  }

  /** Records what a list has shown. Storing it is not awaited: what is rejected is rejected already. */
  sighted(sighting: ListSighting, rejected: readonly ToolDefinition[]): void {
    const record = this.#principal === undefined ? this.#server.record : this.#own
    if (!record) return
    const after = withSighting(record, sighting, Date.now())
    if (after === record) return
    for (const [tool, { hash }] of after.quarantined)
      if (record.quarantined.get(tool)?.hash !== hash) this.#report(tool, hash)
    if (this.#principal === undefined) this.#server.setSighted(after)
    else this.#own = after
    this.#unwritten = sighting
    this.#write(rejected).catch((error: unknown) =>
      this.#options.log.debug({ err: error, server: this.#server.server }, 'quarantine not stored'),
    )
  }

  #report(tool: string, hash: string): void {
    const isNew = !this.hasApproved(tool)
    const { server } = this.#server
    this.#options.onEvent({ kind: 'quarantined', server, tool, hash, isNew, principal: this.#principal })
  }

  async #write(rejected: readonly ToolDefinition[]): Promise<void> {
    await this.#storeTexts(rejected)
    await this.#writing.run(async () => {
      while (this.#unwritten) {
        const sighting = this.#unwritten
        this.#unwritten = undefined
        const apply = (record: PinRecord): PinRecord => withSighting(record, sighting, Date.now())
        const principal = this.#principal
        if (principal === undefined) await this.#server.update(apply)
        else this.#own = await this.#options.documents.update(this.#server.server, principal, apply)
      }
    })
  }

  /** Texts are only shown, so that one that cannot be stored is no fault. */
  async #storeTexts(definitions: readonly ToolDefinition[]): Promise<void> {
    if (definitions.length === 0) return
    const { documents, log } = this.#options
    const { record, server } = this.#server
    const needed = new Set([...(record?.pins.values() ?? [])].flat())
    for (const { hash } of record?.quarantined.values() ?? []) needed.add(hash)
    const isNeeded = (hash: string): boolean => needed.has(hash) || (record?.principals.length ?? 0) > 0
    await documents
      .addTexts(server, new Map(definitions.map(({ hash, text }) => [hash, text])), isNeeded)
      .catch((error: unknown) => log.debug({ err: error, server }, 'definitions of tools not stored'))
  }
}
