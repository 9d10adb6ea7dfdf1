import type { Exchange } from '../protocol/exchange.ts'
import type { MessageTap, TappedServer } from '../protocol/message-tap.ts'
import { NOTIFICATIONS } from '../protocol/notifications.ts'
import type { Revision } from '../protocol/revisions.ts'
import type { Message } from '../wire/json-rpc.ts'
import type { ResponseEnd } from './http/response-reader.ts'

// What the flight recorder gets of the traffic with servers. All of this happens only for exchanges that are recorded.

/** How messages travel to a server. */
export interface RecordedTransport {
  readonly link: { readonly name: string }
  readonly dialect: string
  readonly revision: Revision
}

/** The server behind a transport. */
export const tappedServer = ({ link, dialect, revision }: RecordedTransport): TappedServer => ({
  name: link.name,
  dialect,
  revision,
})

/** Records a notification of the client, as it is sent to the server; `headers` is flat. */
export const recordNotification = (
  { record, method }: Pick<Exchange, 'record' | 'method'>,
  transport: RecordedTransport,
  pieces: readonly Buffer[],
  headers?: readonly string[],
): void => record?.tap?.serverMessage(tappedServer(transport), 'out', 'notification', method, pieces, headers)

/** Records an HTTP error: its JSON-RPC error, or a line about the page that came instead. */
export const recordRefusal = (
  tap: MessageTap,
  transport: RecordedTransport,
  id: number,
  { status, error, text }: Extract<ResponseEnd, { readonly kind: 'refused' }>,
  reply: readonly string[] | undefined,
): void => {
  if (error) return recordReceived(tap, transport, id, error, reply)
  const line = Buffer.from(text === undefined ? `HTTP ${status}` : `HTTP ${status}: ${text}`)
  tap.serverMessage(tappedServer(transport), 'in', 'error', undefined, [line], reply)
}

/**
 * Records a message about the call with that id; a request of the server is recorded with the exchange that carries it.
 * `reply` is the head of the HTTP response that brought it.
 */
export const recordReceived = (
  tap: MessageTap,
  transport: RecordedTransport,
  id: number,
  message: Message,
  reply: readonly string[] | undefined,
): void => {
  if (message.kind === 'response') {
    if (message.id.asNumber() === id)
      tap.serverMessage(tappedServer(transport), 'in', 'result', undefined, message, reply)
  } else if (message.kind === 'error') {
    const isOther = message.id?.kind === 'number' && message.id.asNumber() !== id
    if (!isOther) tap.serverMessage(tappedServer(transport), 'in', 'error', undefined, message, reply)
  } else if (message.kind === 'notification') {
    const { method, params } = message
    const isOther = method === NOTIFICATIONS.progress && params.get('progressToken')?.asNumber() !== id
    if (!isOther) tap.serverMessage(tappedServer(transport), 'in', 'notification', method, message)
  }
}
