import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest'
import type { Issuer } from '../../../src/config/snapshot.ts'
import { type ShownPage, TestBrowser } from '../../support/test-browser.ts'
import { startTestIssuer, type TestIssuer } from '../../support/test-issuer.ts'
import { type OAuthGateway, responseIn, startOAuthGateway } from './oauth-gateway.ts'

let issuer: TestIssuer
let gateway: OAuthGateway
let browser: TestBrowser

const start = async (more: Partial<Issuer> = {}, options: { givesRefreshTokens?: boolean } = {}): Promise<void> => {
  issuer = await startTestIssuer(options)
  const corp: Issuer = {
    name: 'corp',
    url: issuer.url,
    clientId: 'gateway',
    clientSecret: 'issuer-secret',
    grants: [{ where: { groups: ['staff'] }, workspaces: ['other'] }],
    ...more,
  }
  issuer.state.claims = { sub: 'u1', groups: ['staff', 'ops'] }
  gateway = await startOAuthGateway({
    auth: { issuers: new Map([['corp', corp]]) },
    server: { signIn: ['token', 'corp'] },
  })
  browser = new TestBrowser(gateway.origin, issuer.url)
}
beforeEach(() => vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(async () => {
  vi.useRealTimers()
  await gateway.close()
  await issuer.close()
})

const wait = (ms: number): void => void vi.setSystemTime(Date.now() + ms)
const signIn = async (url: string, by = browser): Promise<ShownPage> =>
  by.follow(await by.open(url), 'Continue with corp')
const connect = async () => {
  const client = await gateway.register()
  const consent = await signIn(gateway.authorizeUrl(client))
  const { code = '' } = responseIn(await browser.submit(consent, '/oauth/consent', { decision: 'allow' }))
  return { client, tokens: (await gateway.redeem(client, code)).body }
}

describe('a visitor who signs in at an issuer', () => {
  it('is led there with PKCE, and is then who the issuer says', async () => {
    await start()
    const client = await gateway.register()
    const consent = await signIn(gateway.authorizeUrl(client, { resource: `${gateway.origin}/mcp/other` }))
    expect(consent.text).toContain('<strong>corp:u1</strong>')
    const [asked] = issuer.state.authorizations
    expect(Object.fromEntries(asked ?? [])).toMatchObject({
      client_id: 'gateway',
      redirect_uri: `${gateway.origin}/oauth/signed-in/corp`,
      scope: 'openid email offline_access',
      code_challenge_method: 'S256',
      nonce: expect.any(String),
    })
    const done = await browser.submit(consent, '/oauth/consent', { decision: 'allow' })
    expect(responseIn(done).code).toMatch(/^drk_/)
  })

  it('may use what the grants of the issuer say, and nothing else', async () => {
    await start()
    const client = await gateway.register()
    const page = await signIn(gateway.authorizeUrl(client, { resource: `${gateway.origin}/mcp` }))
    expect([page.status, page.leftTo]).toEqual([403, undefined])
    expect(page.text).toContain('corp:u1 may not use the workspace')
  })

  it('without a grant is told so', async () => {
    await start()
    issuer.state.claims = { sub: 'u2' }
    const page = await signIn(gateway.authorizeUrl(await gateway.register()))
    expect(page.status).toBe(403)
    expect(page.text).toContain('Signing in with corp failed')
  })

  it('is described by the userinfo endpoint where the ID token says too little', async () => {
    await start({ principal: 'email' })
    issuer.state.userinfo = { sub: 'u1', email: 'ada@example.com', email_verified: true, groups: ['none'] }
    expect((await signIn(gateway.authorizeUrl(await gateway.register()))).text).toContain('ada@example.com')
    issuer.state.userinfo = { sub: 'u2', email: 'ben@example.com', email_verified: true }
    const other = new TestBrowser(gateway.origin, issuer.url)
    expect((await signIn(gateway.authorizeUrl(await gateway.register()), other)).status).toBe(403)
  })
})

it('an issuer without discovery says by its userinfo endpoint who the visitor is', async () => {
  await start()
  const { url } = issuer
  await gateway.close()
  const github: Issuer = {
    name: 'corp',
    url,
    clientId: 'gateway',
    clientSecret: 'issuer-secret',
    principal: 'login',
    grants: [{ where: {}, workspaces: ['*'] }],
    endpoints: { authorization: `${url}/authorize`, token: `${url}/token`, userinfo: `${url}/userinfo` },
  }
  gateway = await startOAuthGateway({
    auth: { issuers: new Map([['corp', github]]) },
    server: { signIn: ['corp'] },
  })
  browser = new TestBrowser(gateway.origin, url)
  issuer.state.userinfo = { id: 42, login: 'octocat' }
  const signInPage = await browser.open(gateway.authorizeUrl(await gateway.register()))
  expect(signInPage.text).not.toContain('name="token"')
  const consent = await browser.follow(signInPage, 'Continue with corp')
  expect(consent.text).toContain('<strong>octocat</strong>')
  expect(issuer.state.authorizations[0]?.get('scope')).toBeNull()
  expect(issuer.state.tokenRequests[0]?.get('client_secret')).toBe('issuer-secret')
})

describe('a grant of such a visitor', () => {
  it('is refreshed at the issuer first, and ends with the session there', async () => {
    await start()
    const { client, tokens } = await connect()
    expect(issuer.state.tokenRequests).toHaveLength(1)
    wait(3600_000)
    const [one, two] = await Promise.all([
      gateway.refresh(client, tokens.refresh_token ?? ''),
      gateway.refresh(client, tokens.refresh_token ?? ''),
    ])
    expect([one.status, two.status]).toEqual([200, 200])
    expect(issuer.state.tokenRequests).toHaveLength(2)
    wait(3600_000)
    issuer.revokeAll()
    const ended = await gateway.refresh(client, one.body.refresh_token ?? '')
    expect([ended.status, ended.body.error]).toEqual([400, 'invalid_grant'])
  })

  test.each([
    ['does not answer', (response: import('node:http').ServerResponse) => void response.destroy()],
    ['answers with an error', (response: import('node:http').ServerResponse) => void response.writeHead(503).end()],
    ['answers with a page', (response: import('node:http').ServerResponse) => void response.end('<html>')],
  ])('is kept while the issuer %s', async (_what, answer) => {
    await start()
    const { client, tokens } = await connect()
    wait(3600_000)
    issuer.state.interfere = response => {
      answer(response)
      return true
    }
    const failed = await gateway.refresh(client, tokens.refresh_token ?? '')
    expect([failed.status, failed.body.error]).toEqual([503, 'temporarily_unavailable'])
    expect(failed.headers.get('retry-after')).toBe('5')
    issuer.state.interfere = undefined
    expect((await gateway.refresh(client, tokens.refresh_token ?? '')).status).toBe(200)
  })

  it('ends when the issuer says something else about the visitor that no grant fits', async () => {
    await start()
    const { client, tokens } = await connect()
    wait(3600_000)
    issuer.state.claims = { sub: 'u1' } // without groups, the claim is missing
    expect((await gateway.refresh(client, tokens.refresh_token ?? '')).body.error).toBe('invalid_grant')
  })

  it('lives 12 hours if the issuer gives no refresh token', async () => {
    await start({}, { givesRefreshTokens: false })
    const { client, tokens } = await connect()
    wait(11 * 3600_000)
    const next = await gateway.refresh(client, tokens.refresh_token ?? '')
    expect(next.status).toBe(200)
    wait(3600_000)
    expect((await gateway.refresh(client, next.body.refresh_token ?? '')).body.error).toBe('invalid_grant')
  })
})

describe('threats', () => {
  /** Opens the link to the issuer, and keeps the address to which that leads back. */
  const stopAtCallback = async (by: TestBrowser): Promise<string> => {
    const halted = new TestBrowser(gateway.origin)
    const client = await gateway.register()
    const away = await halted.follow(await halted.open(gateway.authorizeUrl(client)), 'Continue with corp')
    for (const [name, value] of halted.cookies) by.cookies.set(name, value)
    const response = await fetch(away.leftTo ?? '', { redirect: 'manual' })
    return response.headers.get('location') ?? ''
  }

  it('the answer of an issuer is only taken from the browser that was led there, once', async () => {
    await start()
    const callback = await stopAtCallback(browser)
    const other = new TestBrowser(gateway.origin)
    const foreign = await other.open(callback)
    expect(foreign.status).toBe(400)
    expect(foreign.text).toContain('no longer valid')
    expect((await browser.open(callback)).text).toContain('<strong>corp:u1</strong>')
    expect((await browser.open(callback)).status).toBe(400)
  })

  it.each([
    ['another state', { state: 'forged' }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['an unknown code', { code: 'stolen' }],
  ])('%s is refused', async (_what, change) => {
    await start()
    const callback = new URL(await stopAtCallback(browser))
    for (const [name, value] of Object.entries(change)) callback.searchParams.set(name, value)
    const page = await browser.open(callback.href)
    expect([page.status, page.leftTo]).toEqual([403, undefined])
    const again = await browser.open(gateway.authorizeUrl(await gateway.register()))
    expect(again.text).toContain('Continue with corp')
  })

  it('an ID token of another sign-in is refused', async () => {
    await start()
    issuer.state.nonce = 'of another sign-in'
    const page = await signIn(gateway.authorizeUrl(await gateway.register()))
    expect(page.status).toBe(502)
    expect(page.text).toContain('Signing in with corp failed')
  })

  it('an issuer that lies about its name, or has no metadata, is not used', async () => {
    await start()
    issuer.state.metadata = { issuer: 'https://evil.example' }
    const page = await signIn(gateway.authorizeUrl(await gateway.register()))
    expect(page.status).toBe(502)
    expect(page.leftTo).toBeUndefined()
  })

  it('what an issuer says is text', async () => {
    await start()
    const callback = new URL(await stopAtCallback(browser))
    callback.searchParams.delete('code')
    callback.searchParams.set('error', 'access_denied')
    callback.searchParams.set('error_description', '<script>alert(1)</script>')
    const page = await browser.open(callback.href)
    expect(page.text).toMatch(/corp did not sign you in \(\w+\)\. It said: “&lt;script&gt;alert\(1\)&lt;\/script&gt;”/)
    expect(page.text).not.toContain('<script')
  })
})
