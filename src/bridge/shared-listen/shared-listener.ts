import { deliver } from '../../protocol/deliver.ts'
import { compactFrame, type Exchange, type Frame } from '../../protocol/exchange.ts'
import { NOTIFICATIONS, noticeKey } from '../../protocol/notifications.ts'
import type { Json } from '../../wire/json/json.ts'
import { acknowledgementFor, isFor, type ListenFilter } from './listen-filter.ts'

// For a client that does not read:
const MOST_HELD = 4096 // frames
const MOST_BYTES = 4 * 1024 * 1024

/** One `subscriptions/listen` that is served by a shared one. */
export class SharedListener {
  readonly filter: ListenFilter
  readonly order: number // of arrival
  readonly #isAlone: boolean // the whole listen is its own: it gets everything, and may be waited for
  readonly #exchange: Pick<Exchange, 'sink' | 'hasClient'>
  readonly #onOverflow: () => void
  #held: Map<string, Frame> | undefined // while its client is slow; of equal notifications the latest
  #bytes = 0 // of these
  #isAcknowledged = false
  #isOver = false

  constructor(exchange: Exchange, filter: ListenFilter, order: number, isAlone: boolean, onOverflow: () => void) {
    const { sink, hasClient } = exchange
    this.#exchange = { sink, hasClient }
    this.filter = filter
    this.order = order
    this.#isAlone = isAlone
    this.#onOverflow = onOverflow
  }

  get isAcknowledged(): boolean {
    return this.#isAcknowledged
  }

  /** False while its client seems to be gone. */
  get hasClient(): boolean {
    return this.#exchange.hasClient?.() !== false
  }

  /** `acknowledged`: the params with which the server acknowledged the shared listen. */
  acknowledge(acknowledged: Json): void {
    this.#isAcknowledged = true
    const params = this.#isAlone ? acknowledged : acknowledgementFor(acknowledged, this.filter)
    this.#send({ kind: 'notice', method: NOTIFICATIONS.acknowledged, params })
  }

  /** Takes a frame of the server, if it is for this listener. A slow client delays no other. */
  take(frame: Frame): void | Promise<void> {
    if (this.#isAlone) return this.#exchange.sink(frame)
    if (frame.kind !== 'notice' || isFor(this.filter, frame.method, frame.params)) this.#send(frame)
  }

  /** Sends this frame and nothing more. */
  end(frame: Frame): void {
    this.stop()
    void deliver(this.#exchange.sink, frame)
  }

  /** Sends nothing more. */
  stop(): void {
    this.#isOver = true
    this.#held = undefined
  }

  #send(frame: Frame): void {
    if (this.#isOver) return
    if (this.#held) return this.#hold(frame, this.#held)
    const waiting = deliver(this.#exchange.sink, frame, this.#onOverflow)
    if (!waiting) return
    this.#held = new Map()
    this.#bytes = 0
    void waiting.then(() => this.#release())
  }

  #hold(frame: Frame, held: Map<string, Frame>): void {
    const key = (frame.kind === 'notice' ? noticeKey(frame.method, frame.params) : undefined) ?? `#${held.size}`
    const before = held.get(key)
    this.#bytes += sizeOf(frame) - (before ? sizeOf(before) : 0)
    if (this.#bytes > MOST_BYTES || (held.size >= MOST_HELD && !before)) return this.#onOverflow()
    held.set(key, compactFrame(frame))
  }

  #release(): void {
    const held = this.#held
    this.#held = undefined
    for (const frame of held?.values() ?? []) this.#send(frame)
  }
}

const sizeOf = (frame: Frame): number => ('params' in frame ? frame.params.size : 0)
