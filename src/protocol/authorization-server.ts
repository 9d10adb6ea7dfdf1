import type { BrowserRequest, BrowserResponse } from './sign-in.ts'

/** A JSON response of an OAuth endpoint; undefined: an empty body. */
export interface OAuthResponse {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A form that a client sends to an OAuth endpoint. */
export interface OAuthForm {
  readonly params: URLSearchParams
  readonly authorization: string | undefined // the header
}

/** The embedded authorization server: one function for each endpoint. */
export interface AuthorizationServer {
  /** RFC 8414. */
  metadata(): OAuthResponse
  authorize(request: BrowserRequest): Promise<BrowserResponse>
  /** The form of the consent page. */
  consent(request: BrowserRequest): Promise<BrowserResponse>
  /** The page with the clients that a visitor has connected. */
  connectedClients(request: BrowserRequest): Promise<BrowserResponse>
  /** A form of that page. */
  disconnect(request: BrowserRequest): Promise<BrowserResponse>
  token(form: OAuthForm): Promise<OAuthResponse>
  /** RFC 7591. */
  register(body: Buffer, address: string | undefined): Promise<OAuthResponse>
  /** RFC 7009. */
  revoke(form: OAuthForm): Promise<OAuthResponse>
}

/** What a valid access token of the embedded authorization server allows. */
export interface GrantAccess {
  readonly id: string // of the grant; the same for all its tokens, and no secret
  readonly client: string
  readonly principal: string
  readonly workspaces: readonly string[] // `*`: all
  readonly policy?: string | undefined // the name of a policy
  readonly scopes: readonly string[]
  readonly expires: number // of the access token, as Date.now() counts
  readonly tokenId?: string | undefined // the API token that the grant ends with
}

/** Checks access tokens of the embedded authorization server. */
export interface GrantReader {
  /** Undefined if the token is unknown, has expired, or its grant has ended. Rejects if the store does not answer. */
  findGrant(secret: string): Promise<GrantAccess | undefined>
  /** Called with the id of each grant that is ended, here or by another replica. */
  onGrantEnded(listener: (id: string) => void): () => void
}
