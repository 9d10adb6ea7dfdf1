// What `/admin/session` answers, and what every endpoint has in common. Types only: the console imports this folder, too.

/**
 * `owner`: programs with the secret of the process, a console session that a one-time link opened, and tokens created with
 * `--admin`. `viewer`: other tokens for every workspace, and callers on this machine if no token is required.
 */
export type AdminRole = 'none' | 'viewer' | 'owner'

/** The body of every refusal. */
export interface AdminErrorBody {
  readonly error: { readonly message: string; readonly details?: unknown }
}

/** A link that signs a browser in once, as the owner: `POST /admin/session/link`. */
export interface ConsoleLink {
  readonly url: string
  readonly expires: number // Unix time in milliseconds
}

/** Who the caller is: `GET /admin/session`, and the answer to `POST` with `{"token"}` or `{"code"}`. */
export interface SessionInfo {
  readonly role: AdminRole
  readonly principal?: string | undefined
  readonly version: string // of the gateway
  readonly needsToken: boolean // callers without one are refused
  readonly mcpToken?: string | undefined // a bearer token for `/mcp/…`, for some minutes; undefined: none is needed, or the caller has one
  readonly csrf?: string | undefined // the header `x-dragoman-csrf` of requests with the cookie, other than GET and HEAD
}
