import { readFile } from 'node:fs/promises'
import type { Issuer, ServerOAuth } from '../../config/snapshot.ts'
import type { GuardedFetch } from '../fetch/guarded-fetch.ts'
import { findServer } from './discover.ts'
import { LOGIN_FAILURES, LoginProblem } from './messages.ts'
import { isSameIssuer } from './metadata.ts'
import { configuredMethod } from './register.ts'
import type { StoredClient, TokenRecord } from './token-records.ts'
import {
  type GrantedTokens,
  type OAuthIdentity,
  requestBearerTokens,
  requestTokens,
  type TokenEndpoint,
  TokenRefused,
  TokenUnavailable,
} from './token-request.ts'

/** Grants without a browser. */
export type MachineOAuth = Exclude<ServerOAuth, { readonly grant: 'authorization_code' }>

export const isMachine = (oauth: ServerOAuth | undefined): oauth is MachineOAuth =>
  oauth !== undefined && oauth.grant !== 'authorization_code'

/** The ID token of a principal's sign-in at an issuer of the configuration; undefined if there is none that is valid. */
export type FindIdToken = (principal: string, issuer: string) => Promise<string | undefined>

/** What grants without a browser need. */
export interface MachineContext {
  readonly fetch: GuardedFetch
  readonly issuers: ReadonlyMap<string, Issuer>
  readonly findIdToken: FindIdToken
}

/** A request for tokens of the server at `resource`. */
export interface MachineRequest {
  readonly endpoint: TokenEndpoint
  readonly client: OAuthIdentity | undefined
  readonly principal: string | undefined
  readonly resource: string | undefined
  readonly scopes: readonly string[]
}

/** The caller has not signed in where an identity assertion comes from. */
export class SignInMissing extends Error {
  readonly issuer: string // its name in the configuration

  constructor(issuer: string) {
    super(`the caller has not signed in at "${issuer}"`)
    this.issuer = issuer
  }
}

/** The code of a refusal that a sign-in of the caller would end. */
export const SIGN_IN_MISSING = 'sign_in_missing'
/** The code of a refusal by the gateway itself: the configuration has another client or issuer than the tokens. */
export const CLIENT_CHANGED = 'client_changed'

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token'

/** The configured client; undefined if there is none. */
export const configuredClient = (
  oauth: ServerOAuth | undefined,
  authMethods?: readonly string[],
): OAuthIdentity | undefined => {
  const { clientId: id, clientSecret: secret, privateKey } = oauth ?? {}
  return id === undefined || !oauth
    ? undefined
    : { id, secret, privateKey, method: configuredMethod(oauth, authMethods) }
}

/** A stored client of an issuer with its secrets; undefined if the configuration has another client or issuer now. */
export const identityOf = (
  stored: StoredClient | undefined,
  oauth: ServerOAuth | undefined,
  issuer: string,
): OAuthIdentity | undefined => {
  if (stored?.kind !== 'configured') return stored
  const configured = isIssuerOf(oauth, issuer) ? configuredClient(oauth) : undefined
  return configured?.id === stored.id ? { ...configured, method: stored.method } : undefined
}

/** False if the configuration names another issuer: the credentials in it are not for this one. */
export const isIssuerOf = (oauth: ServerOAuth | undefined, issuer: string): boolean =>
  oauth?.issuer === undefined || isSameIssuer(oauth.issuer, issuer)

/** Where a record's tokens come from. */
export const tokenEndpointOf = (record: TokenRecord, from: string): TokenEndpoint => ({
  url: record.tokenEndpoint,
  issuer: record.issuer,
  signingAlgorithms: record.signingAlgorithms,
  from,
})

/** Gets tokens without a browser. Rejects with TokenRefused, TokenUnavailable, SignInMissing or LoginProblem. */
export const requestMachineTokens = async (
  context: MachineContext,
  oauth: MachineOAuth,
  request: MachineRequest,
): Promise<GrantedTokens> => {
  const { endpoint, client, resource, scopes } = request
  const scope = scopes.length > 0 ? scopes.join(' ') : undefined
  const grant =
    oauth.grant === 'client_credentials'
      ? { grant_type: 'client_credentials' }
      : { grant_type: JWT_BEARER, assertion: await findAssertion(context, oauth, request) }
  return requestBearerTokens(context.fetch, endpoint, client, { ...grant, scope, resource })
}

/** As `requestMachineTokens`, for tokens that there were before. Rejects with TokenRefused or TokenUnavailable. */
export const renewMachineTokens = (
  context: MachineContext,
  oauth: MachineOAuth,
  request: MachineRequest,
): Promise<GrantedTokens> =>
  requestMachineTokens(context, oauth, request).catch((error: unknown) => {
    if (error instanceof SignInMissing) throw new TokenRefused(error.issuer, SIGN_IN_MISSING, undefined)
    throw error instanceof LoginProblem ? new TokenUnavailable(error.message) : error
  })

const findAssertion = async (
  context: MachineContext,
  oauth: Exclude<MachineOAuth, { readonly grant: 'client_credentials' }>,
  request: MachineRequest,
): Promise<string> => {
  if (oauth.grant === 'id_jag') return exchangeIdToken(context, oauth.idp, request)
  if (oauth.assertionFile === undefined) return oauth.assertion ?? ''
  const text = await readFile(oauth.assertionFile, 'utf8').catch(({ code = '' }: NodeJS.ErrnoException) => {
    throw new LoginProblem(LOGIN_FAILURES.noAssertion(code))
  })
  return text.trim()
}

/** Exchanges the caller's ID token for an assertion that the server's authorization server accepts. */
const exchangeIdToken = async (
  { fetch, issuers, findIdToken }: MachineContext,
  name: string,
  { endpoint, principal, resource, scopes }: MachineRequest,
): Promise<string> => {
  const idp = issuers.get(name)
  const idToken = principal === undefined ? undefined : await findIdToken(principal, name)
  if (!idp || idToken === undefined) throw new SignInMissing(name)
  const found = idp.endpoints?.token === undefined ? await findServer(fetch, idp.url, idp.url) : undefined
  const url = idp.endpoints?.token ?? found?.tokenEndpoint
  if (url === undefined) throw new TokenRefused(idp.url, 'no_token_endpoint', undefined)
  const client = {
    id: idp.clientId ?? '',
    secret: idp.clientSecret,
    method: configuredMethod(idp, found?.authMethods),
  }
  const { access } = await requestTokens(fetch, { url, issuer: idp.url, from: idp.url }, client, {
    grant_type: TOKEN_EXCHANGE,
    requested_token_type: ID_JAG,
    subject_token: idToken,
    subject_token_type: ID_TOKEN,
    audience: endpoint.issuer,
    resource,
    scope: scopes.length > 0 ? scopes.join(' ') : undefined,
  })
  return access
}
