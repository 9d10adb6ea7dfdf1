import type {
  AnswerQuestion,
  McpClientEvents,
  McpRequestOptions,
  QuestionAnswer,
  ReceivedResult,
} from './mcp-client.ts'
import { type JsonObject, type McpError, type ReceivedMessage, rpcFailure } from './messages.ts'
import { dispatchNotice, NOTICE, readLog, readProgress } from './notices.ts'

interface PendingRequest {
  readonly options: McpRequestOptions
  readonly resolve: (result: ReceivedResult) => void
  readonly reject: (error: McpError) => void
}

type ServerRequest = Extract<ReceivedMessage, { kind: 'request' }>

const METHOD_NOT_FOUND = -32601
const REFUSED = -1 // as the specification's example of a user who rejects sampling

/** The requests of a session that wait for their answers; matches what arrives with them. */
export class PendingRequests {
  readonly #pending = new Map<unknown, PendingRequest>()
  readonly #asked = new Map<unknown, AbortController>() // open questions, by the id of the server's request
  readonly #events: McpClientEvents
  readonly #send: (message: JsonObject) => void

  constructor(events: McpClientEvents, send: (message: JsonObject) => void) {
    this.#events = events
    this.#send = send
  }

  begin(id: number, options: McpRequestOptions): Promise<ReceivedResult> {
    return new Promise((resolve, reject) => this.#pending.set(id, { options, resolve, reject }))
  }

  /** Takes a message; `via` is the request on whose stream it came. */
  take(message: ReceivedMessage, via?: number): void {
    const request = this.#requestOf(message, via)
    request?.options.onWire?.({ direction: 'received', at: Date.now(), text: message.text })
    switch (message.kind) {
      case 'result':
        this.#pending.delete(message.id)
        return request?.resolve({ result: message.result, text: message.text })
      case 'error':
        return this.fail(message.id, rpcFailure(message.error, message.text))
      case 'request':
        return this.#ask(message, request?.options)
      case 'notification':
        return this.#notice(message.method, message.params, request?.options)
    }
  }

  /** The request that a message belongs to: by its id, its progress token, its stream, or because there is only one. */
  #requestOf(message: ReceivedMessage, via: number | undefined): PendingRequest | undefined {
    if (message.kind === 'result' || message.kind === 'error') return this.#pending.get(message.id)
    if (message.kind === 'notification' && message.method === NOTICE.progress)
      return this.#pending.get(message.params.progressToken)
    const onStream = via === undefined ? undefined : this.#pending.get(via)
    const belongs = message.kind === 'request' || message.method === NOTICE.message
    return onStream ?? (belongs ? [...this.#pending.values()].at(-1) : undefined)
  }

  #notice(method: string, params: JsonObject, options: McpRequestOptions | undefined): void {
    if (method === NOTICE.progress) return options?.onProgress?.(readProgress(params))
    if (method === NOTICE.message && options?.onLog) return options.onLog(readLog(params))
    if (method === NOTICE.cancelled) return this.#asked.get(params.requestId)?.abort()
    dispatchNotice(method, params, this.#events)
  }

  #ask(message: ServerRequest, options: McpRequestOptions | undefined): void {
    const { id, method, params } = message
    const respond = (content: JsonObject): void => {
      const answer = { jsonrpc: '2.0', id, ...content }
      this.#asked.delete(id)
      options?.onWire?.({ direction: 'sent', at: Date.now(), text: JSON.stringify(answer) })
      this.#send(answer)
    }
    if (method === 'ping') return respond({ result: {} })
    if (!ASKED.has(method))
      return respond({ error: { code: METHOD_NOT_FOUND, message: `Method not found: ${method}` } })
    const withdrawn = new AbortController()
    this.#asked.set(id, withdrawn)
    const answer: AnswerQuestion = options?.onQuestion ?? this.#events.onQuestion
    answer({ key: String(id), method, params, withdrawn: withdrawn.signal }).then(
      given => !withdrawn.signal.aborted && respond(answerContent(given)),
      (error: unknown) => !withdrawn.signal.aborted && respond({ error: { code: REFUSED, message: String(error) } }),
    )
  }

  fail(id: unknown, error: McpError): void {
    const request = this.#pending.get(id)
    this.#pending.delete(id)
    request?.reject(error)
  }

  /** Ends everything that waits. */
  failAll(error: McpError): void {
    for (const id of [...this.#pending.keys()]) this.fail(id, error)
    for (const asked of this.#asked.values()) asked.abort()
    this.#asked.clear()
  }
}

/** The questions that this client answers. */
export const ASKED: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list'])

const answerContent = (answer: QuestionAnswer): JsonObject =>
  answer.kind === 'result' ? { result: answer.result } : { error: { code: REFUSED, message: answer.message } }
