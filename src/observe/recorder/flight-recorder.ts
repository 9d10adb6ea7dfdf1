import type { Exchange } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import type { Json } from '../../wire/json/json.ts'
import { describeClient } from '../audit-line.ts'
import { BlockIndex, GONE } from './block-index.ts'
import { type BlockAddress, BlockStore } from './block-store.ts'
import { BLOCK_OVERHEAD, BlockCodec, type ReadBlock, type StoredExchange, type StoredMessage } from './record-block.ts'
import { RecordedExchange, type RecorderContext } from './recorded-exchange.ts'
import { TextTable } from './text-table.ts'

/** How much is kept. */
export interface RecorderLimits {
  readonly maxBytes: number // of memory, by all recordings
  readonly maxMessageBytes: number // of one message; the rest of a larger one is not kept
}

const MOST_ENDED = 4 // exchanges that have ended and wait for a last message
const SETTLE_MS = 100 // until they are written at the latest
const OPEN_BYTES = 2048 // of an exchange that is not written yet, about
const MOST_CLIENTS = 1000
const LONGEST_INFO = 256 // bytes of a `clientInfo` that is remembered
const MOST_STATES = 1000
const MOST_BLOCK = 240 * 1024

/**
 * Keeps the latest exchanges with all their messages in memory, up to a number of bytes; those written first are forgotten
 * first. Recording copies bytes and nothing else: texts are made and secrets removed when a recording is read.
 */
export class FlightRecorder implements RecorderContext {
  readonly maxBytes: number
  readonly maxMessageBytes: number
  isOn: boolean
  /** Called when an exchange begins or ends. */
  onChanged: ((exchange: RecordedExchange) => void) | undefined
  readonly #store: BlockStore
  readonly #codec = new BlockCodec(new TextTable())
  readonly #open: RecordedExchange[] = [] // not written completely; a Map would keep dead ones alive, as Deadlines explains
  #ended: RecordedExchange[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #index = new BlockIndex()
  #lastOrder = 0
  #forgotten = 0
  readonly #clients = new Map<string, string>() // by clientInfo
  readonly #states = new Map<string, number>() // the exchanges that asked, by requestState
  readonly #continued = new Map<number, number>() // the exchanges with the answers

