import { afterEach, expect, test } from 'vitest'
import { createBrowser } from '../../support/login/browser.ts'
import { type LoginSiteOptions, startLoginSite } from '../../support/login/login-site.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'
import { startGuarded } from '../auth/guarded.ts'
import { act, openAs, type RestError, remote, tokenOf } from './rest-user.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const startSite = async (start: typeof startV1, options: Partial<LoginSiteOptions> = {}) => {
  const server = await start()
  const site = await startLoginSite({ upstream: server.url, ...options })
  closing.push(server.close, site.close)
  return site
}

/** A gateway with two users, before a server that wants a login. */
const startWithUsers = async (url: string) => {
  const gateway = await startGuarded({ server: remote(url) })
  closing.push(gateway.close)
  const [ada, ben] = [await gateway.create({ principal: 'ada' }), await gateway.create({ principal: 'ben' })]
  return { ...gateway, ada, ben }
}

/** Where the authorization server sends the browser of a user back to, who is signed in at the gateway. */
const callbackOf = async (browser: ReturnType<typeof createBrowser>, link: string, token: string): Promise<string> => {
  const [, handle = ''] = /name="handle" value="([^"]+)"/.exec((await browser.open(link)).text) ?? []
  await browser.submit(`${new URL(link).origin}/oauth/sign-in`, { handle, token })
  const opened = await browser.send(link)
  return (await browser.send(opened.headers.location ?? '')).headers.location ?? ''
}

test('a REST caller gets 424 with the link, and its result after the login', async () => {
  const site = await startSite(startV2)
  const { origin, ada } = await startWithUsers(site.url)
  const refused = await act(origin, ada, 'echo', { text: 'hi' })
  expect(refused.status).toBe(424)
  const { message, data } = refused.body.error as RestError
  expect(message).toMatch(/^Server "server" needs a login\. Open http/)
  expect(data).toMatchObject({ reason: 'login_required', upstream: 'server' })
  const page = await openAs(createBrowser('ada@site'), data.url ?? '', tokenOf(ada))
  expect(page).toMatchObject({ status: 200, text: expect.stringContaining('Logged in') })
  expect(await act(origin, ada, 'echo', { text: 'hi' })).toMatchObject({ status: 200 })
})

test('a server without any metadata asks the first caller to log in, too', async () => {
  const site = await startSite(startV1, { hasMetadata: false })
  const { origin, ada } = await startWithUsers(site.url)
  const refused = await act(origin, ada, 'echo', { text: 'hi' })
  expect(refused).toMatchObject({ status: 424, body: { error: { data: { reason: 'login_required' } } } })
  await openAs(createBrowser('ada@site'), refused.body.error?.data.url ?? '', tokenOf(ada))
  expect(await act(origin, ada, 'echo', { text: 'hi' })).toMatchObject({ status: 200 })
})

test('a link is of no use to another user, nor its callback in another browser', async () => {
  const site = await startSite(startV2)
  const { origin, ada, ben } = await startWithUsers(site.url)
  const link = (await act(origin, ada, 'echo')).body.error?.data.url ?? ''
  const stolen = await openAs(createBrowser('ben@site'), link, tokenOf(ben))
  expect(stolen.status).toBe(403)
  expect(stolen.text).toContain('This link belongs to another user; you are signed in as ben.')
  // Ada begins, and Ben’s browser ends it: signed in as Ben, and then as no one.
  const adas = createBrowser('ada@site')
  const callback = await callbackOf(adas, link, tokenOf(ada))
  const bens = createBrowser('ben@site')
  await openAs(bens, (await act(origin, ben, 'echo')).body.error?.data.url ?? '', tokenOf(ben))
  for (const browser of [bens, createBrowser('ben@site')]) {
    const ended = await browser.open(callback)
    expect([ended.status, ended.text]).toEqual([403, expect.stringContaining('was started in another browser')])
  }
  expect(await act(origin, ada, 'echo')).toMatchObject({ status: 424 })
  expect(await adas.open(callback)).toMatchObject({ status: 200, text: expect.stringContaining('Logged in') })
  expect(await adas.open(callback)).toMatchObject({ status: 404 }) // once
  for (const [user, name] of [
    [ada, 'ada@site'],
    [ben, 'ben@site'],
  ] as const) {
    expect(await act(origin, user, 'echo', { text: 'x' })).toMatchObject({ status: 200 })
    expect(site.admitted.at(-1)?.user).toBe(name)
  }
})

test('a call that needs another scope asks for one more login, and goes on', async () => {
  const scopeOf = ({ params }: { params?: { name?: string } }) => (params?.name === 'echo' ? 'write' : undefined)
  const site = await startSite(startV2, { scopeOf })
  const { origin, ada } = await startWithUsers(site.url)
  const browser = createBrowser('ada@site')
  const first = (await act(origin, ada, 'test_simple_text')).body.error?.data.url ?? ''
  await openAs(browser, first, tokenOf(ada))
  expect(await act(origin, ada, 'test_simple_text')).toMatchObject({ status: 200 })
  const refused = await act(origin, ada, 'echo', { text: 'x' })
  expect(refused.status).toBe(424)
  await openAs(browser, refused.body.error?.data.url ?? '', tokenOf(ada))
  expect(await act(origin, ada, 'echo', { text: 'x' })).toMatchObject({ status: 200 })
  expect(await act(origin, ada, 'test_simple_text')).toMatchObject({ status: 200 })
})

test('a login that has ended at the authorization server is asked for again', async () => {
  const site = await startSite(startV1)
  const { origin, ada, gateway } = await startWithUsers(site.url)
  const browser = createBrowser('ada@site')
  await openAs(browser, (await act(origin, ada, 'echo')).body.error?.data.url ?? '', tokenOf(ada))
  expect(await act(origin, ada, 'echo', { text: 'x' })).toMatchObject({ status: 200 })
  site.expire(true)
  expect(await act(origin, ada, 'echo', { text: 'x' })).toMatchObject({ status: 424 })
  // The link is for the caller: operators see that a login is missing.
  const headers = { authorization: `Bearer ${gateway.localSecret}` }
  const status = await (await fetch(`${origin}/admin/status`, { headers })).text()
  expect(status).toContain('"message":"Server \\"server\\" needs a login')
  expect(status).not.toContain('/oauth/login/')
})
