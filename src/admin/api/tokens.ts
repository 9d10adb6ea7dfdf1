// API tokens and clients that log in with OAuth: `/admin/tokens`, `/admin/oauth-clients`. Types only.

import type { AdminRole } from './session.ts'

/** A token without its secret, which is stored nowhere. */
export interface TokenInfo {
  readonly id: string
  readonly name: string
  readonly principal: string
  readonly workspaces: readonly string[] // `*`: every workspace
  readonly policy?: string | undefined
  readonly role: AdminRole // in the console and the admin API
  readonly created: string // ISO 8601, as all times here
  readonly expires?: string | undefined // undefined: never
  readonly isExpired: boolean
  readonly lastUsed?: string | undefined // undefined: never
}

/** `GET /admin/tokens` */
export interface TokenList {
  readonly tokens: readonly TokenInfo[]
  readonly isRequired: boolean // callers without a token are refused
  readonly isFirst: boolean // there never was a token: the first one makes them required
  readonly unusable?: string | undefined // why tokens have no effect, or cannot be stored
  readonly place?: string | undefined // where they are kept
  readonly workspaces: readonly string[]
  readonly policies: readonly string[]
  readonly openSessions: number // of all clients
}

/** The body of `POST /admin/tokens`. */
export interface NewToken {
  readonly name: string
  readonly workspaces?: readonly string[] | undefined // default: every workspace
  readonly policy?: string | undefined
  readonly expires?: string | undefined // a lifetime: 45m, 12h, 30d, 6w, 1y; default: it never expires
  readonly principal?: string | undefined // default: its id
  readonly admin?: boolean | undefined // its holder may change the gateway; default: false
}

/** The only answer that has the secret. */
export interface CreatedToken {
  readonly token: TokenInfo
  readonly secret: string
}

/** A client that a person has allowed to act for them, at the authorization server of the gateway. */
export interface OAuthClientInfo {
  readonly id: string
  readonly client: string // the name it gave itself
  readonly principal: string
  readonly redirectUri: string
  readonly workspace?: string | undefined // undefined: every one of the principal
  readonly scopes: readonly string[]
  readonly since: number // Unix time in milliseconds
  readonly refreshedAt: number // when it last got an access token
}

/** `GET /admin/oauth-clients` */
export interface OAuthClientList {
  readonly isOn: boolean // the configuration has `auth.server`
  readonly clients: readonly OAuthClientInfo[] // the newest first
}
