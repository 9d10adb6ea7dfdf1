const PING_MS = 2000 // for an answer to a ping, which may be an error
const ROOTS_MS = 5000 // for the client to answer `roots/list`
const GRACE_MS = 50 // servers check the roots on disk before they use them, and no message tells when they are done

/**
 * Holds back the calls for a new process until the server has the client's roots, if it wants them. Servers ask for
 * roots as soon as they are initialized. With a client of their own, the first call comes much later than that; here it
 * is what starts the process. The answer to a ping that is sent right after the handshake comes after the server's
 * question; the answer to a ping that is sent after the roots says that the server has read them.
 */
export class RootsWait {
  readonly #ping: () => number
  #pingId: number
  #held: (() => void)[] | undefined = []
  #openQuestions = 0
  #hasRoots = false
  #timer: NodeJS.Timeout | undefined

  /** `ping` sends a ping and returns its id. */
  constructor(ping: () => number) {
    this.#ping = ping
    this.#pingId = ping()
    this.#endIn(PING_MS)
  }

  get isOver(): boolean {
    return this.#held === undefined
  }

  /** Runs that when the wait is over, which may be now. */
  run(send: () => void): void {
    if (this.#held) this.#held.push(send)
    else send()
  }

  /** Takes note of an answer; true if it answers the ping. */
  answered(id: number | undefined): boolean {
    if (id !== this.#pingId) return false
    if (this.#openQuestions > 0 || this.isOver) return true
    if (this.#hasRoots) this.#endIn(GRACE_MS)
    else this.end()
    return true
  }

  /** The server asked for roots; the returned function is to be called once that is settled. */
  asked(): () => void {
    if (this.isOver) return () => {}
    this.#openQuestions++
    this.#endIn(ROOTS_MS)
    return () => {
      if (--this.#openQuestions > 0 || this.isOver) return
      this.#hasRoots = true
      this.#pingId = this.#ping()
      this.#endIn(PING_MS)
    }
  }

  end(): void {
    clearTimeout(this.#timer)
    const held = this.#held ?? []
    this.#held = undefined
    for (const send of held) send()
  }

  #endIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.end(), ms).unref()
  }
}
