import { readEvents, readResponse, sendToGateway } from './gateway-stream.ts'
import type { LegacyTransport } from './legacy-client.ts'
import type { McpEndpoint } from './mcp-client.ts'
import { McpError, type ReceivedMessage, readMessages } from './messages.ts'

const OPENS_MS = 10_000

/** HTTP+SSE: a GET is the channel on which everything comes; it names the URL that takes messages. */
export class ChannelTransport implements LegacyTransport {
  readonly #endpoint: McpEndpoint
  readonly #closed = new AbortController()
  #postUrl: string | undefined
  #onLive: (isLive: boolean) => void = () => {}

  constructor(endpoint: McpEndpoint) {
    this.#endpoint = endpoint
  }

  async open(onMessage: (message: ReceivedMessage) => void, onEnd: (error: McpError) => void): Promise<void> {
    const url = `${this.#endpoint.url}/sse`
    const response = await sendToGateway(this.#endpoint, {
      method: 'GET',
      url,
      headers: { accept: 'text/event-stream' },
      signal: this.#closed.signal,
    })
    if (!response.ok) return readResponse(response, () => {})
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => {
        reject(new McpError('timeout', `The channel named no endpoint within ${OPENS_MS / 1000} s`))
        this.#closed.abort()
      }, OPENS_MS)
      readEvents(response, ({ event, data }) => {
        if (event === 'endpoint') {
          clearTimeout(late)
          const next = new URL(data, url)
          if (next.origin !== new URL(url).origin)
            return reject(new McpError('invalid', `The channel named an endpoint of another origin: ${data}`))
          this.#postUrl = next.href
          resolve()
        } else if (event === 'message') for (const message of readMessages(data)) onMessage(message)
      })
        .catch((error: unknown) => (error instanceof McpError ? error : undefined))
        .then(error => {
          clearTimeout(late)
          const ended = error ?? new McpError('network', 'The channel was closed')
          reject(ended)
          this.#onLive(false)
          onEnd(ended)
        })
    })
  }

  async send(text: string, headers: Readonly<Record<string, string>>): Promise<void> {
    if (this.#postUrl === undefined) throw new McpError('network', 'The channel is not open')
    const request = { method: 'POST' as const, url: this.#postUrl, headers, body: text, signal: this.#closed.signal }
    const response = await sendToGateway(this.#endpoint, request)
    if (response.status === 404) throw new McpError('session-lost', 'The channel has ended')
    if (!response.ok) await readResponse(response, () => {})
    else await response.body?.cancel()
  }

  listen(onLive: (isLive: boolean) => void): void {
    this.#onLive = onLive
    onLive(true)
  }

  /** The channel is the session: nothing else ends it. */
  close(): void {
    this.#closed.abort()
  }
}
