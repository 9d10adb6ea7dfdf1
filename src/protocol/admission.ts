import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RpcError } from './errors.ts'
import type { Policy } from './policy.ts'

/** The part of a request that is known before its body is read. */
export interface RequestInfo {
  readonly headers: IncomingHttpHeaders
  readonly socket: Socket
  readonly url?: string | undefined
}

/** The caller of a request, or the answer that rejects it before its body is read. */
export type Admission =
  | {
      readonly kind: 'in'
      readonly principal: string | undefined // undefined: anonymous, served in isolation
      readonly policy?: Policy | undefined // of the token
      readonly policyName?: string | undefined
      readonly scopes?: ReadonlySet<string> | undefined // of an OAuth token; undefined: all
      readonly expires?: number | undefined // of an OAuth token, epoch milliseconds: its standing streams end then
      readonly token?: string | undefined // the id of the token; undefined: admitted without one
      readonly isAdmin?: boolean | undefined // the token may change the gateway
      readonly address?: string | undefined // of the client, if another replica has forwarded the request
    }
  | {
      readonly kind: 'out'
      readonly status: number
      readonly error: RpcError
      readonly headers?: Readonly<Record<string, string>>
    }

/**
 * Decides whether a request may use a workspace. The connection is cut if the token of the request becomes invalid
 * before `response` is closed; without a response, before the connection is closed.
 */
export type Admit = (
  request: RequestInfo,
  workspace: string,
  response?: ServerResponse,
) => Admission | Promise<Admission>

/** The tokens that sessions were opened with. */
export interface OpenerTokens {
  /** Whether what was opened with this token may still be used. */
  isValid(id: string | undefined): boolean
  /** Calls `end` when the token is revoked or expires, unless the returned function was called before. */
  onRevoked(id: string | undefined, end: () => void): () => void
}

/** By the request, where its connection is that of a proxy, or of another process of the gateway. */
const clientAddresses = new WeakMap<object, string | undefined>()

/** Says which client a request is from; undefined: it is not known. */
export const setClientAddress = (request: object, address: string | undefined): void =>
  void clientAddresses.set(request, address)

/** The address of the client that has sent a request, as limits, the log and the audit log use it. */
export const clientAddressOf = (request: Pick<RequestInfo, 'socket'>): string | undefined =>
  clientAddresses.has(request) ? clientAddresses.get(request) : request.socket.remoteAddress

const LOOPBACK_V6 = '::1'
const GROUPS = 8
const PREFIX_GROUPS = 4

/** What limits count as one remote address: an IPv4 address, or the /64 network of an IPv6 address. */
export const networkOf = (address: string | undefined): string => {
  if (address === undefined) return 'unknown'
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!address.includes(':') || address === LOOPBACK_V6) return address
  const [head = '', tail = ''] = (address.split('%', 1)[0] ?? '').split('::')
  const [before, after] = [groupsOf(head), groupsOf(tail)]
  const zeros = new Array<string>(Math.max(0, GROUPS - before.length - after.length)).fill('0')
  return `${[...before, ...zeros, ...after].slice(0, PREFIX_GROUPS).join(':')}::/64`
}

const groupsOf = (text: string): string[] => text.split(':').filter(group => group !== '')

/** The owner that sessions, stream logs and rates count for: a principal, or the network of an anonymous caller. */
export const quotaOwner = (principal: string | undefined, address: string | undefined): string =>
  principal === undefined ? `@${networkOf(address)}` : `=${principal}`
