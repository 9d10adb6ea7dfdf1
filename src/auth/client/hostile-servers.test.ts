import { afterEach, describe, expect, test, vi } from 'vitest'
import { sendJson, startFakeIssuer, startProtectedServer } from '../../../test/support/fake-oauth.ts'
import { remoteServer, startLoginClient } from '../../../test/support/login-client.ts'
import type { Issuer, ServerOAuth } from '../../config/snapshot.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'

afterEach(() => void vi.useRealTimers())

const start = async (oauth?: ServerOAuth, options: Parameters<typeof startLoginClient>[1] = {}) => {
  const issuer = await startFakeIssuer()
  const server = await startProtectedServer(issuer)
  return { issuer, server, ...startLoginClient(remoteServer(server.url, oauth), options) }
}

const later = (ms: number): void => void vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })

describe('credentials of the configuration go to the first issuer only', () => {
  const CORP: Issuer = {
    name: 'corp',
    url: 'http://127.0.0.1:1',
    grants: [{ where: {}, workspaces: ['*'] }],
    clientId: 'dragoman',
    endpoints: { authorization: 'http://127.0.0.1:1/authorize', token: 'http://127.0.0.1:1/token' },
  }

  test('for a grant without a browser, whatever the server names for the next user', async () => {
    const idp = await startFakeIssuer()
    idp.answers.set('/token', (_, response) => sendJson(response, { access_token: 'jag', token_type: 'N_A' }))
    const corp = { ...CORP, endpoints: { authorization: idp.origin, token: `${idp.origin}/token` } }
    const { server, issuer, call } = await start(
      { grant: 'id_jag', idp: 'corp', clientId: 'gw', clientSecret: 'secret' },
      { issuers: () => new Map([['corp', corp]]), findIdToken: async principal => `id-of-${principal}` },
    )
    expect(await call('ada')).toMatchObject({ status: 200 })
    const evil = await startFakeIssuer()
    server.state.issuer = evil
    later(61_000)
    expect(await call('ben')).toMatchObject({
      kind: 'failed',
      reason: 'login_impossible',
      text: expect.stringContaining(`its "clientId" was used at ${issuer.origin}`),
    })
    expect(evil.count('/token')).toBe(0)
  })

  test('of two that are named at the same time, at two replicas', async () => {
    const cluster = new MemoryCluster()
    const oauth = { grant: 'client_credentials', clientId: 'gw', clientSecret: 'secret' } as const
    const asked = await Promise.all(
      Array.from({ length: 2 }, async () => {
        const issuer = await startFakeIssuer()
        const server = await startProtectedServer(issuer)
        return { issuer, server }
      }),
    )
    // The same server names one issuer to one replica, and another one to the other; neither is known yet.
    let resolve = (): void => {}
    const bothHaveRead = new Promise<void>(done => {
      resolve = done
    })
    let reading = 0
    const replicas = asked.map(({ server }) => {
      const store = cluster.join()
      const read = store.read.bind(store)
      vi.spyOn(store, 'read').mockImplementation(async (kind, id) => {
        const found = await read(kind, id)
        if (kind !== 'oauth-client' || reading === 2) return found
        if (++reading === 2) resolve()
        await bothHaveRead
        return found
      })
      return startLoginClient(remoteServer(server.url, oauth), { store })
    })
    const outcomes = await Promise.all(replicas.map(({ call }) => call('ada')))
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['answered', 'failed'])
    expect(asked.map(({ issuer }) => issuer.count('/token')).sort()).toEqual([0, 1])
  })

  test.each([
    ['a login', 'authorization_code'],
    ['a grant without a browser', 'client_credentials'],
  ] as const)('after the configuration names another one: %s at the former gets them no more', async (_, grant) => {
    const [former, next] = [await startFakeIssuer(), await startFakeIssuer()]
    const server = await startProtectedServer(former)
    const store = new MemoryCluster().join()
    const client = { clientId: 'gw', grant, ...(grant === 'authorization_code' && { login: 'caller' }) } as ServerOAuth
    const before = remoteServer(server.url, { ...client, clientSecret: 'old-secret' })
    expect(await startLoginClient(before, { store }).login('ada')).toMatchObject({ status: 200 })
    const requests = former.requests.length
    server.state.issuer = next
    later(2 * 60 * 60_000)
    const after = remoteServer(server.url, { ...client, clientSecret: 'new-secret', issuer: next.issuer() })
    const opened = startLoginClient(after, { store })
    expect(await opened.login('ada')).toMatchObject({ status: 200 })
    expect(former.requests.slice(requests).map(({ path }) => path)).toEqual([])
    expect(next.count('/token', grant)).toBe(1)
  })

  test('after the configuration names another one: a login at the former is forgotten without them', async () => {
    const [former, next] = [await startFakeIssuer(), await startFakeIssuer()]
    const server = await startProtectedServer(former)
    const store = new MemoryCluster().join()
    const client = { grant: 'authorization_code', clientId: 'gw', clientSecret: 'secret', login: 'caller' } as const
    await startLoginClient(remoteServer(server.url, client), { store }).login('ada')
    const after = remoteServer(server.url, { ...client, clientSecret: 'new', issuer: next.issuer() })
    const requests = former.requests.length
    await startLoginClient(after, { store }).logins.forget('github', 'ada')
    for (const { headers, body } of former.requests.slice(requests)) {
      expect(headers.authorization).toBeUndefined()
      expect(body).not.toContain('new')
    }
  })
})

