import type { LoginQuestionsOptions } from '../bridge/login-questions.ts'
import type { OpenapiServer } from '../config/openapi.ts'
import type { RemoteServer, ServerConfig } from '../config/snapshot.ts'
import type { Dispatch } from '../protocol/exchange.ts'
import type { Logins, ServerCredentials } from '../protocol/oauth.ts'
import { createStandIn, type StandIn } from '../upstreams/login/stand-in.ts'
import type { UpstreamLogins } from '../upstreams/login/upstream-logins.ts'
import type { LoginDemands } from './login-demands.ts'

/** A server over HTTP, at a known address. */
export type RemoteConfig = ServerConfig & (RemoteServer | (OpenapiServer & { readonly url: string }))

/** OAuth towards servers, as far as a runtime needs it. */
export interface OAuthAccess {
  /** Undefined if the entry uses no OAuth. */
  credentialsFor(config: RemoteConfig): ServerCredentials | undefined
  readonly logins: Pick<Logins, 'begin'>
  readonly demands: LoginDemands
  close(): Promise<void>
}

/** The parts of one server that know about logins. */
export interface LoginParts {
  readonly upstream: UpstreamLogins
  readonly standIn: StandIn | undefined // undefined: no user logs in
  isDemanded(): boolean // the server has refused a request without a login
  /** For the bridge; `dispatch` enters above it. */
  questions(dispatch: Dispatch): Omit<LoginQuestionsOptions, 'server' | 'questionTtlMs'>
  close(): void
}

/**
 * Connects the parts of a server with the logins of its users; undefined for a server that never wants one.
 * `onChanged` is called when a login came or went; with undefined, every caller may be affected.
 */
export const createLoginParts = (
  config: ServerConfig,
  access: OAuthAccess | undefined,
  onChanged: (principal: string | undefined) => void,
): LoginParts | undefined => {
  if (!access || !usesOAuth(config)) return undefined
  const credentials = access.credentialsFor(config)
  if (!credentials) return undefined
  const demand = access.demands.of(config, () => changed(undefined))
  const standIn = isByPeople(config.oauth) ? createStandIn(config.name, () => demand.isKnown) : undefined
  const changed = (principal: string | undefined): void => {
    standIn?.loginChanged(principal)
    onChanged(principal)
  }
  const stop = credentials.onChanged(changed)
  return {
    upstream: {
      credentials,
      isPersonal: isPersonal(config.oauth),
      demand,
    },
    standIn,
    isDemanded: () => standIn !== undefined && demand.isKnown,
    questions: dispatch => ({
      begin: principal => access.logins.begin(config.name, principal),
      onChanged: listener => credentials.onChanged(listener),
      dispatch,
    }),
    close: stop,
  }
}

/** Whether a server is called with OAuth if it asks for that. */
export const usesOAuth = (config: ServerConfig): config is RemoteConfig =>
  (config.kind === 'remote' || (config.kind === 'openapi' && config.url !== undefined)) &&
  config.oauth !== false &&
  !config.disabled

/** Whether each caller has a token of its own. */
const isPersonal = (oauth: RemoteServer['oauth']): boolean => {
  if (oauth === false) return false
  if (oauth?.grant === 'authorization_code') return oauth.login === 'caller'
  return oauth === undefined || oauth.grant === 'id_jag'
}

/** Whether a login with a browser can help. */
export const isByPeople = (oauth: RemoteServer['oauth']): boolean =>
  oauth !== false && (oauth === undefined || oauth.grant === 'authorization_code' || oauth.grant === 'id_jag')
