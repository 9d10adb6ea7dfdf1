import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, test } from 'vitest'
import { MemoryCluster } from '../../../src/stores/state/memory-state.ts'
import { randomKeys } from '../../../src/stores/state/secret.ts'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
import { legacy, result, scriptedServer, sendJson } from '../../support/scripted-server.ts'
import type { ShownPage, TestBrowser } from '../../support/test-browser.ts'
import { type ApiToken, CALLBACK, type OAuthGateway, responseIn, startOAuthGateway } from './oauth-gateway.ts'

let cluster: MemoryCluster
let gateway: OAuthGateway
let token: ApiToken
let browser: TestBrowser
beforeEach(async () => {
  cluster = new MemoryCluster()
  gateway = await startOAuthGateway({
    state: { store: cluster.join(), keys: randomKeys() },
    auth: {
      scopes: new Map([
        ['mcp', {}],
        ['mcp:write', { tools: ['*/create_*'] }],
      ]),
    },
    server: { clients: new Map([['listed', { name: 'Listed', redirectUris: [CALLBACK] }]]) },
  })
  token = await gateway.createToken()
  browser = gateway.browser()
})
afterEach(() => gateway.close())

const allow = (page: ShownPage, by = browser): Promise<ShownPage> =>
  by.submit(page, '/oauth/consent', { decision: 'allow' })

/** Connects a client: registers, signs in, consents and redeems the code. */
const connect = async (more: Readonly<Record<string, string>> = {}, at = gateway, by = browser) => {
  const client = await at.register()
  const page = await at.signIn(by, at.authorizeUrl(client, more), token)
  const { code = '' } = responseIn(await allow(page, by))
  return { client, code, tokens: (await at.redeem(client, code)).body }
}

describe('the metadata', () => {
  it('names every endpoint, at the origin', async () => {
    const response = await fetch(`${gateway.origin}/.well-known/oauth-authorization-server`)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      issuer: gateway.origin,
      authorization_endpoint: `${gateway.origin}/oauth/authorize`,
      token_endpoint: `${gateway.origin}/oauth/token`,
      registration_endpoint: `${gateway.origin}/oauth/register`,
      revocation_endpoint: `${gateway.origin}/oauth/revoke`,
      scopes_supported: ['mcp', 'mcp:write'],
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_methods_supported: ['none'],
      revocation_endpoint_auth_methods_supported: ['none'],
      code_challenge_methods_supported: ['S256'],
      prompt_values_supported: ['none', 'login', 'consent'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    })
  })

  it('offers no registration where clients are listed', async () => {
    const listed = await startOAuthGateway({
      server: { registration: 'listed', clients: new Map([['app', { redirectUris: [CALLBACK] }]]) },
    })
    const metadata = await (await fetch(`${listed.origin}/.well-known/oauth-authorization-server`)).json()
    expect(metadata).not.toHaveProperty('registration_endpoint')
    expect(metadata).toMatchObject({ client_id_metadata_document_supported: false })
    expect((await listed.post('/oauth/register', '{}')).status).toBe(403)
    expect((await listed.browser().open(listed.authorizeUrl('app'))).text).toContain('Sign in')
    expect((await listed.browser().open(listed.authorizeUrl('https://client.example/a.json'))).status).toBe(400)
    await listed.close()
  })
})

