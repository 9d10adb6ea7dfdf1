import { Json } from '../wire/json/json.ts'
import { ERRORS, type RpcError } from './errors.ts'

/** The message for a caller whose token lacks scopes. */
export const lacksScopes = (missing: readonly string[]): string =>
  `Forbidden: insufficient scope, the token lacks ${missing.map(scope => JSON.stringify(scope)).join(', ')}`

/**
 * The error of a call whose token lacks scopes; nothing was sent to a server. As a whole HTTP response it has status 403 and a
 * challenge, so that the client can ask its user for more scopes.
 */
export class MissingScopes implements RpcError {
  readonly code: number
  readonly message: string
  readonly data: Json
  readonly held: ReadonlySet<string>
  readonly missing: readonly string[]

  constructor(held: ReadonlySet<string>, missing: readonly string[]) {
    this.code = ERRORS.invalidRequest.code
    this.message = lacksScopes(missing)
    this.data = Json.of({ reason: 'insufficient_scope', scopes: missing })
    this.held = held
    this.missing = missing
  }
}
