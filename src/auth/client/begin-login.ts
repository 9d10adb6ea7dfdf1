import { LOGIN_PATHS, type LoginNeeded } from '../../protocol/oauth.ts'
import { StateError, type StateStore } from '../../stores/state/state-store.ts'
import { callbackUri } from './callback.ts'
import { clientDocumentUrl } from './client-metadata.ts'
import type { DiscoveredIssuer } from './discover.ts'
import {
  createLinkSecret,
  decodeLogin,
  isReusable,
  type LoginRecord,
  type LoginRequest,
  loginExpiry,
  loginKey,
} from './login-records.ts'
import { LOGIN_FAILURES, LoginProblem, loginNeeded } from './messages.ts'
import { isSafeForUsers } from './metadata.ts'
import type { ClientRegistry } from './register.ts'
import type { LoginServer } from './server-tokens.ts'
import { encodeRecord, type StoredClient } from './token-records.ts'

/** What a login is begun with. */
export interface BeginContext {
  readonly store: StateStore
  readonly registry: ClientRegistry
  readonly origin: () => string // of the gateway, for browsers
}

const ATTEMPTS = 10

/** Starts a login at the authorization server that was found. Rejects with LoginProblem, OAuthUnsupported or StateError. */
export const beginLogin = async (
  context: BeginContext,
  server: LoginServer,
  owner: string | undefined,
  discovery: DiscoveredIssuer,
  scopes: readonly string[],
): Promise<LoginNeeded> => {
  const { authServer, resource, from } = discovery
  const { issuer, authorizationEndpoint } = authServer
  const oauth = server.oauth?.grant === 'authorization_code' ? server.oauth : undefined
  if (authorizationEndpoint === undefined) throw new LoginProblem(LOGIN_FAILURES.noAuthorization(issuer))
  if (!isSafeForUsers(authorizationEndpoint, from))
    throw new LoginProblem(LOGIN_FAILURES.unencrypted(authorizationEndpoint))
  if (!authServer.supportsPkce && oauth?.pkce !== 'assumed') throw new LoginProblem(LOGIN_FAILURES.noPkce(issuer))
  const redirectUri = callbackUri(context.origin(), authServer)
  const client = await findClient(context, server, discovery, scopes)
  return giveLink(context, server, owner, { ...requestOf(discovery, redirectUri), client, resource, scopes })
}

/** The client for a login. Rejects with LoginProblem, OAuthUnsupported or StateError. */
export const findClient = (
  { registry, origin }: BeginContext,
  { name, oauth }: LoginServer,
  discovery: DiscoveredIssuer,
  scopes: readonly string[],
): Promise<StoredClient> =>
  registry.clientFor(discovery, {
    server: name,
    oauth: oauth?.grant === 'authorization_code' ? oauth : undefined,
    redirectUri: callbackUri(origin(), discovery.authServer),
    documentUrl: clientDocumentUrl(origin(), discovery.authServer),
    scopes,
  })

/** Starts a login that needs only a sign-in at an issuer of the configuration. */
export const beginSignIn = (
  context: BeginContext,
  server: LoginServer,
  owner: string | undefined,
  discovery: DiscoveredIssuer,
  { scopes, idp }: { readonly scopes: readonly string[]; readonly idp: string },
): Promise<LoginNeeded> => {
  const { resource } = discovery
  return giveLink(context, server, owner, { ...requestOf(discovery, context.origin()), resource, scopes, idp })
}

const requestOf = ({ authServer }: DiscoveredIssuer, redirectUri: string) => ({
  issuer: authServer.issuer,
  sendsIssuer: authServer.sendsIssuer,
  authorizationEndpoint: authServer.authorizationEndpoint ?? '',
  tokenEndpoint: authServer.tokenEndpoint,
  signingAlgorithms: authServer.signingAlgorithms,
  revocationEndpoint: authServer.revocationEndpoint,
  redirectUri,
})

/** The link of the pending login, or of a new one. Replicas that begin at once give the same link. */
const giveLink = async (
  { store, origin }: BeginContext,
  server: LoginServer,
  owner: string | undefined,
  request: LoginRequest,
): Promise<LoginNeeded> => {
  const key = loginKey(server.name, owner, request.scopes)
  const linkOf = ({ secret, expires }: LoginRecord): LoginNeeded => {
    const id = key + secret
    return loginNeeded({ id, url: origin() + LOGIN_PATHS.login + id, expires })
  }
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const known = decodeLogin(await store.read('login', key))
    if (known && isReusable(known, server.url, request) && !isHalfOver(known)) return linkOf(known)
    const taken = await store.take('login', key)
    const found = taken.kind === 'mine' ? decodeLogin(taken.held) : undefined
    const expires = loginExpiry(Date.now())
    const record: LoginRecord =
      found && isReusable(found, server.url, request)
        ? { ...found, expires }
        : {
            server: server.name,
            url: server.url,
            principal: owner,
            secret: createLinkSecret(),
            expires,
            isDone: false,
            request,
            opened: [],
          }
    const body = encodeRecord(record)
    if (taken.kind === 'mine' && (await store.write(taken.held, body, { expires }))) return linkOf(record)
    if (taken.kind !== 'none') continue
    const isCreated = await store.create('login', key, body, { expires }).then(
      () => true,
      (error: unknown) => {
        if (error instanceof StateError && error.reason === 'exists') return false
        throw error
      },
    )
    if (isCreated) return linkOf(record)
  }
  throw new StateError('away', 'Several replicas begin the same login.')
}

const isHalfOver = ({ expires }: LoginRecord): boolean => {
  const now = Date.now()
  return expires - now < (loginExpiry(now) - now) / 2
}
