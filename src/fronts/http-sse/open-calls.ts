import { createHash } from 'node:crypto'
import { type SlotEntry, SlotList } from '../../std/slot-list.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { StoredSession } from '../sessions/stored-session.ts'

const LONG_MS = 100 // a shorter call is not stored
const SLOTS = 8 // replicas that serve the same client at the same time
const LOST_MS = 60_000 // for which all clients that may have sent a lost call are told
const MOST_BYTES = 32 * 1024 // of ids in one record
const RECORD_MS = 24 * 60 * 60_000

/** The calls of one client that have been open for a while, as they are stored. */
interface CallsRecord {
  readonly isLost: boolean // the replica that ran them is gone
  readonly ids: readonly Json[]
}

interface OpenCall extends SlotEntry {
  readonly id: Json
  readonly since: number
  isStored: boolean
}

const recordId = (client: string, slot: number): string =>
  `sse-calls ${createHash('sha256').update(client).digest('base64url')} ${slot}`

const encode = ({ isLost, ids }: CallsRecord): Buffer => Json.of({ isLost, ids: [...ids] }).toBytes()

const decode = (body: Buffer): CallsRecord => {
  const json = Json.parse(body)
  return { isLost: json.get('isLost')?.toString() === 'true', ids: json.get('ids')?.elements() ?? [] }
}

interface ClientCallsOptions {
  readonly store: StateStore
  readonly client: string
  readonly log: Log
}

/** The long calls of one client at this replica. Its record is in the first slot that no other replica holds. */
class ClientCalls {
  readonly #open = new SlotList<OpenCall>()
  readonly #options: ClientCallsOptions
  #slot = 0
  #stored: StoredSession | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(options: ClientCallsOptions) {
    this.#options = options
  }

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  /** The slot that holds its record. */
  get slot(): number | undefined {
    return this.#stored && this.#slot
  }

  add(id: Json): OpenCall {
    const call: OpenCall = { id: id.compact(), since: Date.now(), isStored: false, slot: -1 }
    this.#open.add(call)
    this.#timer ??= setTimeout(() => this.#storeLong(), LONG_MS).unref()
    return call
  }

  delete(call: OpenCall): void {
    this.#open.delete(call)
    if (call.isStored && !this.isEmpty) void this.#stored?.save()
  }

  close(): void {
    clearTimeout(this.#timer)
    void this.#stored?.remove()
  }

  #storeLong(): void {
    const newest = Date.now() - LONG_MS
    let waiting = 0
    let stored = 0
    for (const call of this.#open) {
      if (call.isStored) continue
      if (call.since > newest) waiting++
      else {
        call.isStored = true
        stored++
      }
    }
    this.#timer = waiting > 0 ? setTimeout(() => this.#storeLong(), LONG_MS).unref() : undefined
    if (stored === 0) return
    this.#stored ??= this.#createRecord()
    void this.#stored.save()
  }

  #createRecord(): StoredSession {
    const { store, client, log } = this.#options
    const onLost = (): void => {
      if (++this.#slot >= SLOTS) return
      this.#stored = this.#createRecord()
      void this.#stored.save()
    }
    return new StoredSession({ id: recordId(client, this.#slot), store, read: () => this.#read(), onLost, log })
  }

  #read(): { readonly body: Buffer; readonly expires: number } {
    const ids: Json[] = []
    let bytes = 0
    for (const { id, isStored } of this.#open) {
      bytes += id.size
      if (isStored && bytes <= MOST_BYTES) ids.push(id)
    }
    return { body: encode({ isLost: false, ids }), expires: Date.now() + RECORD_MS }
  }
}

/**
 * Remembers which calls over HTTP+SSE are open, so that a client that comes back after a crash learns which were lost.
 * Clients that reconnect name no session: they are known by principal, workspace and address. Several clients may share
 * these. Each is told of the lost calls of all, which is harmless: every call of a client that lost its stream has ended.
 */
export class OpenCalls {
  readonly #store: StateStore
  readonly #log: Log
  readonly #byClient = new Map<string, ClientCalls>()

  constructor(store: StateStore, log: Log) {
    this.#store = store
    this.#log = log
  }

  /** Counts a call of a client; the returned function must be called when it has ended. */
  add(client: string, id: Json): () => void {
    const calls = this.#byClient.get(client) ?? new ClientCalls({ store: this.#store, client, log: this.#log })
    this.#byClient.set(client, calls)
    const call = calls.add(id)
    return () => {
      calls.delete(call)
      if (!calls.isEmpty) return
      calls.close()
      if (this.#byClient.get(client) === calls) this.#byClient.delete(client)
    }
  }

  /** The ids of calls of this client that were open at a replica that is gone. */
  async findLost(client: string): Promise<readonly Json[]> {
    const own = this.#byClient.get(client)?.slot
    const slots = Array.from({ length: SLOTS }, (_, slot) => slot).filter(slot => slot !== own)
    return (await Promise.all(slots.map(slot => this.#readLost(recordId(client, slot))))).flat()
  }

  async #readLost(id: string): Promise<readonly Json[]> {
    const taken = await this.#store.take('session', id)
    if (taken.kind === 'none') return []
    if (taken.kind === 'other') {
      const held = await this.#store.read('session', id)
      const record = held && decode(held.body)
      return record?.isLost ? record.ids : []
    }
    const { ids } = decode(taken.held.body)
    await this.#store.write(taken.held, encode({ isLost: true, ids }), { expires: Date.now() + LOST_MS })
    return ids
  }
}
