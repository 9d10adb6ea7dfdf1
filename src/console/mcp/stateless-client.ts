import { META } from '../../protocol/meta.ts'
import { isMethodOf } from '../../protocol/methods.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { stringifyExact } from '../exact-json.ts'
import { requestHeaders, requestMessage } from './envelope.ts'
import { pause, readResponse, sendToGateway } from './gateway-stream.ts'
import type {
  McpClient,
  McpClientEvents,
  McpEndpoint,
  McpRequestOptions,
  ReceivedResult,
  ServerAbout,
} from './mcp-client.ts'
import { isObject, type JsonObject, McpError, rpcFailure } from './messages.ts'
import { dispatchNotice, NOTICE, readAbout, readLog, readProgress } from './notices.ts'
import { ASKED } from './pending-requests.ts'

const MOST_ROUNDS = 20
const EMPTY_ROUND_MS = 500
const RETRY = { firstMs: 500, longestMs: 15_000 }

/** A client of 2026-07-28: each request is independent, and a server asks with its result. */
export class StatelessClient implements McpClient {
  readonly revision = MODERN
  readonly #endpoint: McpEndpoint
  readonly #events: McpClientEvents
  readonly #watched = new Set<string>()
  readonly #closed = new AbortController()
  #listening: AbortController | undefined
  #lastId = 0

  constructor(endpoint: McpEndpoint, events: McpClientEvents) {
    this.#endpoint = endpoint
    this.#events = events
  }

