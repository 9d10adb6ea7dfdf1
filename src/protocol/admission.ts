import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RpcError } from './errors.ts'
import type { Policy } from './policy.ts'

/** What is known of a request before its body is read. */
export interface RequestInfo {
  readonly headers: IncomingHttpHeaders
  readonly socket: Socket
}

/** Who a request is from, or the answer that keeps it out before its body is read. */
export type Admission =
  | {
      readonly kind: 'in'
      readonly principal: string | undefined // undefined: unknown, served in isolation
      readonly policy?: Policy | undefined // of the token
    }
  | {
      readonly kind: 'out'
      readonly status: number
      readonly error: RpcError
      readonly headers?: Readonly<Record<string, string>>
    }

/**
 * Decides who may come into a workspace; handed in by the composition root. The connection is cut if the token of the
 * request becomes invalid before `response` is closed; without a response, before the connection is.
 */
export type Admit = (knock: RequestInfo, workspace: string, response?: ServerResponse) => Admission | Promise<Admission>

/** Calls `end` when the token of a request is revoked or expires, unless the returned function was called before. */
export type OnTokenRevoked = (knock: RequestInfo, end: () => void) => () => void
