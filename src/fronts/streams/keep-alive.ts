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

  /** The items, the next one due first. */
  protected get items(): Iterable<T> {
    return this.#dueAt.keys()
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

const TICKS_PER_INTERVAL = 15
const SHORTEST_TICK_MS = 20

/** The open streams and the one timer of the fronts, which keeps them alive and runs tasks such as the expiry of sessions. */
export class KeepAlive extends DueQueue<LiveStream> {
  readonly #tasks: ((now: number) => void)[] = []
  readonly #timer: NodeJS.Timeout
  #ticks = 0 // the clock of the queue: the time of day may be set back, and streams would fall silent

  /** Each stream sends a comment every `keepAliveMs`. */
  constructor(keepAliveMs: number) {
    const tickMs = Math.max(SHORTEST_TICK_MS, keepAliveMs / TICKS_PER_INTERVAL)
    super(Math.max(1, Math.round(keepAliveMs / tickMs)), stream => stream.keepAlive())
    this.#timer = setInterval(() => this.#tick(), tickMs).unref()
  }

  override add(stream: LiveStream): void {
    super.add(stream, this.#ticks)
  }

  /** Runs a task at every tick. */
  onTick(task: (now: number) => void): void {
    this.#tasks.push(task)
  }

  /** Streams that a client is reading. */
  get streamCount(): number {
    let count = 0
    for (const { hasReader } of this.items) if (hasReader) count++
    return count
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    const now = Date.now()
    this.run(++this.#ticks)
    for (const task of this.#tasks) task(now)
  }
}
