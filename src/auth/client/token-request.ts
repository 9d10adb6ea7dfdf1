import { codeText, isErrorCode, isTemporary } from '../error-codes.ts'
import { FetchFailed, type FetchResponse, type GuardedFetch, readJsonObject } from '../fetch/guarded-fetch.ts'
import { splitScopes } from './challenge.ts'
import { createClientAssertion } from './client-assertion.ts'
import { boundTexts } from './scopes.ts'

/** The gateway as a client of an authorization server. */
export interface OAuthIdentity {
  readonly id: string
  readonly method: ClientMethod
  readonly secret?: string | undefined
  readonly privateKey?: string | undefined
}

/** How a client authenticates at the token endpoint. */
export type ClientMethod = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'

/** Where tokens are requested. */
export interface TokenEndpoint {
  readonly url: string
  readonly issuer: string
  readonly signingAlgorithms?: readonly string[] | undefined
  readonly from: string // the URL of the configuration that led here
}

/** Tokens, as an authorization server granted them. */
export interface GrantedTokens {
  readonly access: string
  readonly refresh?: string | undefined
  readonly lifetimeMs?: number | undefined // undefined: not known
  readonly scopes?: readonly string[] | undefined // undefined: those that were requested
  readonly tokenType: string // in lower case
}

/** The authorization server refused the request, and says why. */
export class TokenRefused extends Error {
  readonly error: string // a code of OAuth, as it may be logged
  readonly quoted: string | undefined // its own words

  constructor(issuer: string, error: string, quoted: string | undefined) {
    const code = codeText(error)
    super(`${issuer} refused it (${code})`)
    this.error = code
    this.quoted = quoted
  }
}

/** The authorization server gave no answer that says anything about the tokens. */
export class TokenUnavailable extends Error {
  readonly status: number | undefined

  constructor(message: string, status?: number) {
    super(message)
    this.status = status
  }
}

const TOKEN = /^[\x21-\x7e]{1,16000}$/ // what a header can carry
const LONGEST_REFRESH = 16_000 // characters; without the token, the user logs in again when the access token ends
const SKEW_MS = 20_000
const NO_EXPIRY = /^(0|)$/

type Params = Readonly<Record<string, string | undefined>>

/** Requests tokens. Rejects with TokenRefused or TokenUnavailable. */
export const requestTokens = async (
  fetch: GuardedFetch,
  endpoint: TokenEndpoint,
  client: OAuthIdentity | undefined,
  params: Params,
): Promise<GrantedTokens> => {
  const response = await sendForm(fetch, endpoint, client, params)
  const document = readJsonObject(response)
  const refusal = refusalOf(response, document, endpoint.issuer)
  if (refusal) throw refusal
  return readTokens(document ?? {}, endpoint.issuer)
}

/** As `requestTokens`, for tokens that are sent to a server as they are. */
export const requestBearerTokens = async (
  fetch: GuardedFetch,
  endpoint: TokenEndpoint,
  client: OAuthIdentity | undefined,
  params: Params,
): Promise<GrantedTokens> => {
  const granted = await requestTokens(fetch, endpoint, client, params)
  if (granted.tokenType === 'bearer') return granted
  const quoted = `It issues tokens of the type "${granted.tokenType}".`
  throw new TokenRefused(endpoint.issuer, 'unsupported_token_type', quoted)
}

/** Sends a form as the client; once more with the other side's time if it seems to reject the time of an assertion. */
export const sendForm = async (
  fetch: GuardedFetch,
  endpoint: TokenEndpoint,
  client: OAuthIdentity | undefined,
  params: Params,
): Promise<FetchResponse> => {
  const response = await sendOnce(fetch, endpoint, client, params, Date.now())
  if (client?.method !== 'private_key_jwt' || response.status < 400 || response.status > 401) return response
  const theirs = Date.parse(response.headers.date ?? '')
  const isSkewed = Math.abs(theirs - Date.now()) > SKEW_MS // false without a date
  return isSkewed ? sendOnce(fetch, endpoint, client, params, theirs) : response
}

const sendOnce = async (
  fetch: GuardedFetch,
  { url, issuer, signingAlgorithms, from }: TokenEndpoint,
  client: OAuthIdentity | undefined,
  params: Params,
  now: number,
): Promise<FetchResponse> => {
  const headers: Record<string, string> = { 'content-type': 'application/x-www-form-urlencoded' }
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) if (value !== undefined) form.set(name, value)
  const { id, method, secret = '', privateKey = '' } = client ?? { id: '', method: undefined }
  if (method === 'client_secret_basic') headers.authorization = basicCredentials(id, secret)
  else if (method !== undefined) form.set('client_id', id)
  if (method === 'client_secret_post') form.set('client_secret', secret)
  if (method === 'private_key_jwt') {
    form.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    const key = { clientId: id, audience: issuer, privateKey, supported: signingAlgorithms, now }
    const assertion = await createClientAssertion(key).catch((error: Error) => {
      throw new TokenRefused(issuer, 'unusable_key', error.message)
    })
    form.set('client_assertion', assertion)
  }
  return fetch(url, { method: 'POST', headers, body: form.toString(), from }).catch((error: unknown) => {
    throw error instanceof FetchFailed ? new TokenUnavailable(error.message) : error
  })
}

/** RFC 6749, 2.3.1: both parts are encoded before they are joined. */
const basicCredentials = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`

type Document = Readonly<Record<string, unknown>>

/** Why a response has no tokens; undefined if it may have some. */
const refusalOf = (
  { status }: FetchResponse,
  document: Document | undefined,
  issuer: string,
): TokenRefused | TokenUnavailable | undefined => {
  const { error, error_description: description } = document ?? {}
  if (status >= 500 || status === 429) return new TokenUnavailable(`${issuer} answered HTTP ${status}`, status)
  // Some answer HTTP 200 to a request that they refuse.
  if (isErrorCode(error)) {
    if (isTemporary(error)) return new TokenUnavailable(`${issuer} is not available now (${error})`, status)
    return new TokenRefused(issuer, error, typeof description === 'string' ? description : undefined)
  }
  if (status === 200 && document) return undefined
  const what = status === 200 ? 'without a JSON object' : `HTTP ${status}`
  return new TokenUnavailable(`${issuer} answered ${what} at its token endpoint`, status)
}

const readTokens = (document: Document, issuer: string): GrantedTokens => {
  const { access_token: access, refresh_token: refresh, expires_in: seconds, scope, token_type: type } = document
  if (typeof access !== 'string' || !TOKEN.test(access))
    throw new TokenUnavailable(`${issuer} answered without an access token that can be used`, 200)
  return {
    access,
    refresh: typeof refresh === 'string' && refresh !== '' && refresh.length <= LONGEST_REFRESH ? refresh : undefined,
    lifetimeMs: lifetimeOf(seconds),
    scopes: typeof scope === 'string' ? boundTexts(splitScopes(scope)) : undefined,
    tokenType: typeof type === 'string' ? type.toLowerCase() : 'bearer',
  }
}

/** Some servers write the number as a text, or 0 for a token that does not expire. */
const lifetimeOf = (seconds: unknown): number | undefined => {
  const text = typeof seconds === 'number' || typeof seconds === 'string' ? `${seconds}`.trim() : ''
  const ms = NO_EXPIRY.test(text) ? Number.NaN : Number(text) * 1000
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}
