import type { IncomingMessage } from 'node:http'
import type { Sse } from '../../config/snapshot.ts'
import type { RpcError } from '../../protocol/errors.ts'
import { Json } from '../../wire/json/json.ts'
import { notificationPieces } from '../../wire/json-rpc.ts'

const PREFIX = /^(\/[\w.~!$&'()*+,;=:@%-]+)+$/ // never `//host`, which would be another origin

/** Where a client posts its messages, as it sees it from outside. */
export const endpointOf = (
  { headers }: Pick<IncomingMessage, 'headers'>,
  id: string,
  form: Sse['endpoint'],
): string => {
  const prefix = first(headers['x-forwarded-prefix']).replace(/\/$/, '')
  const path = `${PREFIX.test(prefix) ? prefix : ''}/messages/?session_id=${id}`
  if (form === 'relative') return path
  const scheme = first(headers['x-forwarded-proto']) === 'https' ? 'https' : 'http'
  return `${scheme}://${headers.host}${path}`
}

/** The nearest of what a chain of proxies wrote. */
const first = (header: string | string[] | undefined): string =>
  String(header ?? '')
    .split(',', 1)[0]
    ?.trim() ?? ''

/** The data of a lifecycle event, which only those understand who know it. */
export const lifecycle = (method: 'streamOpened' | 'ping' | 'streamClosed', params: Record<string, string>): Buffer[] =>
  notificationPieces(method, Json.of(params))

/** The moment, as lifecycle events write it. */
export const timestamp = (): string => new Date().toISOString()

/** The data of an `error` event. */
export const fault = ({ code, message }: RpcError): Buffer[] => [Json.of({ code, message }).toBytes()]
