import * as oauth from 'oauth4webapi'
import type { Issuer } from '../../config/snapshot.ts'
import { codeText } from '../error-codes.ts'
import { FetchFailed, type GuardedFetch, readJsonObject } from '../fetch/guarded-fetch.ts'
import type { Claims } from '../verify/claims.ts'

/** What an issuer says about a person. */
export interface IssuerIdentity {
  readonly claims: Claims
  readonly refreshToken?: string | undefined
  readonly idToken?: string | undefined
}

/** What the browser keeps, sealed, while its visitor signs in at the issuer. */
export interface PendingLogin {
  readonly state: string
  readonly verifier: string
  readonly nonce: string
  readonly isOffline: boolean // a refresh token was asked for that outlives the session at the issuer
}

/** Why a sign-in at an issuer failed. `ended`: the issuer no longer knows the session. */
export class SignInFailed extends Error {
  readonly reason: 'refused' | 'ended' | 'unavailable'
  readonly code: string | undefined // of the issuer's error
  readonly quoted: string | undefined // its own words: for the visitor, not for the log, because they may repeat what it was sent

  constructor(
    reason: 'refused' | 'ended' | 'unavailable',
    message: string,
    { code, quoted }: { readonly code?: string; readonly quoted?: string | undefined } = {},
  ) {
    super(message)
    this.reason = reason
    this.code = code
    this.quoted = quoted?.slice(0, LONGEST_QUOTE)
  }

  get status(): number {
    return this.reason === 'unavailable' ? 502 : 403
  }
}

/** The code flow with PKCE at an issuer, and its refresh. Rejects with SignInFailed. */
export interface IssuerLogin {
  begin(issuer: Issuer, isOffline?: boolean): Promise<{ readonly url: string; readonly pending: PendingLogin }>
  finish(issuer: Issuer, pending: PendingLogin, params: URLSearchParams): Promise<IssuerIdentity>
  /** `known` are the claims so far: they stay if the issuer says nothing new, and are replaced as a whole otherwise. */
  refresh(issuer: Issuer, refreshToken: string, known: Claims): Promise<IssuerIdentity>
}

/** An issuer, as its metadata or the configuration describes it. */
interface IssuerEndpointsFound {
  readonly as: oauth.AuthorizationServer
  readonly isOpenId: boolean // it issues ID tokens; otherwise only its userinfo endpoint says who the person is
}

const METADATA_MS = 60 * 60_000
const LONGEST_QUOTE = 300
const OFFLINE = 'offline_access'
const WANTED_SCOPES = ['openid', 'profile', 'email', OFFLINE]

