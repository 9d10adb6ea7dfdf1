import { boundedKey } from '../../protocol/capabilities.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { SlotList } from '../../std/slot-list.ts'
import { Json } from '../../wire/json/json.ts'
import { describeClient } from '../audit-line.ts'
import { requestTarget } from '../request-facts.ts'
import type { ReadBlock, StoredExchange, StoredMessage } from './block-format.ts'
import { BlockIndex, GONE } from './block-index.ts'
import { readBlock, readExchange } from './block-reader.ts'
import { type BlockAddress, BlockStore } from './block-store.ts'
import { BLOCK_OVERHEAD, BlockWriter } from './block-writer.ts'
import { RecordedExchange, type RecorderContext } from './recorded-exchange.ts'
import { RecordingRate } from './recording-rate.ts'
import { type FailureRecorder, SkippedExchange } from './skipped-exchange.ts'
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
const LONGEST_STATE = 128 // characters of a `requestState` that is remembered; of a longer one, a hash
const MOST_BLOCK = 240 * 1024
const monotonicNow = (): number => performance.now()

/**
 * Keeps the latest exchanges with all their messages in memory, up to a number of bytes; those written first are forgotten
 * first. Of a long burst only a part is recorded. Recording copies bytes and nothing else: texts are made and secrets removed
 * when a recording is read.
 */
export class FlightRecorder implements RecorderContext, FailureRecorder {
  readonly maxBytes: number
  readonly maxMessageBytes: number
  isOn: boolean
  /** Called when an exchange begins or ends. */
  onChanged: ((exchange: RecordedExchange) => void) | undefined
  readonly #store: BlockStore
  readonly #texts = new TextTable()
  readonly #writer = new BlockWriter(this.#texts)
  readonly #open = new SlotList<RecordedExchange>() // not written completely
  #ended: RecordedExchange[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #index = new BlockIndex()
  readonly #rate: Pick<RecordingRate, 'take'>
  readonly #failureRate = new RecordingRate(monotonicNow()) // of failures in bursts
  readonly #retryRate = new RecordingRate(monotonicNow()) // of requests that answer questions
  #lastOrder = 0
  #forgotten = 0
  #skipped = 0
  #clears = 0
  readonly #clients = new Map<string, string>() // by clientInfo
  #lastInfo = Json.empty // most requests have the clientInfo of the one before
  #lastClient = ''
  readonly #states = new Map<string, number>() // the latest exchange that asked, by requestState
  readonly #continued = new Map<number, number>() // the exchanges with the answers

