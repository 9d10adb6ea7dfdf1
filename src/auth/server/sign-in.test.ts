import { expect, it } from 'vitest'
import type { Issuer } from '../../config/snapshot.ts'
import type { BrowserResponse } from '../../protocol/sign-in.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { deriveKeys, newSecret } from '../../stores/state/secret.ts'
import { StateError } from '../../stores/state/state-store.ts'
import { SILENT } from '../../telemetry/log.ts'
import { EndedSignIns } from '../ended-sign-ins.ts'
import { createSecret, type Token } from '../token.ts'
import { createAccessOf } from './access.ts'
import { createCookieJar } from './cookies.ts'
import { type IssuerLogin, SignInFailed } from './issuer-login.ts'
import { Sealer } from './sealer.ts'
import { createSignIn } from './sign-in.ts'
import { Visitors } from './visitors.ts'

const issuer = (name: string): Issuer => ({
  name,
  url: `https://${name}.example`,
  clientId: 'gateway',
  grants: [{ where: {}, workspaces: ['*'] }],
})
const TOKEN: Token = { id: 't1', name: 'laptop', hash: '', principal: 't1', workspaces: ['*'], created: '' }

/** Signing in at a gateway with this origin: by token, at `corp`, and at `jag` only where a page asks for it. */
const createFor = (
  origin: string,
  keys = deriveKeys([newSecret()]).visitors,
  finish: IssuerLogin['finish'] = () => Promise.reject(new Error('not used here')),
  refresh: () => Promise<void> = async () => {},
) => {
  const sealer = new Sealer(keys)
  const jar = createCookieJar(() => origin)
  const tokens = {
    find: (secret: string) => (secret === 'right' ? TOKEN : undefined),
    byId: () => TOKEN,
    refresh,
  }
  const accessOf = createAccessOf(tokens, { accessOf: async () => undefined })
  const failing = () => Promise.reject(new Error('not used here'))
  return createSignIn({
    byToken: true,
    issuers: new Map(['corp', 'jag'].map(name => [name, issuer(name)])),
    offered: ['corp'],
    tokens,
    visitors: new Visitors(
      sealer,
      jar,
      accessOf,
      new EndedSignIns(new MemoryCluster().join().shared, SILENT, () => {}),
    ),
    sessions: { create: failing },
    login: {
      begin: async ({ url }, isOffline = true) => ({
        url: `${url}/authorize${isOffline ? '' : '?online'}`,
        pending: { state: 's', verifier: 'v', nonce: 'n', isOffline },
      }),
      finish,
      refresh: failing,
    },
    accessOf,
    sealer,
    jar,
    record: () => {},
  })
}

const cookiesOf = ({ cookies = [] }: BrowserResponse): string => cookies.map(each => each.split(';')[0]).join('; ')
const handleOf = (response: BrowserResponse): string => (response.kind === 'sign-in' ? response.page.handle : '')
const formOf = (response: BrowserResponse, fields: Readonly<Record<string, string>> = {}) => ({
  params: new URLSearchParams({ handle: handleOf(response), ...fields }),
  cookies: cookiesOf(response),
  address: undefined,
})

it('a page that needs one issuer offers that one only', async () => {
  const signIn = createFor('https://mcp.example.com')
  const open = signIn.ask({ cookies: undefined }, '/oauth/login/1')
  expect(open).toMatchObject({ kind: 'sign-in', page: { byToken: true, issuers: ['corp'] } })
  expect(await signIn.begin('jag', formOf(open))).toMatchObject({ kind: 'message' })
  const bound = signIn.ask({ cookies: undefined }, '/oauth/login/1', 'why', { issuer: 'jag' })
  expect(bound).toMatchObject({ kind: 'sign-in', page: { byToken: false, issuers: ['jag'], purpose: 'why' } })
  expect(await signIn.submit(formOf(bound, { token: 'right' }))).toMatchObject({ kind: 'message' })
  expect(await signIn.begin('corp', formOf(bound))).toMatchObject({ kind: 'message' })
  expect(await signIn.begin('jag', formOf(bound))).toMatchObject({
    kind: 'redirect',
    to: 'https://jag.example/authorize',
  })
})

it('a token that is not known yet is no failure while the tokens cannot be read', async () => {
  const away = new StateError('away', 'The API tokens cannot be read now.')
  const signIn = createFor('https://mcp.example.com', undefined, undefined, () => Promise.reject(away))
  const page = signIn.ask({ cookies: undefined }, '/oauth/x')
  await expect(signIn.submit(formOf(page, { token: createSecret() }))).rejects.toBe(away)
  expect(await signIn.submit(formOf(page, { token: 'nonsense' }))).toMatchObject({ page: { status: 403 } })
})