/** `redirectUri`: another one for each issuer, so that the answer of one is never sent to another (RFC 9700, 4.4). */
export const createIssuerLogin = (fetch: GuardedFetch, redirectUri: (issuer: Issuer) => string): IssuerLogin => {
  const found = new Map<string, { readonly at: number; readonly endpoints: IssuerEndpointsFound }>() // by issuer name

  const discover = async (issuer: Issuer): Promise<IssuerEndpointsFound> => {
    const known = found.get(issuer.name)
    if (known && Date.now() - known.at < METADATA_MS) return known.endpoints
    const endpoints = configuredEndpoints(issuer) ?? (await readMetadata(issuer, optionsFor(issuer)))
    found.set(issuer.name, { at: Date.now(), endpoints })
    return endpoints
  }

  const optionsFor = (issuer: Issuer) => ({
    [oauth.customFetch]: adaptFetch(fetch, issuer.url),
    [oauth.allowInsecureRequests]: true, // the guarded fetch decides
  })

  /** ID tokens of some issuers are thin: what the configuration needs besides is read from the userinfo endpoint. */
  const readClaims = async (
    issuer: Issuer,
    { as, isOpenId }: IssuerEndpointsFound,
    response: oauth.TokenEndpointResponse,
    known: Claims,
  ): Promise<Claims> => {
    const claims: Claims = { ...oauth.getValidatedIdTokenClaims(response) }
    const isComplete = neededClaims(issuer).every(name => name in claims)
    if (as.userinfo_endpoint === undefined || (isOpenId && isComplete)) return claims
    const answer = await fetch(as.userinfo_endpoint, {
      headers: { authorization: `Bearer ${response.access_token}` },
      from: issuer.url,
    })
    const info = answer.status === 200 ? readJsonObject(answer) : undefined
    if (!info && !isOpenId) throw new SignInFailed('refused', `${issuer.name} did not say who you are.`)
    if (isOpenId) return info && info.sub === (claims.sub ?? known.sub) ? { ...info, ...claims } : claims
    return { ...info, sub: info?.sub ?? (info?.id === undefined ? undefined : String(info.id)) }
  }

  const identify = async (
    issuer: Issuer,
    endpoints: IssuerEndpointsFound,
    response: oauth.TokenEndpointResponse,
    known: Claims = {},
  ): Promise<IssuerIdentity> => {
    const claims = await readClaims(issuer, endpoints, response, known)
    if (known.sub !== undefined && claims.sub !== undefined && claims.sub !== known.sub)
      throw new SignInFailed('ended', `${issuer.name} answered for another person.`)
    const isSilent = claims.sub === undefined
    return {
      claims: isSilent ? known : { ...claims, iss: issuer.url },
      refreshToken: response.refresh_token,
      idToken: response.id_token,
    }
  }

  return {
    begin: (issuer, isOffline = true) =>
      explained(issuer, async () => {
        const { as, isOpenId } = await discover(issuer)
        const scopes = scopesFor(as).filter(scope => isOffline || scope !== OFFLINE)
        const pending = {
          isOffline: isOpenId && scopes.includes(OFFLINE),
          state: oauth.generateRandomState(),
          verifier: oauth.generateRandomCodeVerifier(),
          nonce: oauth.generateRandomNonce(),
        }
        const url = new URL(as.authorization_endpoint ?? '')
        const params = {
          response_type: 'code',
          client_id: issuer.clientId ?? '',
          redirect_uri: redirectUri(issuer),
          state: pending.state,
          code_challenge: await oauth.calculatePKCECodeChallenge(pending.verifier),
          code_challenge_method: 'S256',
          ...(isOpenId && { scope: scopes.join(' '), nonce: pending.nonce }),
        }
        for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
        return { url: url.href, pending }
      }),

    finish: (issuer, { state, verifier, nonce }, params) =>
      explained(issuer, async () => {
        const endpoints = await discover(issuer)
        const { as, isOpenId } = endpoints
        const client = clientOf(issuer)
        const callback = validateCallback(issuer, as, client, params, state)
        const options = optionsFor(issuer)
        const authentication = authenticationOf(issuer, as)
        const answer = await oauth.authorizationCodeGrantRequest(
          as,
          client,
          authentication,
          callback,
          redirectUri(issuer),
          verifier,
          options,
        )
        const expected = isOpenId ? { expectedNonce: nonce, requireIdToken: true } : {}
        return identify(issuer, endpoints, await oauth.processAuthorizationCodeResponse(as, client, answer, expected))
      }),

    refresh: (issuer, refreshToken, known) =>
      explained(issuer, async () => {
        const endpoints = await discover(issuer)
        const { as } = endpoints
        const client = clientOf(issuer)
        const authentication = authenticationOf(issuer, as)
        const options = optionsFor(issuer)
        const answer = await oauth.refreshTokenGrantRequest(as, client, authentication, refreshToken, options)
        const response = await oauth.processRefreshTokenResponse(as, client, answer)
        const identity = await identify(issuer, endpoints, response, known)
        return { ...identity, refreshToken: identity.refreshToken ?? refreshToken }
      }),
  }
}

const validateCallback = (
  { name }: Issuer,
  as: oauth.AuthorizationServer,
  client: oauth.Client,
  params: URLSearchParams,
  state: string,
): URLSearchParams => {
  try {
    return oauth.validateAuthResponse(as, client, params, state)
  } catch (error) {
    if (!(error instanceof oauth.OperationProcessingError)) throw error
    throw new SignInFailed('refused', `This answer of ${name} does not belong to the sign-in of this browser.`)
  }
}

const clientOf = ({ clientId = '' }: Issuer): oauth.Client => ({ client_id: clientId })