  async connect(): Promise<ServerAbout> {
    const { result, text } = await this.request('server/discover', {})
    const meta = isObject(result._meta) ? result._meta : {}
    const about = readAbout(result, meta[META.serverInfo], text)
    if (!this.#listening && announcesChanges(about.capabilities)) void this.#listenAgain()
    return about
  }

  async request(method: string, params: JsonObject, options: McpRequestOptions = {}): Promise<ReceivedResult> {
    if (!isMethodOf(method, MODERN)) throw new McpError('invalid', `Revision ${MODERN} has no method ${method}`)
    let sent = params
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const received = await this.#send(method, sent, options)
      if (received.result.resultType !== 'input_required') return received
      sent = { ...params, ...(await this.#answers(received.result, options)) }
    }
    throw new McpError('invalid', `The server kept asking after ${MOST_ROUNDS} rounds`)
  }

  /** Asks the user what an `input_required` result asks; returns what the retry carries. */
  async #answers({ inputRequests, requestState }: JsonObject, options: McpRequestOptions): Promise<JsonObject> {
    const state = requestState === undefined ? {} : { requestState }
    const asked = isObject(inputRequests) ? Object.entries(inputRequests) : []
    if (asked.length === 0) {
      await pause(EMPTY_ROUND_MS, options.signal ?? this.#closed.signal)
      return state
    }
    const withdrawn = new AbortController()
    options.signal?.addEventListener('abort', () => withdrawn.abort())
    const answer = options.onQuestion ?? this.#events.onQuestion
    const cancelled = new Promise<never>((_resolve, reject) => {
      withdrawn.signal.addEventListener('abort', () => reject(new McpError('cancelled', 'Cancelled')))
    })
    const answers = asked.map(async ([key, request]): Promise<[string, JsonObject]> => {
      const { method, params } = isObject(request) ? request : {}
      if (typeof method !== 'string' || !ASKED.has(method))
        throw new McpError('invalid', `The server asked what this client cannot answer: ${String(method)}`)
      const given = await answer({ key, method, params: isObject(params) ? params : {}, withdrawn: withdrawn.signal })
      // This revision has no message for a refusal: the client gives up the call.
      if (given.kind === 'refuse') throw new McpError('cancelled', given.message)
      return [key, given.result]
    })
    try {
      const responses = await Promise.race([Promise.all(answers), cancelled])
      return { inputResponses: Object.fromEntries(responses), ...state }
    } finally {
      cancelled.catch(() => {})
      withdrawn.abort()
    }
  }

  /** Sends one request. Closing its stream cancels it. */
  async #send(method: string, params: JsonObject, options: McpRequestOptions): Promise<ReceivedResult> {
    const id = ++this.#lastId
    const { onWire, inputSchema } = options
    const { version, capabilities } = this.#endpoint
    const described = { revision: MODERN, version, capabilities, method, params, id, inputSchema }
    const text = stringifyExact(requestMessage(described))
    onWire?.({ direction: 'sent', at: Date.now(), text })
    options.signal?.addEventListener('abort', () =>
      onWire?.({
        direction: 'sent',
        at: Date.now(),
        text: '',
        note: 'The stream was closed: that cancels the request',
      }),
    )
    const signal = options.signal ? AbortSignal.any([options.signal, this.#closed.signal]) : this.#closed.signal
    const request = { method: 'POST' as const, url: this.#endpoint.url, headers: requestHeaders(described), body: text }
    const response = await sendToGateway(this.#endpoint, { ...request, signal })
    let received: ReceivedResult | McpError | undefined
    await readResponse(response, message => {
      onWire?.({ direction: 'received', at: Date.now(), text: message.text })
      if (message.kind === 'result') received = { result: message.result, text: message.text }
      else if (message.kind === 'error') received = rpcFailure(message.error, message.text)
      else if (message.kind === 'notification') this.#notice(message.method, message.params, options)
    })
    if (received === undefined) throw new McpError('network', 'The stream ended without an answer')
    if (received instanceof McpError) throw received
    return received
  }

  #notice(method: string, params: JsonObject, options: McpRequestOptions): void {
    if (method === NOTICE.progress) options.onProgress?.(readProgress(params))
    else if (method === NOTICE.message && options.onLog) options.onLog(readLog(params))
    else dispatchNotice(method, params, this.#events)
  }

  async watch(uri: string, isOn: boolean): Promise<void> {
    if (isOn) this.#watched.add(uri)
    else this.#watched.delete(uri)
    await new Promise<void>(resolve => void this.#listenAgain(resolve))
  }

  /** Subscribes to changes of lists and to the watched resources; the former subscription ends when this one has begun. */
  async #listenAgain(onBegun: () => void = () => {}): Promise<void> {
    const before = this.#listening
    const current = new AbortController()
    this.#listening = current
    const signal = AbortSignal.any([current.signal, this.#closed.signal])
    const notifications = {
      toolsListChanged: true,
      promptsListChanged: true,
      resourcesListChanged: true,
      ...(this.#watched.size > 0 && { resourceSubscriptions: [...this.#watched] }),
    }
    let delay = RETRY.firstMs
    const onAcknowledged = (): void => {
      before?.abort()
      delay = RETRY.firstMs
      this.#events.onLive(true)
      onBegun()
    }
    while (!signal.aborted) {
      const isRefused = await this.#listen({ notifications }, signal, onAcknowledged).catch(() => false)
      if (signal.aborted) break
      this.#events.onLive(false)
      if (isRefused) break
      await pause(delay, signal)
      delay = Math.min(2 * delay, RETRY.longestMs)
    }
    before?.abort()
    onBegun()
  }

  /** Listens until the stream ends; true if the server does not do that. */
  async #listen(params: JsonObject, signal: AbortSignal, onAcknowledged: () => void): Promise<boolean> {
    const id = ++this.#lastId
    const { version, capabilities } = this.#endpoint
    const described = { revision: MODERN, version, capabilities, method: 'subscriptions/listen', params, id }
    const request = { method: 'POST' as const, url: this.#endpoint.url, headers: requestHeaders(described) }
    const body = stringifyExact(requestMessage(described))
    const response = await sendToGateway(this.#endpoint, { ...request, body, signal })
    let isRefused = false
    await readResponse(response, message => {
      if (message.kind === 'error') isRefused = true
      if (message.kind !== 'notification') return
      if (message.method === NOTICE.acknowledged) onAcknowledged()
      else dispatchNotice(message.method, message.params, this.#events)
    })
    return isRefused
  }

  close(): void {
    this.#closed.abort()
  }
}

/** Whether a server says that it announces changes of its lists. */
const announcesChanges = (capabilities: JsonObject): boolean =>
  Object.values(capabilities).some(each => isObject(each) && each.listChanged === true)
