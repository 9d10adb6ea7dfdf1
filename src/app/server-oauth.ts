import type { LoginServerInfo } from '../admin/api/logins.ts'
import { createLoginClient, type LoginClientOptions } from '../auth/client/login-client.ts'
import { isSharedLogin } from '../auth/client/server-tokens.ts'
import { createGuardedFetch } from '../auth/fetch/guarded-fetch.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { HttpRoutes } from '../fronts/http/listen.ts'
import { createLoginRoutes } from '../fronts/oauth/login-routes.ts'
import type { Logins } from '../protocol/oauth.ts'
import type { SignIn } from '../protocol/sign-in.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'
import { LoginDemands } from './login-demands.ts'
import { isByPeople, type OAuthAccess, usesOAuth } from './server-logins.ts'

interface ServerOAuthOptions {
  readonly current: () => Snapshot // the configuration of this moment
  readonly origin: () => string // at which the gateway listens
  readonly ownPort: () => number | undefined
  readonly store: StateStore
  readonly findIdToken: LoginClientOptions['findIdToken']
  readonly writeAudit?: WriteAuditEvent | undefined // undefined: there is no audit log
  readonly log: Log
}

/** OAuth towards servers: tokens for the runtime, pages for browsers, and endpoints for the owner. */
export interface ServerOAuthParts extends OAuthAccess {
  readonly logins: Logins
  /** The tokens that servers were used with last; the same array until there are others. */
  recentTokens(): readonly string[]
  /** The servers at which users log in. */
  servers(): readonly string[]
  /** The same, with what is known of them. */
  describeServers(): readonly Omit<LoginServerInfo, 'logins'>[]
  routes(visitors: { readonly signIn: SignIn; readonly isTokenRequired: () => boolean }): HttpRoutes
}

export const createServerOAuth = async (options: ServerOAuthOptions): Promise<ServerOAuthParts> => {
  const { current, ownPort, store, findIdToken, writeAudit, log } = options
  const origin = (): string => current().listen.publicUrl ?? options.origin()
  const demands = new LoginDemands(store.shared, log)
  await demands.load()
  const { fetch, close: closeFetch } = createGuardedFetch({ ownPort })
  const client = createLoginClient({
    store,
    fetch,
    origin,
    issuers: () => current().auth?.issuers ?? new Map(),
    serverOf: name => {
      const config = current().servers.get(name)
      return config && usesOAuth(config) ? config : undefined
    },
    findIdToken,
    writeAudit,
    log,
  })
  const { logins } = client
  /** Those of the configuration at which users log in. */
  const byPeople = () =>
    [...current().servers.values()].flatMap(config => (usesOAuth(config) && isByPeople(config.oauth) ? [config] : []))
  return {
    credentialsFor: config => client.credentialsFor(config),
    logins,
    demands,
    recentTokens: () => client.recentTokens(),
    servers: () => byPeople().map(({ name }) => name),
    describeServers: () =>
      byPeople().map(config => ({
        name: config.name,
        url: config.url,
        isShared: config.oauth !== false && isSharedLogin(config.oauth),
        isDemanded: demands.of(config, () => {}).isKnown,
      })),
    routes: visitors =>
      createLoginRoutes({
        logins,
        document: path => client.document(path),
        isSecure: () => origin().startsWith('https:'),
        log,
        ...visitors,
      }),
    close: async () => {
      demands.close()
      client.close()
      await closeFetch()
    },
  }
}
