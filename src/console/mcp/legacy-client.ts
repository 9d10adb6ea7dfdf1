import { isMethodOf } from '../../protocol/methods.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { stringifyExact } from '../exact-json.ts'
import { initializeParams, requestHeaders, requestMessage } from './envelope.ts'
import { untilAborted } from './gateway-stream.ts'
import type {
  McpClient,
  McpClientEvents,
  McpEndpoint,
  McpRequestOptions,
  ReceivedResult,
  ServerAbout,
} from './mcp-client.ts'
import { isObject, type JsonObject, McpError, type ReceivedMessage } from './messages.ts'
import { NOTICE, readAbout } from './notices.ts'
import { PendingRequests } from './pending-requests.ts'

/** What a transport has to know of a request. */
export interface SentRequest {
  readonly id: number
  readonly ended: AbortSignal // it is answered, has failed or is cancelled
}

/** How the messages of a session travel. */
export interface LegacyTransport {
  /** Prepares the way to the server. Messages that come are handed over, with the request on whose stream they came. */
  open(onMessage: (message: ReceivedMessage, via?: number) => void, onEnd: (error: McpError) => void): Promise<void>
  /** Sends a message; resolves when all that answers it here has been read, or the request is no longer of interest. */
  send(text: string, headers: Readonly<Record<string, string>>, request?: SentRequest): Promise<void>
  /** Called after the handshake: listens to what the server sends without being asked. */
  listen(onLive: (isLive: boolean) => void): void
  close(): void
}

/** A client of the revisions with a session. */
export class LegacyClient implements McpClient {
  readonly revision: Revision
  readonly #endpoint: McpEndpoint
  readonly #events: McpClientEvents
  readonly #createTransport: () => LegacyTransport
  readonly #pending: PendingRequests
  readonly #watched = new Set<string>()
  #transport: LegacyTransport | undefined
  #ready: Promise<ServerAbout> | undefined
  #lastId = 0

  constructor(
    revision: Revision,
    endpoint: McpEndpoint,
    events: McpClientEvents,
    createTransport: () => LegacyTransport,
  ) {
    this.revision = revision
    this.#endpoint = endpoint
    this.#events = events
    this.#createTransport = createTransport
    this.#pending = new PendingRequests(events, message => void this.#post(message).catch(() => {}))
  }

  connect(): Promise<ServerAbout> {
    this.#ready ??= this.#handshake().catch((error: unknown) => {
      this.#ready = undefined
      throw error
    })
    return this.#ready
  }

  async #handshake(): Promise<ServerAbout> {
    const transport = this.#createTransport()
    this.#transport?.close()
    this.#transport = transport
    const onEnd = (error: McpError): void => {
      if (this.#transport !== transport) return
      this.#ready = undefined
      this.#pending.failAll(error)
    }
    await transport.open((message, via) => this.#pending.take(message, via), onEnd)
    const { result, text } = await this.#exchange('initialize', initializeParams(this.revision, this.#endpoint))
    const about = readAbout(result, result.serverInfo, text)
    await this.#post({ jsonrpc: '2.0', method: NOTICE.initialized })
    transport.listen(this.#events.onLive)
    if (isObject(about.capabilities.logging))
      await this.#exchange('logging/setLevel', { level: this.#endpoint.logLevel ?? 'debug' }).catch(() => {})
    for (const uri of this.#watched) await this.#exchange('resources/subscribe', { uri }).catch(() => {})
    return about
  }

  async request(method: string, params: JsonObject, options: McpRequestOptions = {}): Promise<ReceivedResult> {
    if (!isMethodOf(method, this.revision))
      throw new McpError('invalid', `Revision ${this.revision} has no method ${method}`)
    return this.#inSession(() => this.#exchange(method, params, options), options.signal)
  }

  /** Sends in the session; again, in a new one, if the gateway no longer knows it: then it has taken nothing. */
  async #inSession<Answer>(send: () => Promise<Answer>, signal?: AbortSignal): Promise<Answer> {
    const session = this.connect()
    await untilAborted(session, signal)
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof McpError) || error.reason !== 'session-lost') throw error
      if (this.#ready === session) this.#ready = undefined // else another message has opened the next one
      await untilAborted(this.connect(), signal)
      return send()
    }
  }

  async #exchange(method: string, params: JsonObject, options: McpRequestOptions = {}): Promise<ReceivedResult> {
    const id = ++this.#lastId
    const { revision } = this
    const text = stringifyExact(requestMessage({ ...this.#endpoint, revision, method, params, id }))
    const answer = this.#pending.begin(id, options)
    const cancel = (): void => {
      this.#pending.fail(id, new McpError('cancelled', 'Cancelled'))
      const notice = {
        jsonrpc: '2.0',
        method: NOTICE.cancelled,
        params: { requestId: id, reason: 'The user cancelled' },
      }
      options.onWire?.({ direction: 'sent', at: Date.now(), text: JSON.stringify(notice) })
      this.#post(notice).catch(() => {}) // the call has ended for this client
    }
    const ended = new AbortController()
    options.signal?.addEventListener('abort', cancel, { once: true })
    options.onWire?.({ direction: 'sent', at: Date.now(), text })
    this.#transport
      ?.send(text, requestHeaders({ revision, method, params }), { id, ended: ended.signal })
      .catch((error: unknown) => this.#pending.fail(id, asMcpError(error)))
    return answer.finally(() => {
      ended.abort()
      options.signal?.removeEventListener('abort', cancel)
    })
  }

  async #post(message: JsonObject): Promise<void> {
    const headers = requestHeaders({ revision: this.revision, method: '', params: {} })
    await this.#transport?.send(stringifyExact(message), headers)
  }

  async notify(method: string): Promise<void> {
    await this.#inSession(() => this.#post({ jsonrpc: '2.0', method }))
  }

  async watch(uri: string, isOn: boolean): Promise<void> {
    if (isOn) this.#watched.add(uri)
    else this.#watched.delete(uri)
    await this.request(isOn ? 'resources/subscribe' : 'resources/unsubscribe', { uri })
  }

  close(): void {
    this.#ready = undefined
    this.#pending.failAll(new McpError('cancelled', 'The connection was closed'))
    this.#transport?.close()
    this.#transport = undefined
  }
}

const asMcpError = (error: unknown): McpError =>
  error instanceof McpError ? error : new McpError('invalid', error instanceof Error ? error.message : String(error))
