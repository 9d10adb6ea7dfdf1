import { type SlotEntry, SlotList } from '../../std/slot-list.ts'

/** Calls `act` for each item once per interval. Items are in the order they are due, so that a run costs only what is due. */
export class DueQueue<T> {
  readonly #interval: number
  readonly #act: (item: T) => void
  readonly #dueAt = new Map<T, number>()

  /** `interval` has the unit of `now` in `add` and `run`. */
  constructor(interval: number, act: (item: T) => void) {
    this.#interval = interval
    this.#act = act
  }

  /** The item is due for the first time after one interval. */
  add(item: T, now: number = Date.now()): void {
    this.#dueAt.set(item, now + this.#interval)
  }

  delete(item: T): void {
    this.#dueAt.delete(item)
  }

  run(now: number): void {
    for (const [item, dueAt] of this.#dueAt) {
      if (dueAt > now) return
      this.#dueAt.delete(item)
      this.#dueAt.set(item, now + this.#interval)
      this.#act(item)
    }
  }
}

interface LiveStream {
  /** Sends a comment, so that no proxy or client takes the connection for dead. */
  keepAlive(): void
  readonly hasReader?: boolean
}

/** A stream that is kept alive. */
export interface KeepAliveEntry extends SlotEntry {
  readonly stream: LiveStream
  readonly tick: number // of each interval, at which it is due
}

const TICKS_PER_INTERVAL = 15
const SHORTEST_TICK_MS = 20

/**
 * The open streams and the one timer of the fronts, which keeps them alive and runs tasks such as the expiry of sessions.
 * Ticks and not the time of day say when a stream is due: that may be set back, and streams would fall silent.
 */
export class KeepAlive {
  readonly #streams: readonly SlotList<KeepAliveEntry>[] // by tick
  readonly #tasks: ((now: number) => void)[] = []
  readonly #timer: NodeJS.Timeout
  #tick = 0 // of the current interval

  /** Each stream sends a comment every `keepAliveMs`. */
  constructor(keepAliveMs: number) {
    const tickMs = Math.max(SHORTEST_TICK_MS, keepAliveMs / TICKS_PER_INTERVAL)
    const length = Math.max(1, Math.round(keepAliveMs / tickMs))
    this.#streams = Array.from({ length }, () => new SlotList())
    this.#timer = setInterval(() => this.#runTick(), tickMs).unref()
  }

  /** The stream is due for the first time after one interval. */
  add(stream: LiveStream): KeepAliveEntry {
    const entry = { stream, tick: this.#tick, slot: -1 }
    this.#streams[entry.tick]?.add(entry)
    return entry
  }

  delete(entry: KeepAliveEntry): void {
    this.#streams[entry.tick]?.delete(entry)
  }

  /** Runs a task at every tick. */
  onTick(task: (now: number) => void): void {
    this.#tasks.push(task)
  }

  /** Streams that a client is reading. */
  get streamCount(): number {
    let count = 0
    for (const entries of this.#streams) for (const { stream } of entries) if (stream.hasReader) count++
    return count
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #runTick(): void {
    const now = Date.now()
    this.#tick = (this.#tick + 1) % this.#streams.length
    for (const { stream, slot } of this.#streams[this.#tick]?.entries ?? []) if (slot >= 0) stream.keepAlive()
    for (const task of this.#tasks) task(now)
  }
}