const authenticationOf = ({ clientSecret, endpoints }: Issuer, as: oauth.AuthorizationServer): oauth.ClientAuth => {
  if (clientSecret === undefined) return oauth.None()
  const isPost =
    endpoints?.token !== undefined || as.token_endpoint_auth_methods_supported?.includes('client_secret_post')
  return isPost ? oauth.ClientSecretPost(clientSecret) : oauth.ClientSecretBasic(clientSecret)
}

/** Without metadata an issuer does not say which one it uses. */
const SIGNING_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
]

/** `endpoints` of the configuration, for issuers without metadata such as GitHub. */
const configuredEndpoints = ({ url, endpoints }: Issuer): IssuerEndpointsFound | undefined => {
  if (endpoints?.authorization === undefined || endpoints.token === undefined) return undefined
  const { authorization, token, userinfo } = endpoints
  const as: oauth.AuthorizationServer = {
    issuer: url,
    authorization_endpoint: authorization,
    token_endpoint: token,
    id_token_signing_alg_values_supported: SIGNING_ALGORITHMS,
  }
  return userinfo === undefined
    ? { as, isOpenId: true }
    : { as: { ...as, userinfo_endpoint: userinfo }, isOpenId: false }
}

const readMetadata = async (
  issuer: Issuer,
  options: oauth.HttpRequestOptions<'GET'>,
): Promise<IssuerEndpointsFound> => {
  const url = new URL(issuer.url)
  const read = async (algorithm: 'oidc' | 'oauth2') =>
    oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, { ...options, algorithm }))
  const as = await read('oidc').catch(first => read('oauth2').catch(() => Promise.reject(first)))
  if (as.authorization_endpoint === undefined || as.token_endpoint === undefined)
    throw new SignInFailed('refused', `The metadata of ${issuer.url} names no authorization and token endpoint.`)
  return { as, isOpenId: true }
}

const scopesFor = ({ scopes_supported }: oauth.AuthorizationServer): readonly string[] =>
  WANTED_SCOPES.filter(scope => scope === 'openid' || scopes_supported?.includes(scope))

/** The names of claims that the configuration looks at. */
const neededClaims = ({ principal, grants }: Issuer): readonly string[] => [
  ...(principal === undefined ? [] : [principal, ...(principal === 'email' ? ['email_verified'] : [])]),
  ...grants.flatMap(({ where }) => Object.keys(where)).map(path => path.split('.')[0] ?? path),
]

const adaptFetch =
  (fetch: GuardedFetch, from: string) =>
  async (
    url: string,
    init: { readonly method: string; readonly headers: Record<string, string>; readonly body?: unknown },
  ): Promise<Response> => {
    const body = init.body === undefined || init.body === null ? undefined : String(init.body)
    const method = init.method === 'POST' ? 'POST' : 'GET'
    const answer = await fetch(url, { method, headers: init.headers, ...(body !== undefined && { body }), from })
    const headers = Object.entries(answer.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((each): [string, string] => [name, each]),
    )
    return new Response(answer.body.length === 0 ? null : new Uint8Array(answer.body), {
      status: answer.status,
      headers,
    })
  }

/** Turns every error into a SignInFailed with a message for the visitor. */
const explained = async <T>(issuer: Issuer, work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SignInFailed) throw error
    throw explain(issuer, error)
  }
}

const explain = ({ name, url }: Issuer, error: unknown): SignInFailed => {
  if (error instanceof FetchFailed)
    return new SignInFailed('unavailable', `${url} could not be used: ${error.message}.`)
  if (error instanceof oauth.AuthorizationResponseError) {
    const { error: code, error_description: quoted } = error
    return new SignInFailed('refused', `${name} did not sign you in (${codeText(code)}).`, { code, quoted })
  }
  if (error instanceof oauth.ResponseBodyError) {
    const { error: code, error_description: quoted, status } = error
    const reason = code === 'invalid_grant' ? 'ended' : status >= 500 ? 'unavailable' : 'refused'
    const text = `${name} rejected the request of this gateway (${codeText(code)}).`
    return new SignInFailed(reason, text, { code, quoted })
  }
  const text = error instanceof Error ? error.message : String(error)
  return new SignInFailed('unavailable', `The answer of ${url} is not valid: ${text.slice(0, 300)}.`)
}