  constructor({ maxBytes, maxMessageBytes }: RecorderLimits, isOn: boolean) {
    this.maxBytes = maxBytes
    this.maxMessageBytes = maxMessageBytes
    this.isOn = isOn
    this.#store = new BlockStore(maxBytes, (order, address) => {
      if (this.#index.remove(order, address)) this.#forgotten++
    })
  }

  /** The number of exchanges in memory. */
  get kept(): number {
    return this.#index.written + this.#open.filter(({ order }) => this.#index.get(order) === GONE).length
  }

  get keptBytes(): number {
    return this.#store.bytes + this.#index.bytes + this.#open.length * OPEN_BYTES
  }

  /** How many were removed because of the limit. */
  get forgotten(): number {
    return this.#forgotten
  }

  get lastOrder(): number {
    return this.#lastOrder
  }

  /** Begins to record an exchange; undefined if the recorder is off. */
  begin(exchange: Exchange, dialect: string, subject: string | undefined): RecordedExchange | undefined {
    if (!this.isOn) return undefined
    const continues = this.#states.size === 0 ? 0 : this.#answeredBy(exchange)
    const order = ++this.#lastOrder
    if (continues > 0) this.#continued.set(continues, order)
    const client = this.#clientOf(exchange.caller.info)
    const recording = new RecordedExchange(this, exchange, order, dialect, subject, client, continues)
    this.#index.begin(order)
    if (this.onChanged) this.onChanged(recording)
    return recording
  }

  /** The exchange has ended with questions; the request that answers them carries this state. */
  asked(recording: RecordedExchange, state: string): void {
    if (this.#states.size >= MOST_STATES) {
      const [oldest = ''] = this.#states.keys()
      this.#continued.delete(this.#states.get(oldest) ?? 0)
      this.#states.delete(oldest)
    }
    this.#states.set(state, recording.order)
  }

  /** The order of the exchange with the answers to that one. */
  continuedBy(order: number): number | undefined {
    return this.#continued.get(order)
  }

  ended(recording: RecordedExchange): void {
    if (this.onChanged && !recording.isForgotten) this.onChanged(recording)
    this.#settleSoon(recording)
  }

  opened(recording: RecordedExchange): void {
    recording.slot = this.#open.push(recording) - 1
  }

  reopened(recording: RecordedExchange): void {
    this.opened(recording)
    this.#settleSoon(recording)
  }

  settle(recording: RecordedExchange): void {
    if (this.#ended[this.#ended.length - 1] === recording) this.#ended.pop()
    this.flush(recording)
    this.#close(recording)
  }

  flush(recording: RecordedExchange): void {
    if (!recording.isDirty) return
    const { order } = recording
    const most = Math.min(recording.pendingBytes + BLOCK_OVERHEAD, MOST_BLOCK)
    const start = this.#store.reserve(most)
    const end = this.#codec.write(recording, this.maxMessageBytes, this.#store.segment, start)
    recording.block = this.#store.commit(order, end)
    recording.pending = []
    recording.pendingBytes = 0
    recording.isDirty = false
    this.#index.set(order, recording.block)
  }

  /** Writes everything that is pending; called before recordings are read. */
  flushAll(): void {
    for (const recording of this.#open) this.flush(recording)
  }

  /** What is known of an exchange since the last `flushAll`; undefined if it is not kept. */
  find(order: number): StoredExchange | undefined {
    const bytes = this.#store.read(this.#index.get(order))
    return bytes && this.#codec.readExchange(bytes).exchange
  }

  /** The messages of an exchange, oldest first; valid until the next message is recorded. */
  messagesOf(order: number): readonly StoredMessage[] {
    const blocks: ReadBlock[] = []
    let address = this.#index.get(order)
    for (let block = this.#read(address); block; block = this.#read(address)) {
      blocks.push(block)
      address = block.before
    }
    return blocks.reverse().flatMap(({ messages }) => messages)
  }

  /** The orders of everything that is kept, newest first, from before that one on. */
  ordersBefore(order: number): Generator<number> {
    return this.#index.ordersBefore(order)
  }

  /** Forgets everything; exchanges that run are recorded no more. */
  clear(): void {
    for (const recording of this.#open) recording.isForgotten = true
    this.#open.length = 0
    this.#ended = []
    this.#index.clear(this.#lastOrder)
    this.#forgotten = 0
    this.#states.clear()
    this.#continued.clear()
    this.#clients.clear()
    this.#store.clear()
    this.#codec.clear()
  }

  /** Writes an exchange that has ended a little later: its last message is sent to the client after that. */
  #settleSoon(recording: RecordedExchange): void {
    this.#ended.push(recording)
    if (this.#ended.length >= 2 * MOST_ENDED) this.#settle(MOST_ENDED)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#settle(this.#ended.length)
    }, SETTLE_MS).unref()
  }

  #settle(count: number): void {
    const settled = this.#ended.slice(0, count)
    this.#ended = this.#ended.slice(count)
    for (const recording of settled) if (!recording.isForgotten && recording.slot >= 0) this.settle(recording)
  }

  /** Removes an exchange from the open ones; the last of them takes its place. */
  #close(recording: RecordedExchange): void {
    const last = this.#open.pop() as RecordedExchange
    if (last !== recording) {
      this.#open[recording.slot] = last
      last.slot = recording.slot
    }
    recording.slot = -1
  }

  #read(address: BlockAddress): ReadBlock | undefined {
    const bytes = this.#store.read(address)
    return bytes && this.#codec.readBlock(bytes)
  }

  #answeredBy({ method, params }: Exchange): number {
    const state = methodInfo(method)?.asks ? params.get('requestState')?.asString() : undefined
    return (state === undefined ? undefined : this.#states.get(state)) ?? 0
  }

  #clientOf(info: Json | undefined): string | undefined {
    if (!info) return undefined
    const text = info.size <= LONGEST_INFO ? info.toString() : undefined
    const known = text === undefined ? undefined : this.#clients.get(text)
    if (known !== undefined) return known
    const { name, version } = describeClient(info)
    const client = [name, version].filter(part => part !== undefined).join(' ')
    if (this.#clients.size >= MOST_CLIENTS) this.#clients.clear()
    if (text !== undefined) this.#clients.set(text, client)
    return client
  }
}
