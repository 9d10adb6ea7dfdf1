const PING_MS = 2000 // for an answer to a ping, which even an error gives
const ROOTS_MS = 5000 // for the client to tell its roots
const GRACE_MS = 50 // servers check the roots on disk before they use them, and no message tells when they are done

/**
 * Holds back the calls for a process that has just been started until the server has the client's roots, if it wants
 * them. Servers ask for roots as soon as they are initialized. A client of their own calls a tool much later than that,
 * but here the first call is what starts the process. The answer to a ping that is sent right after the handshake comes
 * after that question; the answer to a ping that is sent after the roots tells that the server has read them.
 */
export class StartFence {
  readonly #ping: () => number
  #pingId: number
  #waiting: (() => void)[] | undefined = []
  #open = 0 // questions for roots
  #hasRoots = false
  #timer: NodeJS.Timeout | undefined

  /** `ping` sends one and tells its id. */
  constructor(ping: () => number) {
    this.#ping = ping
    this.#pingId = ping()
    this.#openIn(PING_MS)
  }

  get isClosed(): boolean {
    return this.#waiting !== undefined
  }

  /** Runs that now, or as soon as the fence is open. */
  pass(run: () => void): void {
    if (this.#waiting) this.#waiting.push(run)
    else run()
  }

  /** Something with that id was answered; true if it was the fence's ping. */
  answered(id: number | undefined): boolean {
    if (id !== this.#pingId) return false
    if (this.#open > 0 || !this.isClosed) return true
    if (this.#hasRoots) this.#openIn(GRACE_MS)
    else this.open()
    return true
  }

  /** The server asked for roots; the returned function is to be called once that is settled. */
  asked(): () => void {
    if (!this.isClosed) return () => {}
    this.#open++
    this.#openIn(ROOTS_MS)
    return () => {
      if (--this.#open > 0 || !this.isClosed) return
      this.#hasRoots = true
      this.#pingId = this.#ping()
      this.#openIn(PING_MS)
    }
  }

  open(): void {
    clearTimeout(this.#timer)
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    for (const run of waiting) run()
  }

  #openIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.open(), ms)
    this.#timer.unref()
  }
}