it('reads the tokens again for unknown ones only as often as an address may fail', async () => {
  let reads = 0
  const signIn = createFor('https://mcp.example.com', undefined, undefined, async () => void reads++)
  const page = signIn.ask({ cookies: undefined }, '/oauth/x')
  for (let at = 0; at < 30; at++) await signIn.submit(formOf(page, { token: createSecret() }))
  expect(reads).toBe(20)
  expect(await signIn.submit(formOf(page, { token: 'right' }))).toMatchObject({ kind: 'continue' })
})

it('a cookie over https is bound to the host, and holds for eight hours; its visitor has the name of the token', async () => {
  const signIn = createFor('https://mcp.example.com')
  const done = await signIn.submit(formOf(signIn.ask({ cookies: undefined }, '/oauth/x'), { token: 'right' }))
  expect(done).toMatchObject({ kind: 'continue', to: '/oauth/x', visitor: 'laptop' })
  expect(done.cookies).toEqual([
    expect.stringMatching(/^__Host-dragoman-visitor=[\w-]+; Max-Age=28800; Path=\/; HttpOnly; SameSite=Lax; Secure$/),
  ])
  expect(await signIn.visitorOf(`a=b; ${cookiesOf(done)}`)).toMatchObject({ principal: 't1', name: 'laptop' })
})

it('a cookie, or a form, that was changed, or is of another gateway or browser, is nothing', async () => {
  const origin = 'https://mcp.example.com'
  const signIn = createFor(origin)
  const page = signIn.ask({ cookies: undefined }, '/oauth/x')
  const cookies = cookiesOf(await signIn.submit(formOf(page, { token: 'right' })))
  for (const wrong of [undefined, '', `${cookies}x`, cookies.slice(0, -1), cookies.replace('visitor', 'issuer')])
    expect(await signIn.visitorOf(wrong)).toBeUndefined()
  expect(await createFor(origin).visitorOf(cookies)).toBeUndefined()
  const form = formOf(page, { token: 'right' })
  for (const wrong of [{ cookies: undefined }, { cookies: cookiesOf(signIn.ask({ cookies: undefined }, '/oauth/x')) }])
    expect(await signIn.submit({ ...form, ...wrong })).toMatchObject({ kind: 'message' })
})

it('a key that was replaced still opens cookies', async () => {
  const [old, next] = [newSecret(), newSecret()]
  const before = createFor('https://mcp.example.com', deriveKeys([old]).visitors)
  const done = await before.submit(formOf(before.ask({ cookies: undefined }, '/oauth/x'), { token: 'right' }))
  const after = createFor('https://mcp.example.com', deriveKeys([next, old]).visitors)
  expect(await after.visitorOf(cookiesOf(done))).toBeDefined()
})

it.each(['https://evil.example', '//evil.example', '/\\evil.example', 'evil', ''])(
  'visitors are never led to %j',
  returnTo => {
    expect(() => createFor('https://mcp.example.com').ask({ cookies: undefined }, returnTo)).toThrow('not a path')
  },
)

it('an issuer that gives no offline access is asked once more without it', async () => {
  const finish: IssuerLogin['finish'] = () => Promise.reject(new SignInFailed('refused', 'no', { code: 'not_allowed' }))
  const signIn = createFor('https://mcp.example.com', undefined, finish)
  const begun = await signIn.begin('corp', formOf(signIn.ask({ cookies: undefined }, '/oauth/x')))
  const back = (response: BrowserResponse) =>
    signIn.finish('corp', { params: new URLSearchParams(), cookies: cookiesOf(response), address: undefined })
  const again = await back(begun)
  expect(again).toMatchObject({ kind: 'redirect', to: 'https://corp.example/authorize?online' })
  expect(await back(again)).toMatchObject({ kind: 'message', page: { text: 'no' } })
})

it('an answer of another issuer than the one that was asked is not redeemed, whatever its state says', async () => {
  const redeemed: string[] = []
  const signIn = createFor('https://mcp.example.com', undefined, async ({ name }) => {
    redeemed.push(name)
    throw new SignInFailed('refused', 'not redeemed')
  })
  const asked = signIn.ask({ cookies: undefined }, '/oauth/x', undefined, { issuer: 'jag' })
  const led = await signIn.begin('jag', formOf(asked))
  const request = {
    params: new URLSearchParams({ code: 'of-corp', state: 's' }),
    cookies: `${cookiesOf(asked)}; ${cookiesOf(led)}`,
    address: undefined,
  }
  expect(await signIn.finish('corp', request)).toMatchObject({
    kind: 'message',
    page: { status: 403, text: 'The answer came from corp, not from jag: nothing was sent there.' },
  })
  expect(redeemed).toEqual([])
  await signIn.finish('jag', request)
  expect(redeemed).toEqual(['jag'])
})