describe('a client', () => {
  it('registers, lets the visitor sign in and consent, and gets tokens', async () => {
    const client = await gateway.register({ client_name: 'Claude' })
    const url = gateway.authorizeUrl(client, { scope: 'mcp:write', resource: `${gateway.origin}/mcp/other` })
    const signIn = await browser.open(url)
    expect(signIn.status).toBe(200)
    expect(signIn.text).toContain('Sign in to connect “Claude” (app.example).')
    const rejected = await browser.submit(signIn, '/oauth/sign-in', { token: 'drg_wrong' })
    expect(rejected.status).toBe(403)
    expect(rejected.text).toContain('This token is unknown or was revoked.')
    const consent = await browser.submit(rejected, '/oauth/sign-in', { token: ` ${token.secret}\n` })
    for (const text of ['Claude', 'not verified', 'app.example', 'other', 'mcp:write', '*/create_*', 'ada'])
      expect(consent.text).toContain(text)
    const done = await allow(consent)
    expect(done.status).toBe(303)
    expect(done.leftTo).toMatch(/^https:\/\/app\.example\/cb\?/)
    const { code = '', ...others } = responseIn(done)
    expect(others).toEqual({ state: 'state-1', iss: gateway.origin })
    const { status, headers, body } = await gateway.redeem(client, code, { resource: `${gateway.origin}/mcp/other` })
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(body).toEqual({
      access_token: expect.stringMatching(/^dro_/),
      refresh_token: expect.stringMatching(/^drr_/),
      token_type: 'Bearer',
      expires_in: 3600,
      scope: 'mcp mcp:write',
    })
    const next = (await gateway.refresh(client, body.refresh_token ?? '')).body
    expect(next.access_token).toMatch(/^dro_/)
    expect(next.refresh_token).not.toBe(body.refresh_token)
    const revoked = await gateway.post('/oauth/revoke', { client_id: client, token: next.access_token ?? '' })
    expect(revoked.status).toBe(200)
    expect((await gateway.refresh(client, next.refresh_token ?? '')).body.error).toBe('invalid_grant')
  })

  it('is told that the visitor said no', async () => {
    const client = await gateway.register()
    const consent = await gateway.signIn(browser, gateway.authorizeUrl(client), token)
    const denied = await browser.submit(consent, '/oauth/consent', { decision: 'deny' })
    expect(responseIn(denied)).toEqual({
      error: 'access_denied',
      error_description: 'the user said no',
      state: 'state-1',
      iss: gateway.origin,
    })
  })

  it('that is unknown at the token endpoint is told to register again', async () => {
    for (const form of [{ client_id: 'client-unknown' }, {}]) {
      const answer = await gateway.post('/oauth/token', { grant_type: 'refresh_token', refresh_token: 'x', ...form })
      expect(answer.status).toBe(401)
      expect(answer.body.error).toBe('invalid_client')
    }
  })

  it('with many long redirect URIs can be allowed', async () => {
    const others = Array.from({ length: 19 }, (_, at) => `https://app.example/${at}/${'x'.repeat(900)}`)
    const client = await gateway.register({ redirect_uris: [CALLBACK, ...others] })
    const consent = await gateway.signIn(browser, gateway.authorizeUrl(client), token)
    expect((await allow(consent)).leftTo).toContain('code=')
  })

  it('that asks again for a scope which is not known here gets the others when it refreshes', async () => {
    const { client, tokens } = await connect({ scope: 'mcp offline_access' })
    const form = { grant_type: 'refresh_token', client_id: client, refresh_token: tokens.refresh_token ?? '' }
    const next = await gateway.post('/oauth/token', { ...form, scope: 'mcp offline_access' })
    expect([next.status, next.body.scope]).toEqual([200, 'mcp'])
    const more = await gateway.post('/oauth/token', { ...form, scope: 'mcp mcp:write' })
    expect([more.status, more.body.error]).toEqual([400, 'invalid_scope'])
  })

  it('that repeats only scopes which are not known here keeps those that any access needs', async () => {
    const { client, tokens } = await connect({ scope: 'openid offline_access' })
    const form = { grant_type: 'refresh_token', client_id: client, refresh_token: tokens.refresh_token ?? '' }
    const next = await gateway.post('/oauth/token', { ...form, scope: 'openid offline_access' })
    expect([next.status, next.body.scope]).toEqual([200, 'mcp'])
  })

  it('for every workspace may not see the state of the whole gateway, unlike the token it was allowed with', async () => {
    const { tokens } = await connect({ resource: gateway.origin })
    const seen = async (path: string, secret: string): Promise<number> =>
      (await fetch(gateway.origin + path, { headers: { authorization: `Bearer ${secret}` } })).status
    for (const path of ['/metrics', '/admin/status'])
      expect([await seen(path, tokens.access_token ?? ''), await seen(path, token.secret)]).toEqual([403, 200])
    const headers = { authorization: `Bearer ${tokens.access_token}` }
    const ready = await (await fetch(`${gateway.origin}/readyz`, { headers })).json()
    expect(ready).not.toHaveProperty('servers')
  })

  it.each<[string, (client: string, access: string) => Promise<unknown>]>([
    ['the API token of the visitor is revoked', () => gateway.revokeToken(token)],
    [
      'the visitor disconnects it',
      async () => browser.submit(await browser.open(`${gateway.origin}/oauth/clients`), '/oauth/disconnect'),
    ],
    ['it revokes its token', (client, access) => gateway.post('/oauth/revoke', { client_id: client, token: access })],
  ])('that listens is cut off when %s', async (_when, end) => {
    const { client, tokens } = await connect()
    const access = tokens.access_token ?? ''
    const listen = modern(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    const headers = { ...listen.headers, authorization: `Bearer ${access}` }
    const stream = await openStream(`${gateway.origin}/mcp`, { ...listen, headers })
    expect((await stream.next())?.json.method).toBe('notifications/subscriptions/acknowledged')
    const credentials = { authorization: `Bearer ${access}` }
    const session = await openSession(`${gateway.origin}/mcp`, '2025-11-25', {}, credentials)
    const older = await openStream(`${gateway.origin}/mcp`, {
      method: 'GET',
      headers: { ...session.headers, ...credentials, accept: 'text/event-stream' },
    })
    await end(client, access)
    expect(await stream.next().catch(() => undefined)).toBeUndefined()
    expect(await older.next().catch(() => undefined)).toBeUndefined()
  })

  it('calls tools without showing its token to the server: in no header, and in no body', async () => {
    const server = await scriptedServer(
      legacy(({ body }, response) =>
        body.method === 'tools/list'
          ? sendJson(response, result(body.id, { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }))
          : sendJson(response, result(body.id, { content: [] })),
      ),
    )
    await gateway.close()
    gateway = await startOAuthGateway({ upstream: server.url })
    onTestFinished(server.close)
    token = await gateway.createToken()
    const { tokens } = await connect({}, gateway, gateway.browser())
    const call = modern(1, 'tools/call', { name: 'echo', arguments: { text: 'hello' } })
    for (const secret of [tokens.access_token, token.secret]) {
      const credentials = { authorization: `Bearer ${secret}` }
      const asModern = await send(`${gateway.origin}/mcp`, { ...call, headers: { ...call.headers, ...credentials } })
      expect(asModern.status).toBe(200)
      const { headers } = await openSession(`${gateway.origin}/mcp`, '2025-11-25', {}, credentials)
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: {} } }
      expect((await send(`${gateway.origin}/mcp`, { body, headers: { ...headers, ...credentials } })).status).toBe(200)
    }
    expect(server.of('tools/call')).toHaveLength(4)
    const sent = JSON.stringify(server.arrivals.map(({ url, headers, text }) => [url, headers, text]))
    for (const secret of [tokens.access_token, tokens.refresh_token, token.secret]) expect(sent).not.toContain(secret)
    expect(sent).not.toMatch(/bearer|"authorization"/i)
  })

  it('gets a grant that ends with the API token', async () => {
    const { client, tokens } = await connect()
    await gateway.revokeToken(token)
    expect((await gateway.refresh(client, tokens.refresh_token ?? '')).body.error).toBe('invalid_grant')
  })

  test.each([
    ['no grant type', { grant_type: '' }, 'invalid_request'],
    ['another grant type', { grant_type: 'password' }, 'unsupported_grant_type'],
    ['__proto__', { grant_type: '__proto__' }, 'unsupported_grant_type'],
    ['no code', { grant_type: 'authorization_code' }, 'invalid_request'],
    ['no verifier', { grant_type: 'authorization_code', code: 'x' }, 'invalid_request'],
    ['a short verifier', { grant_type: 'authorization_code', code: 'x', code_verifier: 'x' }, 'invalid_request'],
    [
      'an unknown code',
      { grant_type: 'authorization_code', code: 'x', code_verifier: 'x'.repeat(43) },
      'invalid_grant',
    ],
    ['no refresh token', { grant_type: 'refresh_token' }, 'invalid_request'],
    [
      'a foreign resource',
      { grant_type: 'refresh_token', refresh_token: 'x', resource: 'https://x' },
      'invalid_target',
    ],
  ])('that sends %s to the token endpoint is told', async (_what, form: Readonly<Record<string, string>>, error) => {
    const answer = await gateway.post('/oauth/token', { client_id: 'listed', ...form })
    expect([answer.status, answer.body.error]).toEqual([400, error])
  })

  it('that sends no form, or a huge one, to the token endpoint is told', async () => {
    expect((await gateway.post('/oauth/token', '{}')).body.error_description).toContain('Content-Type')
    const huge = await gateway.post('/oauth/token', { client_id: 'x'.repeat(100_000) })
    expect([huge.status, huge.body.error]).toEqual([400, 'invalid_request'])
    expect((await fetch(`${gateway.origin}/oauth/token`)).status).toBe(405)
  })
})