describe('a server that refuses every token', () => {
  test('does not make the gateway read metadata again for each call', async () => {
    const { issuer, server, login, call } = await start()
    await login('ada')
    server.answers.set('/mcp', (_, response) => response.writeHead(401, { 'www-authenticate': 'Bearer' }).end())
    later(11_000)
    const before = issuer.requests.length
    for (let i = 0; i < 20; i++) expect(await call('ada')).toMatchObject({ kind: 'login' })
    const paths = issuer.requests.slice(before).map(({ path }) => path)
    expect(paths.length, paths.join()).toBeLessThan(5)
  })
})

describe('an authorization server that is gone', () => {
  test.each([
    ['answers with a page', 404],
    ['is down', 503],
  ])('and %s does not keep users from another one that the server names', async (_, status) => {
    const { issuer, server, login, call } = await start()
    await login('ada')
    issuer.answers.set('/token', (_, response) => response.writeHead(status).end('<html>'))
    server.state.issuer = await startFakeIssuer()
    later(3_700_000)
    expect(await call('ada')).toMatchObject({ kind: 'login' })
  })

  test('or down for a while keeps the login', async () => {
    const { issuer, login, call } = await start()
    await login('ada')
    issuer.answers.set('/token', (_, response) => response.writeHead(503).end())
    later(3_700_000)
    expect(await call('ada')).toMatchObject({ kind: 'failed', reason: 'login_unavailable' })
    issuer.answers.clear()
    later(6_000)
    expect(await call('ada')).toMatchObject({ status: 200 })
  })
})

describe('a token of another type than bearer', () => {
  const pop = { access_token: 'pop', token_type: 'DPoP', expires_in: 3600, refresh_token: 'next' }

  test('is not sent after a refresh', async () => {
    const { issuer, server, login, call } = await start()
    await login('ada')
    issuer.answers.set('/token', (_, response) => sendJson(response, pop))
    later(3_700_000)
    expect(await call('ada')).not.toMatchObject({ kind: 'answered' })
    expect(server.requests.filter(({ headers }) => headers.authorization === 'Bearer pop')).toEqual([])
  })

  test('is not sent if it needed no browser', async () => {
    const { issuer, server, call } = await start({ grant: 'client_credentials', clientId: 'gw', clientSecret: 's' })
    issuer.answers.set('/token', (_, response) => sendJson(response, pop))
    expect(await call('ada')).toMatchObject({ kind: 'failed', text: expect.stringContaining('unsupported_token_type') })
    expect(server.requests.filter(({ headers }) => headers.authorization === 'Bearer pop')).toEqual([])
  })
})

describe('a registration', () => {
  test('does not grow with every scope that a server has asked for', async () => {
    const { issuer, server, call } = await start()
    issuer.answers.set('/register', (_, response) => sendJson(response, { client_id: 'a', scope: 'none' }, 201))
    for (let round = 0; round < 5; round++) {
      server.state.scope = Array.from({ length: 200 }, (_, at) => `s${round}-${at}`).join(' ')
      expect(await call('ada')).toMatchObject({ kind: 'login' })
    }
    const last = issuer.requests.findLast(({ path }) => path === '/register')
    const scopes: string[] = JSON.parse(last?.body ?? '{}').scope.split(' ')
    expect(scopes).toEqual(expect.arrayContaining(['s4-0', 's4-199']))
    expect(scopes.length).toBeLessThanOrEqual(500)
  })

  test.each([{ client_id: 'a\ud800' }, { client_id: 'a\nb' }, { client_id: ['a'] }, { client_id: '' }, [], 'text'])(
    'answered with %j is refused',
    async reply => {
      const { issuer, call } = await start()
      issuer.answers.set('/register', (_, response) => sendJson(response, reply, 201))
      expect(await call('ada')).toMatchObject({ kind: 'failed', text: expect.stringContaining('refused to register') })
    },
  )
})
