import { META } from '../../protocol/meta.ts'
import { isMethodOf } from '../../protocol/methods.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { stringifyExact } from '../exact-json.ts'
import { requestHeaders, requestMessage } from './envelope.ts'
import { pause, readResponse, sendToGateway, untilAborted } from './gateway-stream.ts'
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
const GRACE_MS = 500 // for a call to end whose questions were cancelled
const PARKED = /^gw2\./ // the state of a call that the gateway keeps open: it may be asked for again
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
  #lastToken: string | undefined

  constructor(endpoint: McpEndpoint, events: McpClientEvents) {
    this.#endpoint = {
      ...endpoint,
      token: async () => {
        this.#lastToken = await endpoint.token()
        return this.#lastToken
      },
    }
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
    let received = await this.#send(method, params, options)
    for (let round = 0; round < MOST_ROUNDS; round++) {
      if (received.result.resultType !== 'input_required') return received
      received = await this.#nextRound(method, params, received.result, options)
    }
    throw new McpError('invalid', `The server kept asking after ${MOST_ROUNDS} rounds`)
  }

  /** Asks the user what an `input_required` result asks, and sends the retry; resolves with what that is answered with. */
  async #nextRound(
    method: string,
    params: JsonObject,
    { inputRequests, requestState }: JsonObject,
    options: McpRequestOptions,
  ): Promise<ReceivedResult> {
    const asked = isObject(inputRequests) ? Object.entries(inputRequests) : []
    let state: JsonObject = requestState === undefined ? {} : { requestState }
    const retry = (more: JsonObject = {}) => this.#send(method, { ...params, ...more, ...state }, options)
    if (asked.length === 0) {
      await pause(EMPTY_ROUND_MS, options.signal ?? this.#closed.signal)
      return retry()
    }
    const ended = new AbortController()
    const giveUp = (): void => ended.abort()
    for (const signal of [options.signal, this.#closed.signal]) signal?.addEventListener('abort', giveUp)
    let checking: Promise<void> = Promise.resolve()
    const over = new Promise<ReceivedResult>((resolve, reject) => {
      ended.signal.addEventListener('abort', () => reject(new McpError('cancelled', 'Cancelled')))
      /** A call that still waits answers with the same questions and another state; any other answer ends the round. */
      const check = async (): Promise<void> => {
        if (ended.signal.aborted || !PARKED.test(String(state.requestState))) return
        const again = await retry()
        if (!isSameRound(again.result, asked)) return resolve(again)
        state = { requestState: again.result.requestState }
      }
      const stop = options.onWaiting?.(() => {
        checking = checking.then(check).catch(reject)
      })
      ended.signal.addEventListener('abort', () => stop?.())
    })
    over.catch(() => {})
    try {
      const answers = Promise.all(asked.map(each => this.#ask(each, ended.signal, options)))
      answers.catch(() => {})
      const found = await Promise.race([answers, over])
      if (!Array.isArray(found)) return found as ReceivedResult
      await checking // it may have changed the state
      return await retry({ inputResponses: Object.fromEntries(found) })
    } catch (error) {
      if (error instanceof McpError && error.reason === 'cancelled')
        this.#cancelQuestions(method, { ...params, ...state }, asked)
      throw error
    } finally {
      ended.abort()
    }
  }

  async #ask(
    [key, request]: [string, unknown],
    withdrawn: AbortSignal,
    options: McpRequestOptions,
  ): Promise<[string, JsonObject]> {
    const { method, params } = isObject(request) ? request : {}
    if (typeof method !== 'string' || !ASKED.has(method))
      throw new McpError('invalid', `The server asked what this client cannot answer: ${String(method)}`)
    const answer = options.onQuestion ?? this.#events.onQuestion
    const given = await answer({ key, method, params: isObject(params) ? params : {}, withdrawn })
    // This revision has no message for a refusal: the client gives up the call.
    if (given.kind === 'refuse') throw new McpError('cancelled', given.message)
    return [key, given.result]
  }

  /** The gateway would keep the call for an answer that never comes: its elicitations are cancelled, and then the request. */
  #cancelQuestions(method: string, params: JsonObject, asked: readonly [string, unknown][]): void {
    const keys = asked.flatMap(([key, request]) =>
      isObject(request) && request.method === 'elicitation/create' ? [key] : [],
    )
    if (keys.length === 0) return
    const inputResponses = Object.fromEntries(keys.map(key => [key, { action: 'cancel' }]))
    const { version, capabilities, logLevel } = this.#endpoint
    const given = { ...params, inputResponses }
    const described = { revision: MODERN, version, capabilities, logLevel, method, params: given, id: ++this.#lastId }
    const token = this.#lastToken // the page may be closed before another one came
    sendToGateway(
      { ...this.#endpoint, token: () => Promise.resolve(token) },
      {
        ...{ method: 'POST', url: this.#endpoint.url, headers: requestHeaders(described) },
        ...{ body: stringifyExact(requestMessage(described)), keepalive: true, signal: AbortSignal.timeout(GRACE_MS) },
      },
    ).catch(() => {})
  }

  /** Sends one request. Closing its stream cancels it. */
  async #send(method: string, params: JsonObject, options: McpRequestOptions): Promise<ReceivedResult> {
    const id = ++this.#lastId
    const { onWire, inputSchema } = options
    const { version, capabilities, logLevel } = this.#endpoint
    const described = { revision: MODERN, version, capabilities, logLevel, method, params, id, inputSchema }
    const text = stringifyExact(requestMessage(described))
    const signal = options.signal ? AbortSignal.any([options.signal, this.#closed.signal]) : this.#closed.signal
    const token = await untilAborted(this.#endpoint.token(), signal) // before that, nothing is on the wire
    onWire?.({ direction: 'sent', at: Date.now(), text })
    options.signal?.addEventListener('abort', () =>
      onWire?.({
        direction: 'sent',
        at: Date.now(),
        text: '',
        note: 'The stream was closed: that cancels the request',
      }),
    )
    const request = { method: 'POST' as const, url: this.#endpoint.url, headers: requestHeaders(described), body: text }
    const response = await sendToGateway(
      { ...this.#endpoint, token: () => Promise.resolve(token) },
      { ...request, signal },
    )
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

  notify(method: string): Promise<void> {
    return Promise.reject(new McpError('invalid', `Revision ${MODERN} has no notification ${method}`))
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

/** Whether a result asks what was asked before. */
const isSameRound = ({ resultType, inputRequests }: JsonObject, asked: readonly [string, unknown][]): boolean =>
  resultType === 'input_required' &&
  isObject(inputRequests) &&
  Object.keys(inputRequests).sort().join('\n') ===
    asked
      .map(([key]) => key)
      .sort()
      .join('\n')

/** Whether a server says that it announces changes of its lists. */
const announcesChanges = (capabilities: JsonObject): boolean =>
  Object.values(capabilities).some(each => isObject(each) && each.listChanged === true)
