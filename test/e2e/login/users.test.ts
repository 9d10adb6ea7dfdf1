import { rm } from 'node:fs/promises'
import { afterEach, expect, test } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { type LoginSiteOptions, startLoginSite } from '../../support/login/login-site.ts'
import { startReplicas } from '../../support/replicas.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'
import { type Created, createToken, newDataDirectory, startGuarded } from '../auth/guarded.ts'

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

const remote = (url: string): ServerConfig => ({
  name: 'server',
  disabled: false,
  kind: 'remote',
  url,
  type: 'auto',
  headers: {},
  era: 'auto',
  timeoutMs: 10_000,
})

/** A gateway with two users, before a server that wants a login. */
const startWithUsers = async (url: string) => {
  const gateway = await startGuarded({ server: remote(url) })
  closing.push(gateway.close)
  const [ada, ben] = [await gateway.create({ principal: 'ada' }), await gateway.create({ principal: 'ben' })]
  return { ...gateway, ada, ben }
}

/** Calls a tool over REST, as that user. */
const act = async (origin: string, { headers }: Pick<Created, 'headers'>, tool: string, args = {}) => {
  const response = await fetch(`${origin}/actions/default/${tool}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(args),
  })
  return { status: response.status, body: (await response.json()) as Record<string, never> & { error?: RestError } }
}
type RestError = { message: string; data: { reason: string; upstream: string; url?: string } }

const tokenOf = ({ headers }: Created): string => headers.authorization.replace('Bearer ', '')

/** Opens a link in a browser that signs in at the gateway, if it is asked to. */
const openAs = async (browser: ReturnType<typeof createBrowser>, link: string, token: string) => {
  const page = await browser.open(link)
  const handle = /name="handle" value="([^"]+)"/.exec(page.text)?.[1]
  if (handle === undefined) return page
  const signedIn = await browser.submit(`${new URL(link).origin}/oauth/sign-in`, { handle, token })
  const next = /url=([^"]+)"/.exec(signedIn.text)?.[1]
  return next === undefined ? signedIn : browser.open(new URL(next, link).href)
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
  // Ada begins, and Ben’s browser ends it.
  const adas = createBrowser('ada@site')
  await openAs(adas, link, tokenOf(ada)) // signed in now, and logged in once
  const next = (await act(origin, ben, 'echo')).body.error?.data.url ?? ''
  const bens = createBrowser('ben@site')
  await bens.open(next)
  const away = await openAs(createBrowser(), next, tokenOf(ben)) // not known to the authorization server
  expect(away.status).toBeGreaterThanOrEqual(400)
  expect(await act(origin, ben, 'echo')).toMatchObject({ status: 424 })
})

test('two users of one server never use the token of the other, at any of three replicas, and each is refreshed once', async () => {
  const site = await startSite(startV1)
  const data = await newDataDirectory()
  const users = {
    ada: await createToken(data, { principal: 'ada' }),
    ben: await createToken(data, { principal: 'ben' }),
  }
  const { replicas, close } = await startReplicas({ size: 3, data, entry: () => remote(site.url) })
  closing.push(close, () => rm(data, { recursive: true }))
  const origins = replicas.map(({ gateway }) => gateway.origin) as [string, string, string]
  const [first, second] = origins
  for (const [name, token] of Object.entries(users)) {
    const link = (await act(first, token, 'echo', { text: name })).body.error?.data.url ?? ''
    // The page is opened at another replica than the call was sent to, and the callback comes to the first one.
    const page = await openAs(createBrowser(`${name}@site`), link.replace(first, second), tokenOf(token))
    expect(page.text).toContain('Logged in')
  }
  for (const origin of origins)
    for (const token of Object.values(users))
      await expect.poll(async () => (await act(origin, token, 'echo', { text: 'x' })).status).toBe(200)
  const callAll = async (): Promise<void> => {
    const before = site.admitted.length
    const calls = Array.from({ length: 60 }, async (_, i) => {
      const name = i % 2 ? 'ada' : 'ben'
      const answer = await act(origins[Math.floor(i / 2) % 3] ?? first, users[name], 'echo', { text: `of ${name}` })
      expect(answer).toMatchObject({ status: 200 })
    })
    await Promise.all(calls)
    const called = site.admitted.slice(before).filter(({ method }) => method === 'tools/call')
    expect(called).toHaveLength(60)
    for (const { user, text } of called) expect(text).toContain(`of ${user.replace('@site', '')}`)
  }
  await callAll()
  expect(site.counts.refreshes).toBe(0)
  site.expire()
  await callAll() // 30 calls of each user are refused, at three replicas at the same time
  expect(site.counts.refreshes).toBe(2)
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
  const { origin, ada } = await startWithUsers(site.url)
  const browser = createBrowser('ada@site')
  await openAs(browser, (await act(origin, ada, 'echo')).body.error?.data.url ?? '', tokenOf(ada))
  expect(await act(origin, ada, 'echo', { text: 'x' })).toMatchObject({ status: 200 })
  site.expire(true)
  expect(await act(origin, ada, 'echo', { text: 'x' })).toMatchObject({ status: 424 })
})
