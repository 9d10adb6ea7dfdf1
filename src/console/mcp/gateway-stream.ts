import type { McpEndpoint } from './mcp-client.ts'
import { McpError, type ReceivedMessage, readMessages } from './messages.ts'
import { createSseParser, type SseEvent, type StreamPosition } from './sse-parser.ts'

interface StreamRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly keepalive?: boolean | undefined // sent even if the page is closed
}

const UNREACHABLE = 'The gateway does not answer. Check that it is running: dragoman status'
const LOST = 'The connection to the gateway was lost before the answer came. The call may still be running'
const UNAUTHORIZED =
  'The gateway refused the request because the token has expired or may not use this target. Sign in again'

/** Sends an HTTP request with the token of the page. Fails with an McpError if the gateway does not answer. */
export const sendToGateway = async (endpoint: McpEndpoint, request: StreamRequest): Promise<Response> => {
  const { method, url, headers, body, signal, keepalive = false } = request
  const token = await untilAborted(endpoint.token(), signal)
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(url, {
    method,
    headers: { ...headers, ...authorization },
    body: body ?? null,
    signal: signal ?? null,
    keepalive,
  }).catch((error: unknown) => {
    throw isAbort(error) ? new McpError('cancelled', 'Cancelled') : new McpError('network', UNREACHABLE)
  })
  if (response.status === 401) {
    endpoint.onUnauthorized()
    throw new McpError('http', UNAUTHORIZED, { code: 401 })
  }
  return response
}

/** The result of something that cannot be aborted, unless the signal comes first. */
export const untilAborted = <T>(running: Promise<T>, signal: AbortSignal | undefined): Promise<T> =>
  signal === undefined
    ? running
    : new Promise((resolve, reject) => {
        const abort = (): void => reject(new McpError('cancelled', 'Cancelled'))
        if (signal.aborted) abort()
        signal.addEventListener('abort', abort)
        running.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
      })

const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === 'AbortError'

/** Hands over the messages of a response, as JSON or as events, while they come. */
export const readResponse = async (
  response: Response,
  onMessage: (message: ReceivedMessage) => void,
  position: StreamPosition = {},
): Promise<void> => {
  const type = response.headers.get('content-type') ?? ''
  if (type.includes('text/event-stream') && response.ok)
    return readEvents(
      response,
      ({ data }) => {
        if (data === '') return // the first event of a stream has only an id
        for (const message of readMessages(data)) onMessage(message)
      },
      position,
    )
  const text = await response.text().catch((error: unknown) => {
    throw isAbort(error) ? new McpError('cancelled', 'Cancelled') : new McpError('network', LOST)
  })
  if (text === '' && response.ok) return
  if (!type.includes('json')) {
    if (response.ok) return // an acknowledgement such as `Accepted`
    throw httpError(response.status, text.slice(0, 500), text)
  }
  for (const message of readMessages(text)) {
    const isUnmatched = message.kind === 'error' && (message.id === null || message.id === undefined)
    if (isUnmatched) throw httpError(response.status, message.error.message, text, message.error.code)
    onMessage(message)
  }
}

const httpError = (status: number, said: string, text: string, code = status): McpError => {
  const message = said === '' ? `The gateway answered with status ${status}` : said
  return new McpError('http', message, { code, data: { status }, text })
}

/** Reads events until the stream ends; the position is then where to resume it. */
export const readEvents = async (
  response: Response,
  onEvent: (event: SseEvent) => void,
  position: StreamPosition = {},
): Promise<void> => {
  const reader = response.body?.getReader()
  if (!reader) return
  const decoder = new TextDecoder()
  const push = createSseParser(onEvent, position)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      push(decoder.decode(value, { stream: true }))
    }
  } catch (error) {
    if (error instanceof McpError) throw error
    throw isAbort(error) ? new McpError('cancelled', 'Cancelled') : new McpError('network', LOST)
  } finally {
    reader.cancel().catch(() => {}) // it has ended, or its reader has failed
  }
}

/** Waits, unless the signal ends it. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) return resolve()
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