describe('a visitor', () => {
  it('stays signed in, and is asked again for a client on their own machine', async () => {
    const redirect = 'http://127.0.0.1:3334/cb'
    const client = await gateway.register({ redirect_uris: [redirect] })
    const url = gateway.authorizeUrl(client, { redirect_uri: redirect })
    await allow(await gateway.signIn(browser, url, token))
    const again = await browser.open(url)
    expect(again.text).toContain('An application on this computer (127.0.0.1:3334)')
  })

  it('is not asked again for a client on the web with a grant, unless it wants to', async () => {
    const { client } = await connect()
    const again = await browser.open(gateway.authorizeUrl(client))
    expect(responseIn(again)).toMatchObject({ code: expect.stringMatching(/^drk_/), iss: gateway.origin })
    expect((await browser.open(gateway.authorizeUrl(client, { prompt: 'consent' }))).leftTo).toBeUndefined()
    expect((await browser.open(gateway.authorizeUrl(client, { scope: 'mcp:write' }))).leftTo).toBeUndefined()
    const signIn = await browser.open(gateway.authorizeUrl(client, { prompt: 'login' }))
    expect(signIn.text).toContain('name="token"')
    expect((await browser.submit(signIn, '/oauth/sign-in', { token: token.secret })).leftTo).toContain('code=')
    const both = await browser.open(gateway.authorizeUrl(client, { prompt: 'login consent' }))
    const asked = await browser.submit(both, '/oauth/sign-in', { token: token.secret })
    expect([asked.leftTo, asked.text.includes('/oauth/consent')]).toEqual([undefined, true])
  })

  it('can sign in as another user', async () => {
    const client = await gateway.register()
    const consent = await gateway.signIn(browser, gateway.authorizeUrl(client), token)
    const again = await browser.submit(consent, '/oauth/sign-out')
    expect(again.text).toContain('name="token"')
    const ben = await gateway.createToken({ principal: 'ben' })
    const asBen = await browser.submit(again, '/oauth/sign-in', { token: ben.secret })
    expect(asBen.text).toContain('<strong>ben</strong>')
  })

  it('who signs out is signed out everywhere: a copy of the cookie is of no use', async () => {
    const client = await gateway.register()
    const url = gateway.authorizeUrl(client)
    const consent = await gateway.signIn(browser, url, token)
    const copy = gateway.browser()
    for (const [name, value] of browser.cookies) copy.cookies.set(name, value)
    expect((await copy.open(url)).text).toContain('/oauth/consent')
    await browser.submit(consent, '/oauth/sign-out')
    expect((await copy.open(url)).text).toContain('name="token"')
    const reused = await allow(consent, copy)
    expect([reused.status, reused.leftTo]).toEqual([400, undefined])
  })

  it('sees the clients that they have connected, and disconnects them', async () => {
    const { client, tokens } = await connect({ resource: `${gateway.origin}/mcp/other` })
    const page = await browser.open(`${gateway.origin}/oauth/clients`)
    for (const text of ['App', 'app.example', 'Workspace other', 'mcp']) expect(page.text).toContain(text)
    const ben = gateway.browser()
    const asBen = await gateway.signIn(ben, page.url, await gateway.createToken({ principal: 'ben' }))
    expect(asBen.text).toContain('No client acts for you.')
    expect((await ben.submit(page, '/oauth/disconnect')).text).toContain('No client acts for you.')
    expect((await gateway.refresh(client, tokens.refresh_token ?? '')).status).toBe(200)
    expect((await browser.submit(page, '/oauth/disconnect')).text).toContain('No client acts for you.')
    expect((await gateway.refresh(client, tokens.refresh_token ?? '')).body.error).toBe('invalid_grant')
  })

  it('who may not use the workspace is told, and cannot consent', async () => {
    const ben = await gateway.createToken({ principal: 'ben', workspaces: ['default'] })
    const client = await gateway.register()
    const url = gateway.authorizeUrl(client, { resource: `${gateway.origin}/mcp/other` })
    const page = await gateway.signIn(browser, url, ben)
    expect(page.status).toBe(403)
    expect(page.text).toContain('ben may not use the workspace &quot;other&quot;.')
    expect(page.text).not.toContain('/oauth/consent')
  })

  it('whose token was revoked must sign in again', async () => {
    const { client } = await connect()
    await gateway.revokeToken(token)
    expect((await browser.open(gateway.authorizeUrl(client))).text).toContain('name="token"')
  })

  it('who fails to sign in 20 times in a minute must wait', async () => {
    const page = await browser.open(gateway.authorizeUrl('listed'))
    const statuses: number[] = []
    for (let count = 0; count < 21; count++)
      statuses.push((await browser.submit(page, '/oauth/sign-in', { token: 'x' })).status)
    expect(statuses).toEqual([...new Array<number>(20).fill(403), 429])
    // Behind a proxy all visitors have one address: none may lock out the others.
    expect((await browser.submit(page, '/oauth/sign-in', { token: token.secret })).text).toContain('/oauth/consent')
  })
})

