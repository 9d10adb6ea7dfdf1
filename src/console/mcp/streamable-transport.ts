import { pause, readResponse, sendToGateway } from './gateway-stream.ts'
import type { LegacyTransport, SentRequest } from './legacy-client.ts'
import type { McpEndpoint } from './mcp-client.ts'
import { McpError, type ReceivedMessage } from './messages.ts'
import type { StreamPosition } from './sse-parser.ts'

const SESSION = 'mcp-session-id'
const RETRY = { firstMs: 500, longestMs: 15_000 }
const MOST_FAILURES = 5 // attempts to resume a stream that bring nothing, one after the other
const SETTLED_MS = 5000 // a stream that was open for so long did not fail
const ENDED = 'The stream ended without an answer'
const NOT_RESUMED = 'The stream ended before the answer and could not be resumed'

const isLost = (error: unknown): boolean => error instanceof McpError && error.reason === 'network'

/** Streamable HTTP with a session: a POST for each message, its response as JSON or as events, and a GET for the rest. */
export class StreamableTransport implements LegacyTransport {
  readonly #endpoint: McpEndpoint
  readonly #closed = new AbortController()
  #onMessage: (message: ReceivedMessage, via?: number) => void = () => {}
  #session: string | undefined
  #headers: Readonly<Record<string, string>> = {}

  constructor(endpoint: McpEndpoint) {
    this.#endpoint = endpoint
  }

  async open(onMessage: (message: ReceivedMessage, via?: number) => void): Promise<void> {
    this.#onMessage = onMessage
  }

  async send(text: string, headers: Readonly<Record<string, string>>, request?: SentRequest): Promise<void> {
    const response = await sendToGateway(this.#endpoint, {
      method: 'POST',
      url: this.#endpoint.url,
      headers: { ...headers, ...this.#sessionHeader() },
      body: text,
      signal: this.#closed.signal,
    })
    if (response.status === 404 && this.#session !== undefined)
      throw new McpError('session-lost', 'The session has ended')
    this.#session ??= response.headers.get(SESSION) ?? undefined
    this.#headers = headers
    const position: StreamPosition = {}
    try {
      await readResponse(response, message => this.#onMessage(message, request?.id), position)
    } catch (error) {
      if (position.lastId === undefined || !isLost(error)) throw error
    }
    if (request !== undefined && !request.ended.aborted) await this.#resume(request, position)
  }

  /** Asks for the rest of a stream until the request has ended: the gateway may close streams on purpose. */
  async #resume({ id, ended }: SentRequest, position: StreamPosition): Promise<void> {
    if (position.lastId === undefined) throw new McpError('network', ENDED)
    const signal = AbortSignal.any([ended, this.#closed.signal])
    for (let failures = 0; failures < MOST_FAILURES; failures++) {
      await pause(position.retryMs ?? RETRY.firstMs * 2 ** failures, signal)
      const before: string | undefined = position.lastId
      const startedAt = Date.now()
      try {
        const response = await this.#get(before, signal)
        if (response.status >= 400 && response.status < 500) break // the gateway no longer has the stream
        if (response.status >= 500) throw new McpError('network', NOT_RESUMED)
        await readResponse(response, message => this.#onMessage(message, id), position)
      } catch (error) {
        if (!signal.aborted && !isLost(error)) throw error
      }
      if (signal.aborted) return
      if (position.lastId !== before || Date.now() - startedAt > SETTLED_MS) failures = -1
    }
    throw new McpError('network', NOT_RESUMED)
  }

  #get(lastId: string | undefined, signal: AbortSignal): Promise<Response> {
    const { 'content-type': _type, ...headers } = this.#headers
    return sendToGateway(this.#endpoint, {
      method: 'GET',
      url: this.#endpoint.url,
      headers: {
        ...headers,
        ...this.#sessionHeader(),
        accept: 'text/event-stream',
        ...(lastId !== undefined && { 'last-event-id': lastId }),
      },
      signal,
    })
  }

  #sessionHeader(): Record<string, string> {
    return this.#session === undefined ? {} : { [SESSION]: this.#session }
  }

  listen(onLive: (isLive: boolean) => void): void {
    void this.#listenAgain(onLive)
  }

  async #listenAgain(onLive: (isLive: boolean) => void): Promise<void> {
    const { signal } = this.#closed
    const position: StreamPosition = {}
    let delay = RETRY.firstMs
    while (!signal.aborted) {
      try {
        const response = await this.#get(position.lastId, signal)
        if (response.status === 404 || response.status === 405) return onLive(false) // the next request connects again
        if (!response.ok) throw new McpError('http', `status ${response.status}`)
        onLive(true)
        delay = RETRY.firstMs
        await readResponse(response, message => this.#onMessage(message), position)
      } catch {
        // it is opened again
      }
      onLive(false)
      await pause(delay, signal)
      delay = Math.min(2 * delay, RETRY.longestMs)
    }
  }

  close(): void {
    if (this.#session !== undefined && !this.#closed.signal.aborted) {
      const { 'content-type': _type, ...headers } = this.#headers
      const request = {
        method: 'DELETE' as const,
        url: this.#endpoint.url,
        headers: { ...headers, ...this.#sessionHeader() },
      }
      sendToGateway(this.#endpoint, request).catch(() => {}) // the gateway ends idle sessions itself
    }
    this.#closed.abort()
  }
}
