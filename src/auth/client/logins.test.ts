import { describe, expect, test, vi } from 'vitest'
import { type FakeIssuer, startFakeIssuer, startProtectedServer } from '../../../test/support/fake-oauth.ts'
import { createTestLog } from '../../../test/support/log.ts'
import { authorize, GATEWAY, remoteServer, startLoginClient } from '../../../test/support/login-client.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { StateError } from '../../stores/state/state-store.ts'

const start = async () => {
  const issuer = await startFakeIssuer()
  const server = await startProtectedServer(issuer)
  return { issuer, server }
}

const tokenRequests = (issuer: FakeIssuer) => issuer.requests.filter(({ path }) => path === '/token')

describe('a server that answers 401', () => {
  test('works after one login: registered, with PKCE, the resource and the state', async () => {
    const { issuer, server } = await start()
    server.state.scope = 'read'
    const { call, browse } = startLoginClient(remoteServer(server.url))
    const asked = await call('ada')
    expect(asked).toMatchObject({
      kind: 'login',
      text: expect.stringMatching(
        /^needs a login\. Open http:\/\/127\.0\.0\.1:8765\/oauth\/login\/[\w-]{44} in a browser within 10 minutes, then call again\.$/,
      ),
    })
    const page = asked.kind === 'login' ? await browse(asked.link.id) : undefined
    expect(page).toEqual({
      kind: 'done',
      server: 'github',
      text: 'You are logged in to "github". You can close this page.',
    })
    expect(await call('ada')).toEqual({ kind: 'answered', status: 200, sent: 1 })
    const [registration] = issuer.requests.filter(({ path }) => path === '/register')
    expect(JSON.parse(registration?.body ?? '')).toEqual({
      client_name: 'Dragoman',
      redirect_uris: [`${GATEWAY}/oauth/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      software_id: 'dragoman',
      scope: 'read',
    })
    const [authorized] = issuer.requests.filter(({ path }) => path === '/authorize')
    expect(Object.fromEntries(authorized?.query ?? [])).toMatchObject({
      response_type: 'code',
      redirect_uri: `${GATEWAY}/oauth/callback`,
      code_challenge_method: 'S256',
      scope: 'read',
      resource: server.url,
    })
    const [redeemed] = tokenRequests(issuer)
    expect(Object.fromEntries(redeemed?.form ?? [])).toMatchObject({
      grant_type: 'authorization_code',
      redirect_uri: `${GATEWAY}/oauth/callback`,
      resource: server.url,
      client_id: authorized?.query.get('client_id'),
    })
  })

  test('gives one link per principal, however many calls ask at once, and each principal its own tokens', async () => {
    const { issuer, server } = await start()
    const { call, login } = startLoginClient(remoteServer(server.url))
    const asked = await Promise.all(Array.from({ length: 20 }, () => call('ada')))
    const links = new Set(asked.map(outcome => (outcome.kind === 'login' ? outcome.link.url : outcome.kind)))
    expect([links.size, issuer.count('/register')]).toEqual([1, 1])
    expect(await login('ada')).toMatchObject({ status: 200 })
    expect(await call('ben')).toMatchObject({ kind: 'login' })
    expect(await login('ben')).toMatchObject({ status: 200 })
    const sent = server.requests.map(({ headers }) => headers.authorization).filter(header => header)
    expect(new Set(sent).size).toBe(2)
    expect(issuer.count('/register')).toBe(1)
  })

  test('has one login for all callers if the configuration says so', async () => {
    const { server } = await start()
    const { call, login } = startLoginClient(
      remoteServer(server.url, { grant: 'authorization_code', login: 'gateway' }),
    )
    expect(await login('ada')).toMatchObject({ status: 200 })
    expect(await call('ben')).toMatchObject({ status: 200 })
    expect(await call(undefined)).toMatchObject({ status: 200 })
  })

  test('cannot be used without a principal', async () => {
    const { server } = await start()
    const { credentials, call } = startLoginClient(remoteServer(server.url))
    expect(credentials.bearerOf(undefined)).toBeUndefined()
    expect(await call(undefined)).toEqual({
      kind: 'failed',
      reason: 'no_credentials',
      text: 'needs a login, which belongs to a user: call it with a token of the gateway, or set "login": "gateway" under its "oauth".',
    })
  })
})

describe('a link', () => {
  const asked = async () => {
    const started = await start()
    const replica = startLoginClient(remoteServer(started.server.url))
    const outcome = await replica.call('ada')
    if (outcome.kind !== 'login') throw new Error(outcome.kind)
    return { ...started, ...replica, id: outcome.link.id }
  }

  test('of another user is refused, before and after the authorization server', async () => {
    const { logins, id, issuer } = await asked()
    const refused = {
      kind: 'refused',
      status: 403,
      text: 'This link belongs to another user; you are signed in as ben.',
      quoted: undefined,
    }
    expect(await logins.open(id, { principal: 'ben' })).toEqual(refused)
    const page = await logins.open(id, { principal: 'ada' })
    if (page.kind !== 'redirect') throw new Error(page.kind)
    const address = await authorize(page.url)
    expect(await logins.finish(address, { principal: 'ben', cookie: page.cookie })).toEqual(refused)
    expect(tokenRequests(issuer)).toEqual([])
  })

  test('asks a visitor to sign in', async () => {
    const { logins, id } = await asked()
    expect(await logins.open(id, { principal: undefined })).toEqual({ kind: 'sign_in', issuer: undefined })
  })

  test.each([
    ['another secret', (id: string) => `${id.slice(0, -1)}${id.endsWith('A') ? 'B' : 'A'}`],
    ['another login', (id: string) => `A${id.slice(1)}`],
    ['nothing', () => ''],
    ['its key alone', (id: string) => id.slice(0, 22)],
    ['something longer', (id: string) => `${id}A`],
  ])('with %s is not known', async (_, change) => {
    const { logins, id } = await asked()
    expect(await logins.open(change(id), { principal: 'ada' })).toMatchObject({ kind: 'refused', status: 404 })
  })

  test('can be opened in two browsers; each finishes its own', async () => {
    const { logins, id, issuer } = await asked()
    const [one, other] = [await logins.open(id, { principal: 'ada' }), await logins.open(id, { principal: 'ada' })]
    if (one.kind !== 'redirect' || other.kind !== 'redirect') throw new Error('no redirect')
    const address = await authorize(one.url)
    expect(await logins.finish(address, { principal: 'ada', cookie: other.cookie })).toMatchObject({
      kind: 'refused',
      status: 403,
      text: expect.stringContaining('another browser'),
    })
    expect(tokenRequests(issuer)).toEqual([])
    expect(await logins.finish(address, { principal: 'ada', cookie: one.cookie })).toMatchObject({ kind: 'done' })
    expect(await logins.open(id, { principal: 'ada' })).toMatchObject({ kind: 'done' })
  })

  test('keeps the cookie of a browser that has one, so that two logins at once do not disturb each other', async () => {
    const { logins, id } = await asked()
    const first = await logins.open(id, { principal: 'ada' })
    const cookie = first.kind === 'redirect' ? first.cookie : ''
    expect(await logins.open(id, { principal: 'ada', cookie })).toMatchObject({ cookie })
    const chosen = await logins.open(id, { principal: 'ada', cookie: 'short' })
    expect(chosen.kind === 'redirect' && chosen.cookie).not.toBe('short')
  })
})

describe('a callback', () => {
  const opened = async () => {
    const started = await start()
    const replica = startLoginClient(remoteServer(started.server.url))
    const outcome = await replica.call('ada')
    const page = outcome.kind === 'login' ? await replica.logins.open(outcome.link.id, { principal: 'ada' }) : undefined
    if (page?.kind !== 'redirect') throw new Error('no redirect')
    const address = await authorize(page.url)
    const finish = (change: Readonly<Record<string, string | undefined>> = {}) => {
      const changed = new URL(address)
      for (const [name, value] of Object.entries(change))
        if (value === undefined) changed.searchParams.delete(name)
        else changed.searchParams.set(name, value)
      return replica.logins.finish(changed, { principal: 'ada', cookie: page.cookie })
    }
    return { ...started, ...replica, address, cookie: page.cookie, finish }
  }

  test('is accepted once', async () => {
    const { finish, issuer } = await opened()
    expect(await finish()).toMatchObject({ kind: 'done' })
    expect(await finish()).toMatchObject({ kind: 'refused', status: 404 })
    expect(tokenRequests(issuer)).toHaveLength(1)
  })

  test('is accepted once, also if it comes many times at once', async () => {
    const { finish, issuer } = await opened()
    const pages = await Promise.all(Array.from({ length: 10 }, () => finish()))
    expect(pages.filter(({ kind }) => kind === 'done')).toHaveLength(1)
    expect(tokenRequests(issuer)).toHaveLength(1)
  })

  test.each([
    ['a wrong state', { state: 'x'.repeat(65) }, 404, 'not known'],
    ['no state', { state: undefined }, 404, 'not known'],
    ['the name of another issuer', { iss: 'https://evil.example' }, 400, 'does not come from'],
    ['no name of its issuer', { iss: undefined }, 400, 'does not come from'],
    ['neither a code nor an error', { code: undefined }, 400, 'neither with a code nor with an error'],
    ['an error', { code: undefined, error: 'access_denied', error_description: '<b>no</b>' }, 400, '(access_denied)'],
    ['an error of another issuer', { error: 'access_denied', iss: 'https://evil.example' }, 400, 'does not come from'],
  ])('with %s leads to no token request', async (_, change, status, text) => {
    const { finish, issuer, call } = await opened()
    expect(await finish(change)).toMatchObject({ kind: 'refused', status, text: expect.stringContaining(text) })
    expect(tokenRequests(issuer)).toEqual([])
    expect(await call('ada')).toMatchObject({ kind: 'login' })
  })

  test('compares the issuer as a text', async () => {
    const { finish, issuer } = await opened()
    expect(await finish({ iss: `${issuer.issuer()}/` })).toMatchObject({ kind: 'refused', status: 400 })
  })

  test('with the state of another login is refused', async () => {
    const { logins, call, address, cookie, issuer } = await opened()
    const other = await call('ben')
    const page = other.kind === 'login' ? await logins.open(other.link.id, { principal: 'ben' }) : undefined
    const foreign = page?.kind === 'redirect' ? (new URL(page.url).searchParams.get('state') ?? '') : ''
    const mixed = new URL(address)
    mixed.searchParams.set('state', foreign)
    expect(await logins.finish(mixed, { principal: 'ada', cookie })).toMatchObject({ kind: 'refused', status: 403 })
    expect(tokenRequests(issuer)).toEqual([])
  })

  test('shows what the authorization server says, apart from the text', async () => {
    const { finish } = await opened()
    expect(await finish({ error: 'access_denied', error_description: '<script>' })).toMatchObject({
      quoted: '<script>',
    })
  })

  test('of a code that is refused says so; the link can be opened again', async () => {
    const { issuer, finish, call, browse } = await opened()
    expect(await finish({ code: 'guessed' })).toMatchObject({
      kind: 'refused',
      text: expect.stringContaining('invalid_grant'),
    })
    const again = await call('ada')
    expect(again.kind === 'login' && (await browse(again.link.id))).toMatchObject({ kind: 'done' })
    expect(issuer.count('/token')).toBe(2)
  })

  test('needs no cookie if the user who runs the gateway pastes it', async () => {
    const { logins, address } = await opened()
    expect(await logins.finish(address, { principal: undefined, isOwner: true })).toMatchObject({ kind: 'done' })
  })

  test('finds its login after ten minutes no more', async () => {
    const { finish } = await opened()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10 * 60_000 + 1000 })
    try {
      expect(await finish()).toMatchObject({ kind: 'refused', status: 404 })
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('replicas', () => {
  test('give the same link, and each step may happen at another one', async () => {
    const { server } = await start()
    const cluster = new MemoryCluster()
    const replicas = Array.from({ length: 3 }, () =>
      startLoginClient(remoteServer(server.url), { store: cluster.join() }),
    )
    const [first, second, third] = replicas as [(typeof replicas)[0], (typeof replicas)[0], (typeof replicas)[0]]
    const asked = await Promise.all(replicas.map(({ call }) => call('ada')))
    const links = new Set(asked.map(outcome => (outcome.kind === 'login' ? outcome.link.id : outcome.kind)))
    expect(links.size).toBe(1)
    const changed: (string | undefined)[] = []
    first.credentials.onChanged(principal => changed.push(principal))
    const page = await second.logins.open([...links][0] ?? '', { principal: 'ada' })
    if (page.kind !== 'redirect') throw new Error(page.kind)
    const done = await third.logins.finish(await authorize(page.url), { principal: 'ada', cookie: page.cookie })
    expect(done).toMatchObject({ kind: 'done' })
    expect(changed).toEqual(['ada'])
    for (const { call } of replicas) expect(await call('ada')).toEqual({ kind: 'answered', status: 200, sent: 1 })
  })

  test('revoke the tokens of a login also if the others cannot be told of its end', async () => {
    const { issuer, server } = await start()
    const store = new MemoryCluster().join()
    const { log, lines } = createTestLog()
    const { login, logins } = startLoginClient(remoteServer(server.url), { store, log })
    await login('ada')
    vi.spyOn(store.shared, 'writeDocument').mockRejectedValue(new StateError('away', 'The store cannot be used.'))
    expect(await logins.forget('github', 'ada')).toEqual({ wasPresent: true, isRevoked: true })
    expect([issuer.count('/revoke'), issuer.refreshTokens.size]).toEqual([1, 0])
    expect(lines.map(({ message }) => message)).toContain('other replicas were not told of a login')
  })

  test('forget a login together, and write both to the audit log', async () => {
    const { issuer, server } = await start()
    const cluster = new MemoryCluster()
    const events: unknown[] = []
    const writeAudit = (event: string, fields: object) => void events.push({ event, ...fields })
    const [one, other] = [0, 1].map(() =>
      startLoginClient(remoteServer(server.url), { store: cluster.join(), writeAudit }),
    )
    if (!one || !other) throw new Error()
    await one.login('ada')
    expect(await other.call('ada')).toMatchObject({ status: 200 })
    expect(await one.logins.status('github', 'ada')).toMatchObject({
      kind: 'present',
      issuer: issuer.issuer(),
      canRefresh: true,
    })
    expect(await other.logins.forget('github', 'ada')).toEqual({ wasPresent: true, isRevoked: true })
    expect(await one.logins.status('github', 'ada')).toEqual({ kind: 'missing' })
    expect(one.credentials.bearerOf('ada')).not.toBeTypeOf('string')
    expect(await one.call('ada')).toMatchObject({ kind: 'login' })
    expect(issuer.refreshTokens.size).toBe(0)
    expect(await one.logins.forget('github', 'ada')).toEqual({ wasPresent: false, isRevoked: false })
    expect(events).toMatchObject([
      { event: 'server_login', server: 'github', principal: 'ada', issuer: issuer.issuer() },
      { event: 'server_logout', server: 'github', principal: 'ada', issuer: issuer.issuer() },
    ])
    expect(JSON.stringify(events)).not.toMatch(/token|secret|code/i)
  })
})
