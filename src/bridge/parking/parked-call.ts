import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import { answerQuestion, deliver } from '../../protocol/deliver.ts'
import type { Dispatch, Exchange, Frame, Question } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { asInputRequest } from '../../protocol/running-task.ts'
import { Json } from '../../wire/json/json.ts'
import { abandoned, isAboutSession, isValidAnswer, NOT_ASKED, questionRefusal } from '../client-questions.ts'

const GATHER_MS = 30 // for further questions that go into the same result
const GRACE_MS = 2000 // for the server to finish once its questions are cancelled
const MAX_BUFFERED = 100
const MAX_BUFFERED_BYTES = 1024 * 1024 // of notifications

interface ParkedCallHooks {
  readonly ttlMs: number
  /** Stores the call and returns the `requestState` of this round. */
  park(call: ParkedCall): string
  /** The call keeps more bytes in memory than before. */
  grew(call: ParkedCall): void
  ended(call: ParkedCall): void
}

/**
 * One call of a modern client to a server that asks while it runs. It is attached to a request of the client, or parked: then
 * it buffers what the server sends.
 */
export class ParkedCall {
  id: string | undefined // once it was parked
  readonly server: string
  readonly origin: Exchange
  round = 1

  readonly #hooks: ParkedCallHooks
  readonly #upstream = new Abort()
  readonly #open = new Map<string, Question>()
  readonly #shown = new Set<Question>() // sent to the client
  readonly #buffer: Frame[] = []
  #attached: Exchange | undefined
  #stopListening: () => void = () => {}
  #bufferedBytes = 0
  #isDone = false
  #asked = 0
  #progress = Number.NEGATIVE_INFINITY
  #expiresAt = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(server: string, origin: Exchange, hooks: ParkedCallHooks) {
    this.server = server
    this.origin = origin
    this.#hooks = hooks
  }

  /** Bytes that it keeps in memory while it is parked: its request, and what the server has sent since. */
  get bytes(): number {
    return this.origin.params.retained + this.#bufferedBytes
  }

  /** By the time of day: timers stand still while a machine sleeps. */
  get isExpired(): boolean {
    return Date.now() > this.#expiresAt
  }

  start(dispatch: Dispatch): void {
    this.#attach(this.origin)
    if (this.origin.task) this.origin.signal.onAbort(reason => this.end(reason)) // also while it is parked
    dispatch({ ...this.origin, signal: this.#upstream, sink: frame => this.#receive(frame) })
  }

  /** The client retries with answers: valid ones go to the server, the other questions are asked again. */
  resume(exchange: Exchange): void {
    this.round++
    clearTimeout(this.#timer)
    const responses = exchange.params.get('inputResponses')
    const answers = [...this.#open].map(([key, question]) => ({ key, question, answer: responses?.get(key) }))
    const valid = answers.flatMap(({ key, question, answer }) =>
      isValidAnswer(question.method, answer) ? [{ key, question, answer }] : [],
    )
    if (exchange.record?.tap) this.origin.record?.tap?.continueIn(exchange.record.tap)
    // First: a result that arrived meanwhile ends the call, and would cancel the questions just answered.
    for (const { key } of valid) this.#open.delete(key)
    this.#attach(exchange)
    if (this.#open.size > 0) this.#park()
    for (const { question, answer } of valid) answerQuestion(question, { kind: 'result', result: answer })
  }

  /** The client did not retry in time. */
  expire(): void {
    this.#hooks.ended(this)
    this.#releaseQuestions(false)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.end({ kind: 'expired' }), GRACE_MS)
    this.#timer.unref()
  }

  end(reason: AbortReason): void {
    clearTimeout(this.#timer)
    this.#detach()
    this.#hooks.ended(this)
    // The questions of a task are the server's: it asks the next process again, or is told to cancel the task.
    if (this.origin.task) this.#open.clear()
    this.#releaseQuestions(false)
    this.#upstream.abort(reason)
  }

  #receive(frame: Frame): void | Promise<void> {
    if (this.#upstream.reason || this.#isDone)
      return frame.kind === 'question' ? this.#release(frame, this.#isDone) : undefined
    if (frame.kind === 'question') return this.#ask(frame)
    const exchange = this.#attached
    if (!exchange) return this.#addToBuffer(frame)
    if (frame.kind === 'notice') return this.#forward(exchange, frame)
    this.#finish()
    return deliver(exchange.sink, frame)
  }

  #ask(question: Question): void {
    const { capabilities } = (this.#attached ?? this.origin).caller
    const refusal = questionRefusal(capabilities, question.method, question.params)
    if (refusal) return question.answer({ kind: 'error', error: refusal })
    this.#keep(this.origin.record?.trace?.ask(question) ?? question)
  }

  /** Keeps a question that can be asked; further ones may follow at once, so that one result carries all of them. */
  #keep(question: Question): void {
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

  /** Ends the client's request with the open questions; the call to the server goes on. */
  #park(): void {
    const exchange = this.#attached
    if (!exchange) return
    const asked = [...this.#open].map(([key, { method, params }]) => [key, asInputRequest({ method, params })])
    const inputRequests: Record<string, Json> = Object.fromEntries(asked)
    for (const question of this.#open.values()) this.#shown.add(question)
    this.#detach()
    const requestState = this.#hooks.park(this)
    this.#expiresAt = Date.now() + this.#hooks.ttlMs
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
    this.#stopListening = exchange.signal.onAbort(reason => this.end(reason))
    this.#bufferedBytes = 0
    for (const frame of this.#buffer.splice(0)) void deliver(buffered => this.#receive(buffered), frame)
  }

  #detach(): void {
    this.#stopListening()
    this.#attached = undefined
  }

  #finish(): void {
    this.#isDone = true
    clearTimeout(this.#timer)
    this.#detach()
    this.#hooks.ended(this)
    this.#releaseQuestions(true)
  }

  #releaseQuestions(isAnswered: boolean): void {
    const questions = [...this.#open.values()]
    this.#open.clear()
    for (const question of questions) this.#release(question, isAnswered)
  }

  /** If the server has answered the call, its open questions belong to the session: another call carries them. */
  #release(question: Question, isAnswered: boolean): void {
    if (question.handBack && (isAnswered || isAboutSession(question.method))) return question.handBack()
    answerQuestion(question, this.#shown.has(question) ? abandoned(question.method) : NOT_ASKED)
  }

  #addToBuffer(frame: Frame): void {
    if (isProgress(frame)) {
      const known = this.#buffer.findIndex(isProgress)
      for (const before of known >= 0 ? this.#buffer.splice(known, 1) : []) this.#bufferedBytes -= bytesOf(before)
    }
    const kept = compact(frame)
    const bytes = this.#bufferedBytes + bytesOf(kept)
    if (frame.kind === 'notice' && (this.#buffer.length >= MAX_BUFFERED || bytes > MAX_BUFFERED_BYTES)) return
    this.#buffer.push(kept)
    this.#bufferedBytes = bytes
    this.#hooks.grew(this)
  }

  /** Progress has the token of the request that is attached now, and only increases. */
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

const isProgress = (frame: Frame): boolean => frame.kind === 'notice' && frame.method === NOTIFICATIONS.progress
