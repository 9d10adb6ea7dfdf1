import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import { answerQuestion, deliver } from '../../protocol/deliver.ts'
import type { Dispatch, Exchange, Frame, Question } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { abandoned, isAboutSession, isFitting, refusalOf, UNSEEN } from '../refusals.ts'

const GATHER_MS = 30 // siblings asked together travel together
const GRACE_MS = 2000 // for an asker to finish by itself once its questions are cancelled
const MOST_BUFFERED = 100
const MOST_BUFFERED_BYTES = 1024 * 1024 // of notices

interface Hooks {
  readonly ttlMs: number
  /** Remembers the call and seals its state of this round. */
  park(call: ParkedCall): string
  /** The parked call keeps more in memory than before. */
  grew(call: ParkedCall): void
  gone(call: ParkedCall): void
}

/** One call of a modern client on a server that asks while it runs. Attached, it has a live sink; parked, it buffers. */
export class ParkedCall {
  readonly id: string
  readonly origin: Exchange
  round = 1

  readonly #hooks: Hooks
  readonly #upstream = new Abort()
  readonly #open = new Map<string, Question>()
  readonly #shown = new Set<Question>() // those the client has been told of
  readonly #buffer: Frame[] = []
  #attached: Exchange | undefined
  #detachSignal: () => void = () => {}
  #bufferedBytes = 0
  #isDone = false
  #asked = 0
  #progress = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(id: string, origin: Exchange, hooks: Hooks) {
    this.id = id
    this.origin = origin
    this.#hooks = hooks
  }

  /** Bytes it keeps in memory while it is parked: its request, and what the server has said since. */
  get bytes(): number {
    return this.origin.params.retained + this.#bufferedBytes
  }

  start(dispatch: Dispatch): void {
    this.#attach(this.origin)
    dispatch({ ...this.origin, signal: this.#upstream, sink: frame => this.#receive(frame) })
  }

  /** The client came back with answers: what fits is delivered, what is missing is asked again. */
  resume(exchange: Exchange): void {
    this.round++
    clearTimeout(this.#timer)
    const responses = exchange.params.get('inputResponses')
    const answers = [...this.#open].map(([key, question]) => ({ key, question, answer: responses?.get(key) }))
    const fitting = answers.flatMap(({ key, question, answer }) =>
      isFitting(question.method, answer) ? [{ key, question, answer }] : [],
    )
    // First of all: a result that came meanwhile ends the call, and what the user has just answered must not be dropped.
    for (const { key } of fitting) this.#open.delete(key)
    this.#attach(exchange)
    if (this.#open.size > 0) this.#park()
    for (const { question, answer } of fitting) answerQuestion(question, { kind: 'result', result: answer })
  }

  /** Nobody came back in time. */
  expire(): void {
    this.#hooks.gone(this)
    this.#releaseQuestions(false)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.end({ kind: 'expired' }), GRACE_MS)
    this.#timer.unref()
  }

  end(reason: AbortReason): void {
    clearTimeout(this.#timer)
    this.#detach()
    this.#hooks.gone(this)
    this.#releaseQuestions(false)
    this.#upstream.abort(reason)
  }

  #receive(frame: Frame): void | Promise<void> {
    if (this.#upstream.reason || this.#isDone)
      return frame.kind === 'question' ? this.#release(frame, this.#isDone) : undefined
    if (frame.kind === 'question') return this.#ask(frame)
    const exchange = this.#attached
    if (!exchange) return this.#keep(frame)
    if (frame.kind === 'notice') return this.#forward(exchange, frame)
    this.#finish()
    return deliver(exchange.sink, frame) // from here on this call lets no other frame through
  }

  #ask(question: Question): void {
    const { capabilities } = (this.#attached ?? this.origin).caller
    const refusal = refusalOf(capabilities, question.method, question.params)
    if (refusal) return question.answer({ kind: 'error', error: refusal })
    const wanted = question.key ?? `q${++this.#asked}`
    const key = this.#open.has(wanted) ? `${wanted}-${++this.#asked}` : wanted
    this.#open.set(key, question)
    question.withdrawn.onAbort(() => this.#open.delete(key))
    if (!this.#attached || this.#timer) return
    this.#timer = setTimeout(() => this.#gathered(), GATHER_MS)
  }

  #gathered(): void {
    this.#timer = undefined
    if (this.#attached && this.#open.size > 0) this.#park()
  }

  /** Ends the client's request with what is asked; the upstream call goes on. */
  #park(): void {
    const exchange = this.#attached
    if (!exchange) return
    const asked = [...this.#open].map(([key, { method, params }]) => [key, asInputRequest(method, params)])
    const inputRequests: Record<string, Json> = Object.fromEntries(asked)
    for (const question of this.#open.values()) this.#shown.add(question)
    this.#detach()
    const requestState = this.#hooks.park(this)
    this.#timer = setTimeout(() => this.expire(), this.#hooks.ttlMs)
    this.#timer.unref()
    void deliver(exchange.sink, {
      kind: 'result',
      result: Json.of({ resultType: 'input_required', inputRequests, requestState }),
    })
  }

  #attach(exchange: Exchange): void {
    this.#attached = exchange
    this.#timer = undefined
    this.#detachSignal = exchange.signal.onAbort(reason => this.end(reason))
    this.#bufferedBytes = 0
    for (const frame of this.#buffer.splice(0)) void deliver(kept => this.#receive(kept), frame)
  }

  #detach(): void {
    this.#detachSignal()
    this.#attached = undefined
  }

  #finish(): void {
    this.#isDone = true
    clearTimeout(this.#timer)
    this.#detach()
    this.#hooks.gone(this)
    this.#releaseQuestions(true)
  }

  #releaseQuestions(isAnswered: boolean): void {
    const questions = [...this.#open.values()]
    this.#open.clear()
    for (const question of questions) this.#release(question, isAnswered)
  }

  /** A call the server has answered did not own what it still asks: that is not cancelled, but asked elsewhere. */
  #release(question: Question, isAnswered: boolean): void {
    if (question.handBack && (isAnswered || isAboutSession(question.method))) return question.handBack()
    answerQuestion(question, this.#shown.has(question) ? abandoned(question.method) : UNSEEN)
  }

  #keep(frame: Frame): void {
    if (isProgress(frame)) {
      const known = this.#buffer.findIndex(isProgress)
      for (const before of known >= 0 ? this.#buffer.splice(known, 1) : []) this.#bufferedBytes -= bytesOf(before)
    }
    const kept = compact(frame)
    const bytes = this.#bufferedBytes + bytesOf(kept)
    if (frame.kind === 'notice' && (this.#buffer.length >= MOST_BUFFERED || bytes > MOST_BUFFERED_BYTES)) return
    this.#buffer.push(kept)
    this.#bufferedBytes = bytes
    this.#hooks.grew(this)
  }

  /** Progress goes out under the token of the request that waits now, and never backwards. */
  #forward(exchange: Exchange, frame: Frame & { kind: 'notice' }): void | Promise<void> {
    if (!isProgress(frame)) return exchange.sink(frame)
    const token = exchange.params.at('_meta', 'progressToken')
    const progress = frame.params.get('progress')?.asNumber() ?? 0
    if (!token || progress <= this.#progress) return
    this.#progress = progress
    return exchange.sink({ ...frame, params: frame.params.with('progressToken', token) })
  }
}

const compact = (frame: Frame): Frame => {
  if (frame.kind === 'result') return { ...frame, result: frame.result.compact() }
  return frame.kind === 'notice' ? { ...frame, params: frame.params.compact() } : frame
}

const bytesOf = (frame: Frame): number => {
  if (frame.kind === 'result') return frame.result.retained
  return frame.kind === 'notice' ? frame.params.retained : 0
}

const isProgress = (frame: Frame): boolean => frame.kind === 'notice' && frame.method === 'notifications/progress'

const asInputRequest = (method: string, params: Json): Json => {
  const meta = params.get('_meta')?.without('progressToken')
  const bare = meta && (meta.entries().length === 0 ? params.without('_meta') : params.with('_meta', meta))
  return Json.of({ method, params: bare ?? params })
}
