import type { ServerOAuth } from '../../config/snapshot.ts'
import type { GuardedFetch } from '../fetch/guarded-fetch.ts'
import type { LoginRecord, OpenedLogin } from './login-records.ts'
import { CLIENT_CHANGED, identityOf } from './machine.ts'
import type { TokenRecord } from './token-records.ts'
import { requestBearerTokens, sendForm, TokenRefused } from './token-request.ts'

/** What the tokens of a login depend on besides its record. */
export interface RedeemContext {
  readonly fetch: GuardedFetch
  readonly oauth: ServerOAuth | undefined
  readonly from: string // the URL of the configuration that leads to the authorization server
}

/** Exchanges the code of a login for tokens. Rejects with TokenRefused or TokenUnavailable. */
export const redeemCode = async (
  { fetch, oauth, from }: RedeemContext,
  login: LoginRecord,
  code: string,
  { verifier, client: stored }: OpenedLogin,
): Promise<TokenRecord> => {
  const { server, url, principal, request } = login
  const { issuer, tokenEndpoint, signingAlgorithms, revocationEndpoint, redirectUri, resource, scopes } = request
  const client = identityOf(stored, oauth, issuer)
  if (!client) throw new TokenRefused(issuer, CLIENT_CHANGED, 'The configuration has another client now.')
  const granted = await requestBearerTokens(fetch, { url: tokenEndpoint, issuer, signingAlgorithms, from }, client, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
    resource,
  })
  const now = Date.now()
  return {
    ...{ server, url, principal, issuer, tokenEndpoint, signingAlgorithms, revocationEndpoint },
    ...{ client: stored, resource, requested: scopes, granted: granted.scopes ?? scopes },
    ...{ access: granted.access, refresh: granted.refresh, obtained: now, since: now },
    expires: granted.lifetimeMs === undefined ? undefined : now + granted.lifetimeMs,
  }
}

/** Revokes the tokens of a login (RFC 7009); false if the authorization server has not confirmed it. */
export const revokeTokens = async ({ fetch, oauth, from }: RedeemContext, record: TokenRecord): Promise<boolean> => {
  const { revocationEndpoint, issuer, signingAlgorithms, refresh, access } = record
  if (revocationEndpoint === undefined) return false
  const endpoint = { url: revocationEndpoint, issuer, signingAlgorithms, from }
  const params = refresh === undefined ? { token: access } : { token: refresh, token_type_hint: 'refresh_token' }
  const client = identityOf(record.client, oauth, issuer)
  return sendForm(fetch, endpoint, client, params).then(
    ({ status }) => status === 200,
    () => false,
  )
}
