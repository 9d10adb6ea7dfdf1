import type { AuthServerConfig, ScopeRule } from '../../config/snapshot.ts'
import type { AuthorizationServer } from '../../protocol/authorization-server.ts'
import type { SignIn } from '../../protocol/sign-in.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { GuardedFetch } from '../fetch/guarded-fetch.ts'
import type { RecordAuthEvent } from './auth-events.ts'
import type { RequestContext } from './authorization-request.ts'
import { createAuthorize } from './authorize.ts'
import { ClientDocuments } from './client-documents.ts'
import { createClients } from './clients.ts'
import { createConnectedClients } from './connected-clients.ts'
import type { Grants } from './grants.ts'
import { answerOAuth } from './oauth-rejection.ts'
import { RegisteredClients } from './registered-clients.ts'
import { createRegistration } from './registration.ts'
import type { Sealer } from './sealer.ts'
import { createTokenEndpoint } from './token-endpoint.ts'
import type { Visitors } from './visitors.ts'

interface AuthServerOptions {
  readonly config: AuthServerConfig
  readonly scopes: ReadonlyMap<string, ScopeRule>
  readonly origin: () => string // the issuer, and where all its endpoints are
  readonly workspaceAt: RequestContext['workspaceAt']
  readonly store: StateStore
  readonly grants: Grants
  readonly visitors: Visitors
  readonly signIn: SignIn
  readonly sealer: Sealer
  readonly fetch: GuardedFetch
  readonly record: RecordAuthEvent
  readonly log: Log
}

/** The embedded authorization server: the code flow with PKCE for clients without secrets. */
export const createAuthServer = (options: AuthServerOptions): AuthorizationServer => {
  const { config, scopes, origin, store, grants, fetch, record, log } = options
  const isOpen = config.registration === 'open'
  const registered = new RegisteredClients(store)
  const clients = createClients({ config, registered, documents: new ClientDocuments(fetch) })
  const register = createRegistration(registered, isOpen, record, log)
  const tokens = createTokenEndpoint({ ...options, clients, grants })

  return {
    metadata: () => {
      const issuer = origin()
      return {
        status: 200,
        body: {
          issuer,
          authorization_endpoint: `${issuer}/oauth/authorize`,
          token_endpoint: `${issuer}/oauth/token`,
          ...(isOpen && { registration_endpoint: `${issuer}/oauth/register` }),
          revocation_endpoint: `${issuer}/oauth/revoke`,
          scopes_supported: [...scopes.keys()],
          response_types_supported: ['code'],
          response_modes_supported: ['query'],
          grant_types_supported: ['authorization_code', 'refresh_token'],
          token_endpoint_auth_methods_supported: ['none'],
          revocation_endpoint_auth_methods_supported: ['none'],
          code_challenge_methods_supported: ['S256'],
          prompt_values_supported: ['none', 'login', 'consent'],
          authorization_response_iss_parameter_supported: true,
          client_id_metadata_document_supported: isOpen,
        },
      }
    },
    ...createAuthorize({ ...options, clients, grants }),
    ...createConnectedClients(options),
    token: form => answerOAuth(() => tokens.token(form)),
    register: (body, address) => answerOAuth(() => register(body, address)),
    revoke: form => answerOAuth(() => tokens.revoke(form)),
  }
}
