/** A request of a browser to one of the gateway's own pages. */
export interface BrowserRequest {
  readonly params: URLSearchParams // of the query, or of the form
  readonly cookies: string | undefined // the Cookie header
  readonly address: string | undefined
}

/** What a browser gets. Texts may hold anything: whatever renders them escapes them. */
export type BrowserResponse = {
  readonly cookies?: readonly string[] | undefined // Set-Cookie headers
} & (
  | { readonly kind: 'redirect'; readonly to: string }
  | { readonly kind: 'continue'; readonly to: string; readonly visitor: string } // a path of the gateway
  | { readonly kind: 'sign-in'; readonly page: SignInView }
  | { readonly kind: 'consent'; readonly page: ConsentView }
  | { readonly kind: 'clients'; readonly page: ConnectedClientsView }
  | { readonly kind: 'message'; readonly page: MessageView }
)

/** The page that asks for an API token, or leads to an issuer. */
export interface SignInView {
  readonly status: number
  readonly purpose: string | undefined // why the visitor should sign in, one sentence
  readonly handle: string // names the way back; only the same browser can use it
  readonly byToken: boolean
  readonly issuers: readonly string[]
  readonly error?: string | undefined
}

/** The page on which a signed-in visitor allows a client to act for them. */
export interface ConsentView {
  readonly handle: string
  readonly signOutHandle: string // for a visitor who wants to sign in as another user
  readonly visitor: string // their name
  readonly client: ConsentClient
  readonly redirectUri: string
  readonly workspace: string | undefined // undefined: every workspace that the visitor may use
  readonly scopes: readonly ConsentScope[]
}

/** A client as the visitor sees it. */
export interface ConsentClient {
  readonly name: string | undefined // what the client calls itself
  readonly domain: string | undefined // the domain that published its metadata; undefined: its name is not verified
  readonly isListed: boolean // in the configuration of the gateway
}

export interface ConsentScope {
  readonly name: string
  readonly tools?: readonly string[] | undefined // globs of the tools that need it; undefined: any access
}

/** The page with the clients that a visitor has connected. */
export interface ConnectedClientsView {
  readonly visitor: string // their name
  readonly signOutHandle: string
  readonly clients: readonly (ConnectedClient & { readonly handle: string })[]
}

/** A client that a visitor has allowed to act for them. */
export interface ConnectedClient {
  readonly client: string // its name, or its id if it has none
  readonly redirectUri: string
  readonly workspace: string | undefined // undefined: every workspace that the visitor may use
  readonly scopes: readonly string[]
  readonly since: number
  readonly refreshedAt: number // when it last got an access token
}

export interface MessageView {
  readonly status: number
  readonly title: string
  readonly text: string
  readonly link?: { readonly text: string; readonly url: string } | undefined
}

/** A person who has signed in with this browser. */
export interface Visitor {
  readonly principal: string
  readonly name: string // how pages call them
  readonly workspaces: readonly string[]
  readonly policy?: string | undefined
}

/** What a page needs of its visitor, besides that they sign in. */
export interface SignInWish {
  readonly error?: string | undefined // why another visitor is needed
  readonly issuer?: string | undefined // where they must sign in; undefined: in any way that the configuration offers
}

/** Signs people in who open pages of the gateway. */
export interface SignIn {
  /** Undefined if the browser has not signed in, or what it signed in with is no longer valid. */
  visitorOf(cookies: string | undefined): Promise<Visitor | undefined>
  /** The page on which the visitor signs in, to be led back to `returnTo` then: a path of the gateway, with its query. */
  ask(request: Pick<BrowserRequest, 'cookies'>, returnTo: string, purpose?: string, more?: SignInWish): BrowserResponse
  /** The form of that page. */
  submit(request: BrowserRequest): Promise<BrowserResponse>
  /** Leads the browser to an issuer. */
  begin(issuer: string, request: BrowserRequest): Promise<BrowserResponse>
  /** The browser comes back to the redirect URI of an issuer. */
  finish(issuer: string, request: BrowserRequest): Promise<BrowserResponse>
  /** Forgets the visitor, and asks again. */
  signOut(request: BrowserRequest): Promise<BrowserResponse>
}
