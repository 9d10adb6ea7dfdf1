import { Json, type Plain } from '../wire/json/json.ts'
import type { Deviations } from './deviations.ts'
import { type DoctorReply, isReplyTo, readReply, readWire } from './examined-server.ts'

interface WaitingRequest {
  readonly id: number | string
  readonly begunAt: number
  readonly settle: (reply: DoctorReply) => void
}

/** Requests whose replies come on one stream for all of them: an SSE channel or the stdout of a process. */
export class ReplyChannel {
  readonly #send: (message: Buffer) => void
  readonly #timeoutMs: number
  readonly #deviations: Deviations
  readonly #waiting = new Set<WaitingRequest>()
  #lastId = 0
  #end: string | undefined // why there will be no more replies
  where: string // changes when the revision is agreed

  constructor(send: (message: Buffer) => void, timeoutMs: number, deviations: Deviations, where: string) {
    this.#send = send
    this.#timeoutMs = timeoutMs
    this.#deviations = deviations
    this.where = where
  }

  request(method: string, params: Record<string, Plain> = {}): Promise<DoctorReply> {
    if (this.#end !== undefined) return Promise.resolve({ kind: 'none', reason: this.#end })
    const id = `doctor-${++this.#lastId}`
    return new Promise(resolve => {
      const timer = setTimeout(() => {
        waiting.settle({ kind: 'none', reason: `no answer to ${method} within ${this.#timeoutMs / 1000} s` })
      }, this.#timeoutMs)
      const waiting: WaitingRequest = {
        id,
        begunAt: performance.now(),
        settle: reply => {
          clearTimeout(timer)
          this.#waiting.delete(waiting)
          resolve(reply)
        },
      }
      this.#waiting.add(waiting)
      this.#send(Buffer.from(Json.of({ jsonrpc: '2.0', id, method, params }).toString()))
    })
  }

  notify(method: string): void {
    this.#send(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method })))
  }

  /** Takes one message of the server; false if it was none. */
  take(bytes: Buffer): boolean {
    const message = readWire(bytes, this.#deviations, this.where)
    if (!message) return false
    for (const waiting of this.#waiting)
      if (isReplyTo(message, waiting.id, this.#deviations, this.where))
        waiting.settle(readReply(message, performance.now() - waiting.begunAt, this.#deviations, this.where))
    return true
  }

  /** The stream has ended. */
  end(reason: string): void {
    this.#end ??= reason
    for (const { settle } of this.#waiting) settle({ kind: 'none', reason })
  }
}
