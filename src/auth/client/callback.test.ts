import { describe, expect, test } from 'vitest'
import { type FakeIssuer, startFakeIssuer, startProtectedServer } from '../../../test/support/fake-oauth.ts'
import { authorize, remoteServer, startLoginClient } from '../../../test/support/login-client.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { callbackUri, isCallback } from './callback.ts'

const ORIGIN = 'https://gw.example'

test.each([
  ['https://as.example', true, '/oauth/callback'],
  ['https://as.example', false, '/oauth/callback/as.example'],
  ['https://as.example/', false, '/oauth/callback/as.example'],
  ['https://as.example/realms/corp', false, '/oauth/callback/as.example/realms/corp'],
  ['http://[::1]:9000/a%20b', false, '/oauth/callback/::1:9000/a%20b'],
])('the redirect URI of %s, which names itself: %s, is %s', (issuer, sendsIssuer, path) => {
  const uri = callbackUri(ORIGIN, { issuer, sendsIssuer })
  expect(uri).toBe(ORIGIN + path)
  expect(isCallback(new URL(`http://127.0.0.1:1${path}?code=1`), uri)).toBe(true)
})

/** Two servers of one user, at two issuers; `evil` sends browsers on to `good`, which does not say who it is. */
describe('an issuer that leads a browser on to another one', () => {
  const start = async () => {
    const store = new MemoryCluster().join()
    const [good, evil] = [await startFakeIssuer(), await startFakeIssuer()]
    good.settings.sendsIss = false
    const options = { store, origin: () => ORIGIN }
    const open = async (name: string, issuer: FakeIssuer) => {
      const { url } = await startProtectedServer(issuer)
      return startLoginClient(remoteServer(url, undefined, name), options)
    }
    return { good, evil, openGood: () => open('good', good), openEvil: () => open('evil', evil) }
  }

  /** What the gateway has sent to an authorization endpoint. */
  const authorized = (issuer: FakeIssuer) =>
    issuer.requests.find(({ path }) => path === '/authorize')?.query ?? new URLSearchParams()

  test.each([
    ['registered', 'names itself', false, true],
    ['registered', 'does not name itself', false, false],
    ['a document', 'names itself', true, true],
    ['a document', 'does not name itself', true, false],
  ])('is given no code, where the client is %s and it %s', async (_, _names, hasDocuments, evilSendsIss) => {
    const { good, evil, openGood, openEvil } = await start()
    for (const issuer of [good, evil]) issuer.metadata.client_id_metadata_document_supported = hasDocuments
    evil.settings.sendsIss = evilSendsIss
    expect(await (await openGood()).login('ada')).toMatchObject({ status: 200 })
    const honest = authorized(good)
    evil.answers.set('/authorize', ({ query }, response) => {
      const onward = new URL(`${good.origin}/authorize?${honest}`)
      for (const name of ['state', 'code_challenge']) onward.searchParams.set(name, query.get(name) ?? '')
      response.writeHead(302, { location: onward.href }).end()
    })
    const { call, logins } = await openEvil()
    const asked = await call('ada')
    const page = asked.kind === 'login' ? await logins.open(asked.link.id, { principal: 'ada' }) : undefined
    if (page?.kind !== 'redirect') throw new Error('no redirect')
    const address = await authorize((await authorize(page.url)).href)
    expect(address.href).toMatch(/^https:\/\/gw\.example\/oauth\/callback\/127\.0\.0\.1:\d+\?code=/)
    expect(await logins.finish(address, { principal: 'ada', cookie: page.cookie })).toMatchObject({
      kind: 'refused',
      status: 400,
      text: expect.stringContaining(`does not come from ${evil.issuer()}`),
    })
    expect(evil.count('/token')).toBe(0)
  })

  test('cannot use its own redirect URI there: a client has one, that of its issuer', async () => {
    const { good, openGood } = await start()
    await (await openGood()).login('ada')
    const registered = good.requests.find(({ path }) => path === '/register')
    const own = callbackUri(ORIGIN, { issuer: good.issuer(), sendsIssuer: false })
    expect(JSON.parse(registered?.body ?? '').redirect_uris).toEqual([own])
    good.metadata.client_id_metadata_document_supported = true
    const { call, browse, client } = await openGood()
    const asked = await call('ben')
    expect(asked.kind === 'login' && (await browse(asked.link.id, { principal: 'ben' }))).toMatchObject({
      kind: 'done',
    })
    const id = new URL(good.requests.findLast(({ path }) => path === '/authorize')?.query.get('client_id') ?? '')
    expect(client.document(id.pathname)).toMatchObject({ client_id: id.href, redirect_uris: [own] })
    expect(client.document('/oauth/client/')).toBeUndefined()
  })

  /**
   * Its metadata names the endpoints of the other one, and its registration gives out a client that it has registered there.
   * What comes of it is a login at `good` that the user agrees to. It must be for the server of `evil`, and for nothing else.
   */
  test.each([
    ['both endpoints', true],
    ['the authorization endpoint only', false],
  ])('and names %s of it as its own asks for tokens of its own server only', async (_, namesTokens) => {
    const { good, evil, openEvil } = await start()
    evil.settings.sendsIss = false
    evil.metadata.authorization_endpoint = `${good.origin}/authorize`
    if (namesTokens) evil.metadata.token_endpoint = `${good.origin}/token`
    const { call, logins } = await openEvil()
    const asked = await call('ada')
    const page = asked.kind === 'login' ? await logins.open(asked.link.id, { principal: 'ada' }) : undefined
    if (page?.kind !== 'redirect') throw new Error('no redirect')
    const query = new URL(page.url).searchParams
    const own = callbackUri(ORIGIN, { issuer: evil.issuer(), sendsIssuer: false })
    expect(page.url.startsWith(`${good.origin}/authorize?`)).toBe(true)
    expect(query.get('redirect_uri')).toBe(own) // no client of the gateway at `good` has it
    const resource = query.get('resource') ?? ''
    const served = await fetch(resource, { method: 'POST', body: '{}' })
    expect(served.headers.get('www-authenticate')).toContain('Bearer') // the server of `evil`
    await logins.finish(await authorize(page.url), { principal: 'ada', cookie: page.cookie })
    const redeemed = [...good.requests, ...evil.requests].filter(({ path }) => path === '/token')
    expect(redeemed.map(({ form }) => form.get('resource'))).toEqual([resource])
  })
})
