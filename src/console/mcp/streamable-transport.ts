import { pause, readEvents, readResponse, sendToGateway } from './gateway-stream.ts'
import type { LegacyTransport } from './legacy-client.ts'
import type { McpEndpoint } from './mcp-client.ts'
import { McpError, type ReceivedMessage, readMessages } from './messages.ts'

const SESSION = 'mcp-session-id'
const RETRY = { firstMs: 500, longestMs: 15_000 }
const ENDED = 'The stream ended without an answer'

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

  async send(text: string, headers: Readonly<Record<string, string>>, id?: number): Promise<void> {
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
    let isAnswered = id === undefined
    await readResponse(response, message => {
      if ((message.kind === 'result' || message.kind === 'error') && message.id === id) isAnswered = true
      this.#onMessage(message, id)
    })
    if (!isAnswered) throw new McpError('network', ENDED)
  }

  #sessionHeader(): Record<string, string> {
    return this.#session === undefined ? {} : { [SESSION]: this.#session }
  }

  listen(onLive: (isLive: boolean) => void): void {
    void this.#listenAgain(onLive)
  }

  async #listenAgain(onLive: (isLive: boolean) => void): Promise<void> {
    const { signal } = this.#closed
    let [delay, last] = [RETRY.firstMs, undefined as string | undefined]
    const { 'content-type': _type, ...headers } = this.#headers
    while (!signal.aborted) {
      try {
        const response = await sendToGateway(this.#endpoint, {
          method: 'GET',
          url: this.#endpoint.url,
          headers: {
            ...headers,
            ...this.#sessionHeader(),
            accept: 'text/event-stream',
            ...(last !== undefined && { 'last-event-id': last }),
          },
          signal,
        })
        if (response.status === 404 || response.status === 405) return onLive(false) // the next request connects again
        if (!response.ok) throw new McpError('http', `status ${response.status}`)
        onLive(true)
        delay = RETRY.firstMs
        await readEvents(response, event => {
          last = event.id ?? last
          if (event.data !== '') for (const message of readMessages(event.data)) this.#onMessage(message)
        })
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
