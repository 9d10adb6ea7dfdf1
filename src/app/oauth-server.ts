import type { OAuthClients } from '../admin/token-endpoints.ts'
import { EndedSignIns } from '../auth/ended-sign-ins.ts'
import { createGuardedFetch } from '../auth/fetch/guarded-fetch.ts'
import { accessOfClaims, createAccessOf } from '../auth/server/access.ts'
import { createAuthEvents } from '../auth/server/auth-events.ts'
import { createAuthServer } from '../auth/server/authorization-server.ts'
import { createCookieJar } from '../auth/server/cookies.ts'
import { Grants } from '../auth/server/grants.ts'
import { createIssuerLogin } from '../auth/server/issuer-login.ts'
import { createIssuerSessions } from '../auth/server/issuer-sessions.ts'
import { Sealer } from '../auth/server/sealer.ts'
import { createSignIn } from '../auth/server/sign-in.ts'
import { Visitors } from '../auth/server/visitors.ts'
import type { StoredApiTokens } from '../auth/token-store.ts'
import type { Auth, Issuer, Snapshot } from '../config/snapshot.ts'
import type { FrontState } from '../fronts/http/front-request.ts'
import type { HttpRoutes } from '../fronts/http/listen.ts'
import { workspaceOfTarget } from '../fronts/http/request-url.ts'
import { createAuthServerRoutes, createSignInRoutes } from '../fronts/oauth/oauth-routes.ts'
import type { GrantReader } from '../protocol/authorization-server.ts'
import type { SignIn } from '../protocol/sign-in.ts'
import { sweepRecords } from '../stores/state/sweep-records.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'

interface OAuthServerOptions {
  readonly snapshot: Pick<Snapshot, 'auth' | 'listen'>
  readonly origin: () => string // at which the gateway listens
  readonly ownPort: () => number | undefined
  readonly tokens: StoredApiTokens
  readonly state: Pick<FrontState, 'store' | 'keys'>
  readonly writeAudit: WriteAuditEvent | undefined // undefined: there is no audit log
  readonly log: Log
}

/** What the gateway needs to sign people in, and to be their authorization server. */
export interface OAuthServer {
  readonly signIn: SignIn
  readonly grants: GrantReader | undefined // undefined: the configuration has no authorization server
  readonly routes: HttpRoutes
  /** For the owner: the clients that all people have connected. */
  readonly clients: OAuthClients | undefined
  /** The valid ID token of a principal who has signed in at this issuer. */
  findIdToken(principal: string, issuer: string): Promise<string | undefined>
  close(): Promise<void>
}

/** Without `auth.server` people can still sign in, to log in to servers. */
export const createOAuthServer = (options: OAuthServerOptions): OAuthServer => {
  const { snapshot, tokens, log } = options
  const { store, keys } = options.state
  const { auth = {} } = snapshot
  const { server: config, scopes = new Map() } = auth
  const origin = (): string => snapshot.listen.publicUrl ?? options.origin()
  const { fetch, close: closeFetch } = createGuardedFetch({ ownPort: options.ownPort })
  const issuers = signInIssuers(auth)
  const offered = [...issuers.keys()].filter(name => config?.signIn.includes(name) ?? true)
  const record = createAuthEvents(log, options.writeAudit)
  const sealer = new Sealer(keys.visitors)
  const jar = createCookieJar(origin)
  const login = createIssuerLogin(fetch, ({ name }) => `${origin()}/oauth/signed-in/${encodeURIComponent(name)}`)
  const sessions = createIssuerSessions({ store, issuers, login, accessOfClaims, log })
  const accessOf = createAccessOf(tokens, sessions)
  const ended = new EndedSignIns(store.shared, log, () => {})
  const visitors = new Visitors(sealer, jar, accessOf, ended)
  const byToken = config?.signIn.includes('token') ?? true
  const signIn = createSignIn({
    byToken,
    issuers,
    offered,
    tokens,
    visitors,
    sessions,
    login,
    accessOf,
    sealer,
    jar,
    record,
  })
  const stopSweeping = sweepRecords(store, ['grant', 'oauth-client', 'login'], log)
  const signInRoutes = createSignInRoutes(signIn, log)
  const grants = config && new Grants({ store, accessOf, sessions, record, log })
  const close = (): Promise<void> => {
    stopSweeping()
    ended.close()
    grants?.close()
    return closeFetch()
  }
  const { findIdToken } = sessions
  if (!config || !grants) return { signIn, grants, routes: signInRoutes, clients: undefined, findIdToken, close }
  const shared = {
    scopes,
    origin,
    workspaceAt: workspaceOfTarget,
    store,
    grants,
    visitors,
    signIn,
    sealer,
    fetch,
    record,
    log,
  }
  const server = createAuthServer({ config, ...shared })
  const clients: OAuthClients = {
    list: async () => (await grants.listAll()).map(({ name, ...grant }) => ({ ...grant, id: name })),
    end: name => grants.endNamed(name, 'the owner of the gateway disconnected the client'),
  }
  const routes = { ...signInRoutes, ...createAuthServerRoutes(server, log) }
  return { signIn, grants, routes, clients, findIdToken, close }
}

/** The issuers at which the gateway is a client, so that people can sign in there. */
const signInIssuers = ({ issuers = new Map() }: Auth): ReadonlyMap<string, Issuer> =>
  new Map([...issuers].filter(([, { clientId }]) => clientId !== undefined))
