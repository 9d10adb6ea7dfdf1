/** The paths of the gateway that browsers and authorization servers use during a login. */
export const LOGIN_PATHS = {
  login: '/oauth/login/', // and the id of a link
  callback: '/oauth/callback', // for some issuers with more behind it
  clientDocument: '/oauth/client.json',
  clientDocuments: '/oauth/client/', // of those issuers
} as const

/**
 * The OAuth credentials of one server: a login per principal, or one for the whole gateway. Made for one entry of the
 * configuration, so that a token never goes to another URL of the same name.
 */
export interface ServerCredentials {
  /**
   * The access token to send; undefined: send none, and report the refusal. A promise only while a token is read
   * or refreshed. Never rejects.
   */
  bearerOf(principal: string | undefined): string | undefined | Promise<string | undefined>
  /** Called after a 401, or a 403 with `insufficient_scope`. Never rejects, and always settles within a minute. */
  rejected(principal: string | undefined, refusal: TokenRefusal): Promise<RefusalOutcome>
  /**
   * The listener is called after a login came or went, at any replica; not after a refresh. It gets the principal whose
   * requests are affected; undefined: all of them.
   */
  onChanged(listener: (principal: string | undefined) => void): () => void
  /** The endpoints that a description of the server names; used if its authorization server has no metadata. */
  declare?(endpoints: DeclaredEndpoints): void
}

/** An authorization server as an API describes it. */
export interface DeclaredEndpoints {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly scopes: readonly string[]
}

/** What a server answered to a request. */
export interface TokenRefusal {
  readonly token: string | undefined // that was sent
  readonly status: number
  readonly wwwAuthenticate: string | readonly string[] | undefined
}

/** What to do after a refusal. */
export type RefusalOutcome =
  | { readonly kind: 'retry' } // `bearerOf` gives another token now: send the same request again
  | LoginNeeded
  | LoginFailed
  | { readonly kind: 'unsupported' } // the server offers no OAuth: the refusal itself is the answer

/** A user must log in; the text continues `Server "x" …` and has the link in it. */
export interface LoginNeeded {
  readonly kind: 'login'
  readonly text: string
  readonly link: LoginLink
}

/** No login is possible, or none would help; the text continues `Server "x" …`. */
export interface LoginFailed {
  readonly kind: 'failed'
  readonly text: string
  readonly reason: 'no_credentials' | 'login_impossible' | 'login_unavailable' // the last one may pass
}

/** A page of the gateway that sends a browser to the authorization server. */
export interface LoginLink {
  readonly id: string
  readonly url: string
  readonly expires: number // as Date.now() counts
}

/** The logins of users at servers, for the gateway's pages and commands. */
export interface Logins {
  /** Starts a login, or returns the pending one of this server, principal and set of scopes. Never rejects. */
  begin(server: string, principal: string | undefined): Promise<LoginNeeded | LoginFailed>
  /** A browser opens the page of a link. */
  open(id: string, visitor: LoginVisitor): Promise<LoginPage>
  /** The authorization server has sent a browser back, to this address. */
  finish(address: URL, visitor: LoginVisitor): Promise<LoginPage>
  status(server: string, principal: string | undefined): Promise<LoginStatus>
  /** Every login that is stored for a server of the configuration; not more than some thousand. */
  all(): Promise<readonly StoredLogin[]>
  /** The listener is called after a login came or went, at any replica; without one if any may have. */
  onChanged(listener: (login?: Pick<StoredLogin, 'server' | 'principal'>) => void): () => void
  /** What the gateway and browsers have done for logins at a server lately, in this process; oldest first. */
  steps(server: string): readonly LoginStep[]
  /** Ends a login: revokes its tokens, and forgets them even if that fails. */
  forget(server: string, principal: string | undefined): Promise<ForgottenLogin>
}

/** The user of a browser; `owner` stands for the user who runs the gateway, who needs no cookie. */
export interface LoginVisitor {
  readonly principal: string | undefined // undefined: not signed in
  readonly cookie?: string | undefined // that an earlier LoginPage has set
  readonly isOwner?: boolean
}

/** What a browser is shown; texts are plain, and `quoted` comes from the authorization server. */
export type LoginPage =
  | { readonly kind: 'redirect'; readonly url: string; readonly cookie: string }
  | { readonly kind: 'sign_in'; readonly issuer?: string | undefined } // of the configuration; undefined: any
  | { readonly kind: 'done'; readonly server: string; readonly text: string }
  | { readonly kind: 'refused'; readonly status: number; readonly text: string; readonly quoted?: string | undefined }

export type LoginStatus =
  | { readonly kind: 'unneeded' } // the server was never asked for one, or its entry uses no OAuth
  | { readonly kind: 'missing' }
  | {
      readonly kind: 'present'
      readonly issuer: string
      readonly scopes: readonly string[]
      readonly since: number
      readonly expires?: number | undefined // of the access token
      readonly canRefresh: boolean
    }

export type StoredLogin = Extract<LoginStatus, { readonly kind: 'present' }> & {
  readonly server: string
  readonly principal?: string | undefined // undefined: of the whole gateway
}

/** One step of logins at a server, as this process saw it. Secrets are replaced. */
export interface LoginStep {
  readonly at: number // Unix time in milliseconds
  readonly kind: 'challenge' | 'discovery' | 'registration' | 'authorization' | 'callback' | 'token' | 'revocation'
  readonly method: 'GET' | 'POST' | 'redirect' // of a browser
  readonly url: string // without its query
  readonly sent?: readonly { readonly name: string; readonly value: string }[] | undefined // a form, or a query
  readonly request?: string | undefined // JSON
  readonly status?: number | undefined
  readonly challenge?: string | undefined // the header WWW-Authenticate
  readonly answer?: string | undefined // JSON, possibly cut
  readonly error?: string | undefined // why there is no answer
}

export interface ForgottenLogin {
  readonly wasPresent: boolean
  readonly isRevoked: boolean // the authorization server has confirmed it
}
