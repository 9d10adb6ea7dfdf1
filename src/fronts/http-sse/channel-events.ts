import type { IncomingMessage } from 'node:http'
import type { Sse } from '../../config/snapshot.ts'
import type { RpcError } from '../../protocol/errors.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification } from '../../wire/json-rpc.ts'

/** Events that a channel may send besides `endpoint` and those with a JSON-RPC message. */
export interface NamedEvents {
  readonly lifecycle: boolean // `lifecycle`, and `error` before the gateway ends a broken channel
  readonly ping: 'never' | 'oldest' | 'always' // oldest: only while the client speaks 2024-11-05
}

/**
 * The 2024-11-05 transport defines `endpoint` and `message` only, and some of its clients fail on any other event.
 * A GET of `/mcp/<workspace>` belongs to a dialect that has more. `?events=` overrides the default of the endpoint.
 */
export const chooseNamedEvents = (
  openedBy: 'sse' | 'mcp',
  query: URLSearchParams,
  configured: Sse['events'] = [],
): NamedEvents => {
  const inQuery = query.getAll('events').flatMap(names => names.split(',').map(name => name.trim()))
  if (inQuery.length > 0) return toNamedEvents(inQuery)
  return openedBy === 'mcp' ? { lifecycle: true, ping: 'oldest' } : toNamedEvents(configured)
}

const toNamedEvents = (names: readonly string[]): NamedEvents => ({
  lifecycle: names.includes('lifecycle'),
  ping: names.includes('ping') ? 'always' : 'never',
})

const PREFIX = /^(\/[\w.~!$&'()*+,;=:@%-]+)+$/ // never `//host`, which would be another origin

/** The URL a client posts its messages to, as seen from outside a proxy. */
export const endpointOf = (
  { headers }: Pick<IncomingMessage, 'headers'>,
  id: string,
  form: Sse['endpoint'],
): string => {
  const prefix = nearest(headers['x-forwarded-prefix']).replace(/\/$/, '')
  const path = `${PREFIX.test(prefix) ? prefix : ''}/messages/?session_id=${id}`
  if (form === 'relative') return path
  const scheme = nearest(headers['x-forwarded-proto']) === 'https' ? 'https' : 'http'
  return `${scheme}://${headers.host}${path}`
}

/** The first value in a header that a chain of proxies has written. */
const nearest = (header: string | string[] | undefined): string =>
  String(header ?? '')
    .split(',', 1)[0]
    ?.trim() ?? ''

/** The data of a `lifecycle` event. */
export const lifecycleData = (
  method: 'streamOpened' | 'ping' | 'streamClosed',
  params: Record<string, string>,
): Buffer[] => encodeNotification(method, Json.of(params))

/** The data of an `error` event. */
export const errorData = ({ code, message }: RpcError): Buffer[] => [Json.of({ code, message }).toBytes()]
