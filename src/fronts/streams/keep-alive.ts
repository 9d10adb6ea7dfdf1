/** Calls `act` for each item every `everyMs`. Items are in the order they are due, so that a run costs only what is due. */
export class DueQueue<T> {
  readonly #everyMs: number
  readonly #act: (item: T) => void
  readonly #dueAt = new Map<T, number>()

  constructor(everyMs: number, act: (item: T) => void) {
    this.#everyMs = everyMs
    this.#act = act
  }

  get items(): Iterable<T> {
    return this.#dueAt.keys()
  }

  /** The item is due for the first time after one interval. */
  add(item: T, now: number = Date.now()): void {
    this.#dueAt.set(item, now + this.#everyMs)
  }

  delete(item: T): void {
    this.#dueAt.delete(item)
  }

  run(now: number): void {
    for (const [item, dueAt] of this.#dueAt) {
      if (dueAt > now) return
      this.#dueAt.delete(item)
      this.#dueAt.set(item, now + this.#everyMs)
      this.#act(item)
    }
  }
}

interface LiveStream {
  /** Sends a comment, so that no proxy or client takes the connection for dead. */
  keepAlive(): void
  readonly hasReader?: boolean
}

const TICKS_PER_INTERVAL = 15
const SHORTEST_TICK_MS = 20

/** The one timer of the fronts: keeps streams alive and runs periodic tasks, such as expiry of sessions and logs. */
export class KeepAlive {
  readonly #streams: DueQueue<LiveStream>
  readonly #tasks: ((now: number) => void)[] = []
  readonly #timer: NodeJS.Timeout

  /** Each stream sends a comment every `keepAliveMs`. */
  constructor(keepAliveMs: number) {
    this.#streams = new DueQueue(keepAliveMs, stream => stream.keepAlive())
    this.#timer = setInterval(() => this.#tick(), Math.max(SHORTEST_TICK_MS, keepAliveMs / TICKS_PER_INTERVAL))
    this.#timer.unref()
  }

  /** Runs a task at every tick. */
  onTick(task: (now: number) => void): void {
    this.#tasks.push(task)
  }

  add(stream: LiveStream): void {
    this.#streams.add(stream)
  }

  delete(stream: LiveStream): void {
    this.#streams.delete(stream)
  }

  /** Streams that a client is reading. */
  get streamCount(): number {
    let count = 0
    for (const { hasReader } of this.#streams.items) if (hasReader) count++
    return count
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    const now = Date.now()
    this.#streams.run(now)
    for (const task of this.#tasks) task(now)
  }
}