  constructor(
    { maxBytes, maxMessageBytes }: RecorderLimits,
    isOn: boolean,
    rate: Pick<RecordingRate, 'take'> = new RecordingRate(monotonicNow()),
  ) {
    this.maxBytes = maxBytes
    this.maxMessageBytes = maxMessageBytes
    this.isOn = isOn
    this.#rate = rate
    this.#store = new BlockStore(maxBytes, (order, address) => {
      if (this.#index.remove(order, address)) this.#forgotten++
    })
  }

  /** The number of exchanges in memory. */
  get kept(): number {
    return this.#index.written + this.#open.entries.filter(({ order }) => this.#index.get(order) === GONE).length
  }

  get keptBytes(): number {
    return this.#store.bytes + this.#index.bytes + this.#open.size * OPEN_BYTES
  }

  /** How many were removed because of the limit. */
  get forgotten(): number {
    return this.#forgotten
  }

  /** How many were not recorded because of their rate. */
  get skipped(): number {
    return this.#skipped
  }

  /** How often everything was forgotten. */
  get clears(): number {
    return this.#clears
  }

  get lastOrder(): number {
    return this.#lastOrder
  }

  /** Begins to record an exchange; undefined if the recorder is off, or if it is one of a burst. */
  begin(exchange: Exchange, dialect: string): RecordedExchange | undefined {
    if (!this.isOn) return undefined
    const continues = this.#states.size === 0 ? 0 : this.#answeredBy(exchange)
    if (!this.#mayRecord(continues)) {
      this.#skipped++
      return undefined
    }
    return this.#record(exchange, dialect, continues)
  }

  /** Follows an exchange: with all its messages, or in a burst until it fails; undefined if the recorder is off. */
  follow(exchange: Exchange, dialect: string): RecordedExchange | SkippedExchange | undefined {
    const recording = this.begin(exchange, dialect)
    return recording ?? (this.isOn ? new SkippedExchange(this, exchange, dialect) : undefined)
  }

  recordFailed(exchange: Exchange, dialect: string, ms: number): RecordedExchange | undefined {
    if (!this.isOn || !this.#failureRate.take(monotonicNow)) return undefined
    this.#skipped--
    return this.#record(exchange, dialect, 0, ms)
  }

  #record(exchange: Exchange, dialect: string, continues: number, lateMs?: number): RecordedExchange {
    const order = ++this.#lastOrder
    if (continues > 0) setBounded(this.#continued, continues, order, MOST_STATES)
    const { info } = exchange.caller
    const client = info && this.#clientOf(info)
    const subject = requestTarget(exchange)?.name
    this.#index.begin(order) // a large request is written at once
    const recording = new RecordedExchange(this, exchange, order, dialect, subject, client, continues, lateMs)
    if (this.onChanged) this.onChanged(recording)
    return recording
  }

  /** The exchange has ended with questions; the request that answers them carries this state. */
  asked(recording: RecordedExchange, state: string): void {
    setBounded(this.#states, boundedKey(state, LONGEST_STATE), recording.order, MOST_STATES)
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
    this.#open.add(recording)
  }

  reopened(recording: RecordedExchange): void {
    this.#open.add(recording)
    this.#settleSoon(recording)
  }

  settle(recording: RecordedExchange): void {
    if (this.#ended[this.#ended.length - 1] === recording) this.#ended.pop()
    this.flush(recording)
    this.#open.delete(recording)
  }

  flush(recording: RecordedExchange): void {
    if (!recording.isDirty) return
    const { order } = recording
    const most = Math.min(recording.pendingBytes + BLOCK_OVERHEAD, MOST_BLOCK)
    const start = this.#store.reserve(most)
    const end = this.#writer.write(recording, this.maxMessageBytes, this.#store.segment, start)
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
    return bytes && readExchange(bytes, this.#texts).exchange
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
    this.#open.clear()
    this.#ended = []
    this.#index.clear(this.#lastOrder)
    this.#forgotten = 0
    this.#skipped = 0
    this.#clears++
    this.#states.clear()
    this.#continued.clear()
    this.#clients.clear()
    this.#lastInfo = Json.empty
    this.#lastClient = ''
    this.#store.clear()
    this.#writer.clear()
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

  #read(address: BlockAddress): ReadBlock | undefined {
    const bytes = this.#store.read(address)
    return bytes && readBlock(bytes, this.#texts)
  }

  #answeredBy({ method, params }: Exchange): number {
    const state = methodInfo(method)?.asks ? params.get('requestState')?.asString() : undefined
    return (state === undefined ? undefined : this.#states.get(boundedKey(state, LONGEST_STATE))) ?? 0
  }

  /** The first retry with a state has a rate of its own: its question was recorded. A client may repeat it without end. */
  #mayRecord(continues: number): boolean {
    const isFirstRetry = continues > 0 && !this.#continued.has(continues)
    return (isFirstRetry && this.#retryRate.take(monotonicNow)) || this.#rate.take(monotonicNow)
  }

  #clientOf(info: Json): string {
    if (info.isSameText(this.#lastInfo)) return this.#lastClient
    const text = info.size <= LONGEST_INFO ? info.toString() : undefined
    const known = text === undefined ? undefined : this.#clients.get(text)
    const client = known ?? nameOf(info)
    if (text === undefined) return client
    if (this.#clients.size >= MOST_CLIENTS) this.#clients.clear()
    if (known === undefined) this.#clients.set(text, client)
    this.#lastInfo = info.compact()
    this.#lastClient = client
    return client
  }
}

/** Adds the entry as the newest one; the oldest one is deleted above that number. */
const setBounded = <K, V>(map: Map<K, V>, key: K, value: V, most: number): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size <= most) return
  const [oldest] = map.keys()
  map.delete(oldest as K)
}

const nameOf = (info: Json): string => {
  const { name, version } = describeClient(info)
  return [name, version].filter(part => part !== undefined).join(' ')
}
