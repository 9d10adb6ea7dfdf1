import type { ClientEndpointsOptions } from '../admin/client-endpoints.ts'
import type { EventPublisher } from '../admin/event-feed.ts'
import type { LoginEndpointsOptions } from '../admin/login-endpoints.ts'
import type { TokenEndpointsOptions } from '../admin/token-endpoints.ts'
import type { InboundAuth } from '../auth/inbound-auth.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { Shared } from '../stores/state/state-store.ts'
import type { OAuthServer } from './oauth-server.ts'
import type { ServerOAuthParts } from './server-oauth.ts'
import { createTokenManager } from './token-manager.ts'

interface ConnectAdminOptions {
  readonly data: string | undefined // the data directory
  readonly shared: Shared | undefined // what all replicas share; undefined: there are no others
  readonly inbound: InboundAuth
  readonly oauthServer: OAuthServer
  readonly serverOAuth: ServerOAuthParts
  readonly snapshot: Snapshot // that the gateway was started with
  readonly current: () => Snapshot
  readonly origin: () => string
  readonly openSessions: () => number
  readonly isEmbedded: boolean // another program runs the gateway
  readonly events: EventPublisher
}

/** What the admin API needs to connect clients, to manage tokens, and to log in at servers. */
export interface ConnectAdmin {
  readonly clients: ClientEndpointsOptions
  readonly tokens: TokenEndpointsOptions
  readonly logins: LoginEndpointsOptions
}

export const createConnectAdmin = (options: ConnectAdminOptions): ConnectAdmin => {
  const { data, inbound, oauthServer, serverOAuth, snapshot, current, origin, isEmbedded, events } = options
  const { listen } = snapshot
  const tokens = createTokenManager(options)
  inbound.storedTokens?.onChange(() => events.publish('tokens', {}))
  serverOAuth.logins.onChanged(login =>
    events.publish('logins', { server: login?.server ?? '', principal: login?.principal ?? '' }),
  )
  return {
    clients: {
      origin,
      publicUrl: listen.publicUrl,
      workspaces: () => [...current().workspaces.keys()],
      isTokenRequired: () => !inbound.tokens.isValid(undefined),
      hasAuthServer: oauthServer.clients !== undefined,
      hasFixedPort: listen.port !== 0,
      data,
      config: () => current().file,
      isEmbedded,
    },
    tokens: { tokens, oauthClients: oauthServer.clients },
    logins: {
      ...serverOAuth,
      principals: async () => (await tokens.list()).tokens.map(({ principal, name }) => ({ principal, name })),
    },
  }
}
