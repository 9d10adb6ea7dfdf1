// Logins at servers: `/admin/logins`. Types only.

import type { LoginStep } from '../../protocol/oauth.ts'

export type { LoginStep } from '../../protocol/oauth.ts'

/** `GET /admin/logins/servers/{server}/steps`: oldest first. */
export interface LoginStepList {
  readonly steps: readonly LoginStep[]
}

/** A login of a principal at a server. */
export interface LoginInfo {
  readonly principal?: string | undefined // undefined: it serves all callers of the gateway
  readonly issuer: string // the authorization server
  readonly scopes: readonly string[]
  readonly since: number // Unix time in milliseconds, as all times here
  readonly expires?: number | undefined // of the access token
  readonly canRefresh: boolean // it is renewed by itself
}

/** A server at which users log in. */
export interface LoginServerInfo {
  readonly name: string
  readonly url: string
  readonly isShared: boolean // one login serves all callers
  readonly isDemanded: boolean // the server has asked for a login
  readonly logins: readonly LoginInfo[]
}

/** `GET /admin/logins/servers` */
export interface LoginList {
  readonly servers: readonly LoginServerInfo[]
  /** Whom logins can be for: the user of this machine, and those of tokens. */
  readonly principals: readonly { readonly principal: string; readonly name: string }[]
}

/** The answer of `POST /admin/logins/begin`: a page of the gateway that leads a browser to the authorization server. */
export interface BegunLogin {
  readonly id: string
  readonly url: string
  readonly expires: number
}

/** The answer of `POST /admin/logins/end`. */
export interface EndedLogin {
  readonly wasPresent: boolean
  readonly isRevoked: boolean // the authorization server has confirmed it
}
