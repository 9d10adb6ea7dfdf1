import { LoginDemands } from '../../../src/app/login-demands.ts'
import type { OAuthAccess } from '../../../src/app/server-logins.ts'
import type { LoginNeeded, ServerCredentials, TokenRefusal } from '../../../src/protocol/oauth.ts'
import { MemoryCluster } from '../../../src/stores/state/memory-state.ts'
import { SILENT } from '../../../src/telemetry/log.ts'

/** The tokens of users at servers, as a test gives and takes them; nothing is sent to an authorization server. */
export const createFakeOAuth = () => {
  const tokens = new Map<string, string>()
  const listeners = new Set<(server: string, principal: string | undefined) => void>()
  const refusals: (TokenRefusal & { readonly principal: string | undefined })[] = []
  const begun: string[] = []
  const settings = { hasMetadata: true } // false: only a user's own request shows that a login is offered
  const keyOf = (server: string, principal: string | undefined): string => `${server} ${principal}`

  const begin = (server: string, principal: string | undefined): LoginNeeded => {
    begun.push(keyOf(server, principal))
    const url = `http://gateway.test/oauth/login/${server}-${principal}`
    const link = { id: '1', url, expires: Date.now() + 600_000 }
    return { kind: 'login', text: `needs a login. Open ${url} in a browser within 10 minutes, then call again.`, link }
  }

  const credentialsFor = ({ name }: { readonly name: string }): ServerCredentials => ({
    bearerOf: principal => tokens.get(keyOf(name, principal)),
    rejected: async (principal, refusal) => {
      refusals.push({ ...refusal, principal })
      if (principal === undefined && !settings.hasMetadata) return { kind: 'unsupported' }
      if (principal === undefined) return { kind: 'failed', reason: 'no_credentials', text: 'needs a login of a user' }
      const token = tokens.get(keyOf(name, principal))
      if (token !== undefined && token !== refusal.token) return { kind: 'retry' }
      return begin(name, principal)
    },
    onChanged: listener => {
      const listen = (server: string, principal: string | undefined): void => {
        if (server === name) listener(principal)
      }
      listeners.add(listen)
      return () => void listeners.delete(listen)
    },
  })

  const change = (server: string, principal: string): void => {
    for (const listener of [...listeners]) listener(server, principal)
  }

  const access: OAuthAccess = {
    credentialsFor,
    logins: { begin: async (server, principal) => begin(server, principal) },
    demands: new LoginDemands(new MemoryCluster().join().shared, SILENT),
    close: async () => {},
  }

  return {
    access,
    refusals,
    begun,
    settings,
    listeners,
    /** The user has logged in, and listeners are told. */
    logIn: (server: string, principal: string, token: string): void => {
      tokens.set(keyOf(server, principal), token)
      change(server, principal)
    },
    logOut: (server: string, principal: string): void => {
      tokens.delete(keyOf(server, principal))
      change(server, principal)
    },
    /** Another process has refreshed the token. */
    refresh: (server: string, principal: string, token: string): void => {
      tokens.set(keyOf(server, principal), token)
    },
  }
}
