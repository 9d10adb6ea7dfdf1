import { createLoginClient, type LoginClientOptions } from '../../src/auth/client/login-client.ts'
import { createGuardedFetch, type GuardedFetchOptions } from '../../src/auth/fetch/guarded-fetch.ts'
import type { RemoteServer } from '../../src/config/snapshot.ts'
import type { LoginPage, LoginVisitor, RefusalOutcome } from '../../src/protocol/oauth.ts'
import { MemoryCluster } from '../../src/stores/state/memory-state.ts'
import { SILENT } from '../../src/telemetry/log.ts'

type NamedServer = RemoteServer & { readonly name: string }

export const remoteServer = (url: string, oauth?: RemoteServer['oauth'], name = 'github'): NamedServer => ({
  name,
  kind: 'remote',
  url,
  type: 'http',
  headers: {},
  era: 'auto',
  timeoutMs: 1000,
  ...(oauth !== undefined && { oauth }),
})

export const GATEWAY = 'http://127.0.0.1:8765'

/** What a call led to: the status of the last request, or why there was no other one. */
export type CallOutcome =
  | { readonly kind: 'answered'; readonly status: number; readonly sent: number }
  | Exclude<RefusalOutcome, { kind: 'retry' }>

/** An OAuth client as one replica has it, with a caller and a browser. */
export const openLoginClient = (
  server: NamedServer,
  { fetchOptions, ...options }: Partial<LoginClientOptions> & { fetchOptions?: GuardedFetchOptions } = {},
) => {
  const { fetch: guarded, close } = createGuardedFetch(fetchOptions)
  const client = createLoginClient({
    store: options.store ?? new MemoryCluster().join(),
    fetch: guarded,
    origin: () => GATEWAY,
    issuers: () => new Map(),
    serverOf: name => (name === server.name ? server : undefined),
    findIdToken: async () => undefined,
    log: SILENT,
    ...options,
  })
  const credentials = client.credentialsFor(server)
  if (!credentials) throw new Error('the server uses no OAuth')

  /** Sends requests as an upstream does: again after each `retry`, at most three times. */
  const call = async (principal: string | undefined): Promise<CallOutcome> => {
    for (let sent = 1; ; sent++) {
      const token = await credentials.bearerOf(principal)
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const response = await fetch(server.url, { method: 'POST', headers, body: '{}' })
      await response.arrayBuffer()
      const answered = { kind: 'answered', status: response.status, sent } as const
      if (response.status !== 401 && response.status !== 403) return answered
      const wwwAuthenticate = response.headers.get('www-authenticate') ?? undefined
      const outcome = await credentials.rejected(principal, { token, status: response.status, wwwAuthenticate })
      if (outcome.kind !== 'retry') return outcome
      if (sent === 3) return answered
    }
  }

  /** A browser opens a link, lets the authorization server grant it, and comes back. */
  const browse = async (id: string, visitor: LoginVisitor = { principal: 'ada' }): Promise<LoginPage> => {
    const page = await client.logins.open(id, visitor)
    if (page.kind !== 'redirect') return page
    return client.logins.finish(await authorize(page.url), { ...visitor, cookie: page.cookie })
  }

  /** A call, the login that it asks for, and the call again. */
  const login = async (principal = 'ada'): Promise<CallOutcome> => {
    const asked = await call(principal)
    if (asked.kind !== 'login') return asked
    const page = await browse(asked.link.id, { principal })
    if (page.kind !== 'done') throw new Error(`no login: ${JSON.stringify(page)}`)
    return call(principal)
  }

  const closeAll = async (): Promise<void> => {
    client.close()
    await close()
  }
  return { client, credentials, logins: client.logins, call, browse, login, close: closeAll }
}

/** The address to which the authorization server sends a browser back. */
export const authorize = async (url: string): Promise<URL> => {
  const response = await fetch(url, { redirect: 'manual' })
  await response.arrayBuffer()
  return new URL(response.headers.get('location') ?? 'http://nowhere/')
}
