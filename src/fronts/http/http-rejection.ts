import type { RpcError } from '../../protocol/errors.ts'
import { MissingScopes } from '../../protocol/scopes.ts'
import type { FrontContext, FrontRequest } from './front-request.ts'

/** How an error is sent if it is the whole HTTP response. */
export interface RejectedResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** An error that rejects a request by an HTTP status of its own; undefined: the error is an ordinary answer. */
export const httpRejection = (
  { scopeChallenge }: FrontContext,
  { raw }: FrontRequest,
  error: RpcError,
): RejectedResponse | undefined => {
  if (!(error instanceof MissingScopes) || !scopeChallenge) return undefined
  return { status: 403, headers: { 'www-authenticate': scopeChallenge(raw, error.held, error.missing) } }
}
