import type { Issuer, ServerOAuth } from '../../config/snapshot.ts'
import type { Logins, ServerCredentials } from '../../protocol/oauth.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import { sweepRecords } from '../../stores/state/sweep-records.ts'
import type { WriteAuditEvent } from '../../telemetry/audit-log.ts'
import type { Log } from '../../telemetry/log.ts'
import type { GuardedFetch } from '../fetch/guarded-fetch.ts'
import { callbackUris } from './callback.ts'
import { clientDocument } from './client-metadata.ts'
import { Credentials } from './credentials.ts'
import { LoginChanges } from './login-changes.ts'
import { LoginSteps } from './login-steps.ts'
import { ServerLogins } from './logins.ts'
import {
  CLIENT_CHANGED,
  type FindIdToken,
  identityOf,
  isIssuerOf,
  isMachine,
  renewMachineTokens,
  tokenEndpointOf,
} from './machine.ts'
import { RecentTokens } from './recent-tokens.ts'
import { revokeTokens } from './redeem.ts'
import { type TokenIssuer, TokenRefresher } from './refresh.ts'
import { ClientRegistry } from './register.ts'
import { ServerDiscovery } from './server-discovery.ts'
import { type LoginServer, ServerTokens } from './server-tokens.ts'
import { requestBearerTokens, TokenRefused } from './token-request.ts'

/** An entry whose server may want a login. */
interface OAuthEntryServer {
  readonly name: string
  readonly url: string
  readonly oauth?: ServerOAuth | false | undefined
}

export interface LoginClientOptions {
  readonly store: StateStore
  readonly fetch: GuardedFetch
  readonly origin: () => string // of the gateway, for browsers: its public URL, or where it listens
  readonly issuers: () => ReadonlyMap<string, Issuer> // of the configuration
  readonly serverOf: (name: string) => OAuthEntryServer | undefined // of the current configuration
  readonly findIdToken: FindIdToken
  readonly writeAudit?: WriteAuditEvent | undefined // undefined: there is no audit log
  readonly log: Log
}

/** The gateway as an OAuth client of its servers. */
export interface LoginClient {
  /** The credentials of a server; undefined if its entry uses no OAuth. The same ones for the same entry. */
  credentialsFor(server: OAuthEntryServer): ServerCredentials | undefined
  readonly logins: Logins
  /** The tokens that servers were used with last, which must not be shown; the same array until there are others. */
  recentTokens(): readonly string[]
  /** The gateway's client metadata document at a path; undefined if there is none, or no authorization server could fetch it. */
  document(path: string): Readonly<Record<string, unknown>> | undefined
  close(): void
}

const oauthServer = ({ name, url, oauth }: OAuthEntryServer): LoginServer | undefined =>
  oauth === false ? undefined : { name, url, oauth }

/** Creates the OAuth client; it sends nothing and reads nothing until a server asks for a login. */
export const createLoginClient = (options: LoginClientOptions): LoginClient => {
  const { store, origin, issuers, writeAudit, log } = options
  const steps = new LoginSteps()
  const fetch = steps.watch(options.fetch)
  const changes = new LoginChanges(store.shared, log)
  const registry = new ClientRegistry(store, fetch)
  const refresher = new TokenRefresher(store, log)
  const recent = new RecentTokens()
  const known = new Map<string, { readonly settings: string; readonly credentials: Credentials }>() // by server
  const machine = {
    fetch,
    get issuers() {
      return issuers()
    },
    findIdToken: options.findIdToken,
  }

  const tokenIssuerOf = ({ url, oauth }: LoginServer): TokenIssuer => {
    const from = oauth?.issuer ?? url
    const renew: TokenIssuer['renew'] = async record => {
      const { principal, resource, requested: scopes, refresh, client: stored, issuer } = record
      const endpoint = tokenEndpointOf(record, from)
      const client = identityOf(stored, oauth, issuer)
      if ((stored && !client) || !isIssuerOf(oauth, issuer)) throw new TokenRefused(issuer, CLIENT_CHANGED, undefined)
      if (isMachine(oauth)) return renewMachineTokens(machine, oauth, { endpoint, client, principal, resource, scopes })
      const params = { grant_type: 'refresh_token', refresh_token: refresh, resource }
      return requestBearerTokens(fetch, endpoint, client, params).catch(async (error: unknown) => {
        if (error instanceof TokenRefused && error.error === 'invalid_client' && stored?.kind === 'registered')
          for (const uri of callbackUris(origin(), issuer)) await registry.forget(issuer, uri, stored.id)
        throw error
      })
    }
    return { renew, revoke: record => revokeTokens({ fetch, oauth, from }, record) }
  }

  const credentialsOf = (server: LoginServer): Credentials => {
    const settings = JSON.stringify(server)
    const former = known.get(server.name)
    if (former?.settings === settings) return former.credentials
    const tokens = new ServerTokens(server, {
      store,
      changes,
      refresher,
      tokenIssuer: tokenIssuerOf(server),
      recent,
      log,
    })
    const discovery = new ServerDiscovery(fetch, server)
    const credentials = new Credentials(server, { tokens, discovery, begin: { store, registry, origin }, machine, log })
    known.set(server.name, { settings, credentials })
    return credentials
  }

  const stopFollowing = changes.onChange(change => {
    const changed = change ? [known.get(change.server)] : [...known.values()]
    for (const entry of changed) entry?.credentials.changed(change)
  })

  const stopSweeping = sweepRecords(store, ['token', 'login', 'oauth-client'], log)

  const find = (name: string): LoginServer | undefined => {
    const server = options.serverOf(name)
    return server && oauthServer(server)
  }
  return {
    credentialsFor: server => {
      const usable = oauthServer(server)
      return usable && credentialsOf(usable)
    },
    logins: new ServerLogins({
      ...{ store, fetch, steps, registry, changes, serverOf: find, credentialsOf, writeAudit, log },
    }),
    recentTokens: () => recent.list,
    document: path => clientDocument(origin(), path),
    close: () => {
      stopSweeping()
      stopFollowing()
      changes.close()
    },
  }
}