describe('threats', () => {
  it('confused deputy: a client that the visitor has not allowed gets no code from a signed-in browser', async () => {
    await connect()
    const attacker = await gateway.register({ client_name: 'App', redirect_uris: ['https://evil.example/cb'] })
    const page = await browser.open(gateway.authorizeUrl(attacker, { redirect_uri: 'https://evil.example/cb' }))
    expect(page.leftTo).toBeUndefined()
    expect(page.text).toContain('evil.example')
    const silent = await browser.open(
      gateway.authorizeUrl(attacker, { redirect_uri: 'https://evil.example/cb', prompt: 'none' }),
    )
    expect(silent.leftTo).toBeUndefined()
  })

  it('forged consent: the form works once, in the browser and for the visitor that it was made for', async () => {
    const client = await gateway.register()
    const consent = await gateway.signIn(browser, gateway.authorizeUrl(client), token)
    const other = gateway.browser()
    expect((await allow(consent, other)).leftTo).toBeUndefined()
    await gateway.signIn(other, gateway.authorizeUrl(client), token)
    const stolen = await allow(consent, other)
    expect([stolen.status, stolen.leftTo]).toEqual([400, undefined])
    expect((await allow(consent)).leftTo).toContain('code=')
    const replayed = await allow(consent)
    expect([replayed.status, replayed.leftTo]).toEqual([400, undefined])
    expect(replayed.text).toContain('This page was used before.')
  })

  it('forged consent: a page of another site cannot send the form, nor read or frame a page', async () => {
    const client = await gateway.register()
    const consent = await gateway.signIn(browser, gateway.authorizeUrl(client), token)
    const [, handle = ''] = /name="handle" value="([^"]*)"/.exec(consent.text) ?? []
    const headers = {
      cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      'content-type': 'application/x-www-form-urlencoded',
    }
    const body = new URLSearchParams({ handle, decision: 'allow' }).toString()
    for (const more of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ] as Record<string, string>[]) {
      const response = await fetch(`${gateway.origin}/oauth/consent`, {
        method: 'POST',
        redirect: 'manual',
        headers: { ...headers, ...more },
        body,
      })
      expect(response.status).toBe(403)
    }
    expect(consent.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(consent.headers.get('x-frame-options')).toBe('DENY')
    expect(consent.headers.get('access-control-allow-origin')).toBeNull()
    for (const header of browser.cookies.keys()) expect(header).toMatch(/^dragoman-visitor-\d+$/)
  })

  it('cookies cannot be read by scripts, and are not sent with forms of other sites', async () => {
    const response = await fetch(gateway.authorizeUrl('listed'))
    expect(response.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^dragoman-visitor-\d+=[\w-]+; Max-Age=3600; Path=\/oauth; HttpOnly; SameSite=Lax$/),
    ])
  })

  test.each([
    'https://app.example/cb/',
    'https://evil.example/cb',
    'https://app.example@evil.example/',
    'javascript:alert(1)',
  ])('open redirect: %s is shown, not followed', async redirect_uri => {
    for (const client of ['listed', await gateway.register()]) {
      const page = await browser.open(gateway.authorizeUrl(client, { redirect_uri, response_type: 'token' }))
      expect([page.status, page.leftTo]).toEqual([400, undefined])
      expect(page.text).not.toContain('<a ')
    }
  })

  it('open redirect: an error leads nowhere by itself, unless the client is listed', async () => {
    const error = { response_type: 'token' }
    const page = await browser.open(gateway.authorizeUrl(await gateway.register(), error))
    expect([page.status, page.leftTo]).toEqual([400, undefined])
    const back = new URL((await browser.follow(page, 'Back to the client').catch(() => page)).url)
    expect(back.origin).toBe(gateway.origin) // the link leaves the gateway: only a click follows it
    const listed = await browser.open(gateway.authorizeUrl('listed', error))
    expect(responseIn(listed)).toMatchObject({
      error: 'unsupported_response_type',
      iss: gateway.origin,
      state: 'state-1',
    })
  })

  test.each([
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    '</title><script>alert(1)</script>',
    '</style><script>alert(1)</script>',
    '{{constructor.constructor("alert(1)")()}}',
    'javascript:alert(1)',
    '&lt;script&gt;',
    '<a href="https://evil.example">Allow</a>',
  ])('script in names: %s is text', async client_name => {
    const client = await gateway.register({ client_name })
    const signIn = await browser.open(gateway.authorizeUrl(client, { state: client_name, scope: 'mcp' }))
    const consent = await browser.submit(signIn, '/oauth/sign-in', { token: token.secret })
    const escaped = client_name.replace(/[&<>"']/g, char => `&#${char === "'" ? '39' : char.charCodeAt(0)};`)
    for (const page of [signIn, consent]) {
      const plain = page.text.replace(
        /&(amp|lt|gt|quot);/g,
        (_, name: 'amp' | 'lt' | 'gt' | 'quot') => ({ amp: '&#38;', lt: '&#60;', gt: '&#62;', quot: '&#34;' })[name],
      )
      expect(plain).toContain(escaped)
      expect(page.text).not.toMatch(/<(script|img|svg)|href="https:\/\/evil/)
      expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
      expect(page.headers.get('content-security-policy')).not.toMatch(/script-src|unsafe/)
    }
  })

  it('floods: requests of browsers that have not signed in keep and log nothing', async () => {
    const before = [gateway.lines.length, cluster.records.size]
    const flood = Array.from({ length: 200 }, (_, at) => gateway.authorizeUrl('listed', { state: `${at}` }))
    for (const url of flood) await (await fetch(url)).body?.cancel()
    expect([gateway.lines.length, cluster.records.size]).toEqual(before)
  })

  it('floods: a client that is registered already can register again', async () => {
    const client = await gateway.register()
    const register = (at: number) =>
      gateway.post('/oauth/register', JSON.stringify({ redirect_uris: [`https://${at}.example/`] }))
    const answers = await Promise.all(Array.from({ length: 40 }, (_, at) => register(at)))
    expect(answers.some(({ status }) => status === 429)).toBe(true)
    expect(await gateway.register()).toBe(client)
  })

  it('stolen code: what is left of it in a browser does not end the grant', async () => {
    const { client, code, tokens } = await connect()
    const forged = `drr_${code.slice(4, 28)}${'x'.repeat(40)}`
    expect((await gateway.refresh(client, forged)).body.error).toBe('invalid_grant')
    expect((await gateway.refresh(client, tokens.refresh_token ?? '')).status).toBe(200)
  })

  it('leaks: no secret of a whole login is logged', async () => {
    const { client, code, tokens } = await connect()
    await gateway.refresh(client, tokens.refresh_token ?? '')
    const logged = JSON.stringify(gateway.lines)
    for (const secret of [token.secret, code, tokens.access_token, tokens.refresh_token, ...browser.cookies.values()])
      expect(logged).not.toContain(secret)
  })
})

describe('the guard', () => {
  // Not by fetch, which writes Sec-Fetch-Mode itself.
  const visit = async (path: string, headers: Record<string, string>, method = 'GET') => {
    const sent = request(`${gateway.origin}${path}`, { method, headers, agent: false }).end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode
  }

  const LINK = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

  it('lets a browser open the pages that other sites lead to', async () => {
    expect(await visit('/oauth/authorize?client_id=x', LINK)).toBe(400)
    expect(await visit('/oauth/signed-in/corp?code=x', LINK)).toBe(400)
  })

  it('lets it open no other page from there, frame none, and fetch none', async () => {
    for (const path of [
      '/oauth/sign-in/corp',
      '/oauth/consent',
      '/oauth/disconnect',
      '/oauth/token',
      '/oauth/register',
      '/oauth/sign-out',
    ])
      expect(await visit(path, LINK)).toBe(403)
    for (const more of [{ 'sec-fetch-dest': 'iframe' }, { 'sec-fetch-mode': 'cors' }, { 'sec-fetch-mode': 'no-cors' }])
      expect(await visit('/oauth/authorize', { ...LINK, ...more } as Record<string, string>)).toBe(403)
    expect(await visit('/oauth/authorize', LINK, 'POST')).toBe(403)
  })
})

describe('replicas', () => {
  it('share clients, grants, cookies and forms', async () => {
    const keys = randomKeys()
    const start = () => startOAuthGateway({ state: { store: cluster.join(), keys }, data: gateway.data })
    const [one, two] = await Promise.all([start(), start()])
    try {
      const client = await one.register()
      const url = one.authorizeUrl(client)
      const elsewhere = (page: ShownPage): ShownPage => ({ ...page, url: page.url.replace(one.origin, two.origin) })
      const signIn = await browser.open(url)
      browser.cookies.clear() // of the other gateway
      expect(signIn.text).toContain('name="token"')
      const port = (origin: string) => new URL(origin).port
      const by = one.browser()
      const first = await by.open(url)
      // On loopback a cookie is named after the port: here the load balancer has one port for both.
      const move = (from: string, to: string) => {
        for (const [name, value] of [...by.cookies]) by.cookies.set(name.replace(port(from), port(to)), value)
      }
      move(one.origin, two.origin)
      const next = await by.submit(elsewhere(first), '/oauth/sign-in', { token: token.secret })
      move(two.origin, one.origin)
      expect(next.leftTo).toBe(new URL(url).pathname + new URL(url).search)
      const consent = await by.open(url)
      move(one.origin, two.origin)
      const { code = '' } = responseIn(await by.submit(elsewhere(consent), '/oauth/consent', { decision: 'allow' }))
      const { body } = await one.redeem(client, code)
      const refreshed = await two.refresh(client, body.refresh_token ?? '')
      expect(refreshed.status).toBe(200)
    } finally {
      await Promise.all([one.close(), two.close()])
    }
  })
})
