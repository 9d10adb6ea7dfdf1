import { Json } from '../wire/json/json.ts'
import type { AbortReason } from './cancellation.ts'
import { answerQuestion } from './deliver.ts'
import { type RpcError, rpcError } from './errors.ts'
import type { Answer, Frame, Question } from './exchange.ts'
import { NOTIFICATIONS } from './notifications.ts'
import { isFinal, type TaskStatus } from './task-info.ts'
import { TASK_LIMITS, type TaskState } from './tasks.ts'

interface RunningTaskOptions {
  readonly ttlMs: number
  readonly keyPrefix?: string | undefined // of questions; differs in each process that runs the task
  /** Called after each change that a client can see. */
  readonly onChange: () => void
  /** Stops the request; called once, when the task is cancelled. */
  readonly onCancel: (reason: AbortReason) => void
}

const CANCELLED = 'The task was cancelled'
const MAX_MESSAGE = 1000 // characters
const MAX_QUESTION_BYTES = 4 * 1024 * 1024 // of all open questions
const TOO_LONG: Answer = {
  kind: 'error',
  error: rpcError('invalidParams', `The open questions of a task have at most ${MAX_QUESTION_BYTES} bytes`),
}
const TOO_MANY: Answer = {
  kind: 'error',
  error: rpcError('invalidParams', `A task asks at most ${TASK_LIMITS.questions} questions`),
}
const NO_LONGER: Answer = { kind: 'error', error: rpcError('internal', 'The task has ended') }

/** Turns the frames of one request into the state of a task: questions wait for answers, the last frame ends it. */
export class RunningTask {
  readonly createdAt: number
  readonly ttlMs: number
  readonly #options: RunningTaskOptions
  readonly #open = new Map<string, Question>()
  readonly #used = new Set<string>() // keys of this task: none is used twice
  #status: TaskStatus = 'working'
  #message: string | undefined
  #updatedAt: number
  #result: Json | undefined
  #error: RpcError | undefined

  constructor(options: RunningTaskOptions, createdAt = Date.now()) {
    this.#options = options
    this.ttlMs = options.ttlMs
    this.createdAt = createdAt
    this.#updatedAt = createdAt
  }

  get state(): TaskState {
    return {
      status: this.#status,
      message: this.#message,
      createdAt: this.createdAt,
      updatedAt: this.#updatedAt,
      ttlMs: this.ttlMs,
      pollMs: TASK_LIMITS.pollMs,
      inputs: this.#status === 'input_required' ? this.#inputs() : undefined,
      result: this.#result,
      error: this.#error,
    }
  }

  get isOver(): boolean {
    return isFinal(this.#status)
  }

  /** The questions that wait for an answer, by key. */
  get questions(): ReadonlyMap<string, Question> {
    return this.#open
  }

  receive(frame: Frame): void {
    if (this.isOver) {
      if (frame.kind === 'question') answerQuestion(frame, NO_LONGER)
      return
    }
    if (frame.kind === 'question') return this.#ask(frame)
    if (frame.kind === 'notice') return this.#notice(frame.method, frame.params)
    if (frame.kind === 'failure') return this.#fail(frame.error)
    const result = frame.result.compact()
    if (result.retained <= TASK_LIMITS.resultBytes) return this.#end('completed', { result })
    const text = `The result has ${result.retained} bytes; a task keeps at most ${TASK_LIMITS.resultBytes}. Call the tool without a task`
    this.#fail(rpcError('internal', text, Json.of({ reason: 'result_too_large' })))
  }

  /** Answers an open question. */
  answer(key: string, reply: Answer): void {
    const question = this.#open.get(key)
    if (!question) return
    this.#remove(key)
    answerQuestion(question, reply)
  }

  cancel(text: string = CANCELLED): void {
    if (this.isOver) return
    this.#end('cancelled', { message: text }, () => this.#options.onCancel({ kind: 'cancelled', text }))
  }

  #fail({ code, message, data }: RpcError): void {
    const isSmall = data !== undefined && data.compact().retained <= TASK_LIMITS.resultBytes
    this.#end('failed', { error: { code, message, ...(isSmall && { data: data.compact() }) }, message })
  }

  #ask(question: Question): void {
    if (this.#used.size >= TASK_LIMITS.questions) return answerQuestion(question, TOO_MANY)
    if (this.#questionBytes() + question.params.retained > MAX_QUESTION_BYTES) return answerQuestion(question, TOO_LONG)
    const wanted = `${this.#options.keyPrefix ?? ''}${question.key ?? `q${this.#used.size + 1}`}`
    const key = this.#used.has(wanted) ? `${wanted}-${this.#used.size + 1}` : wanted
    this.#used.add(key)
    this.#open.set(key, question)
    question.withdrawn.onAbort(() => this.#remove(key))
    if (this.#open.has(key)) this.#change('input_required')
  }

  #remove(key: string): void {
    if (!this.#open.delete(key) || this.isOver) return
    this.#change(this.#open.size > 0 ? 'input_required' : 'working')
  }

  /** Tasks have no progress of their own: its message tells what the task does. */
  #notice(method: string, params: Json): void {
    const message = method === NOTIFICATIONS.progress ? params.get('message')?.asString() : undefined
    const text = message?.slice(0, MAX_MESSAGE)
    if (text === undefined || text === this.#message) return
    this.#message = text
    this.#change(this.#status)
  }

  /** `stop` is called before open questions are answered: what then asks, or answers, comes too late. */
  #end(
    status: TaskStatus,
    { result, error, message }: { readonly result?: Json; readonly error?: RpcError; readonly message?: string },
    stop: () => void = () => {},
  ): void {
    this.#result = result
    this.#error = error
    this.#message = (message ?? this.#message)?.slice(0, MAX_MESSAGE)
    const open = [...this.#open.values()]
    this.#open.clear()
    this.#change(status)
    stop()
    for (const question of open) answerQuestion(question, NO_LONGER)
  }

  #change(status: TaskStatus): void {
    this.#status = status
    this.#updatedAt = Math.max(Date.now(), this.#updatedAt)
    this.#options.onChange()
  }

  #questionBytes(): number {
    let bytes = 0
    for (const { params } of this.#open.values()) bytes += params.retained
    return bytes
  }

  #inputs(): Json {
    return Json.of(Object.fromEntries([...this.#open].map(([key, question]) => [key, asInputRequest(question)])))
  }
}

/** A question as `inputRequests` contain it. */
export const asInputRequest = ({ method, params }: Pick<Question, 'method' | 'params'>): Json => {
  const meta = params.get('_meta')?.without('progressToken')
  const bare = meta && (meta.entries().length === 0 ? params.without('_meta') : params.with('_meta', meta))
  return Json.of({ method, params: bare ?? params })
}
