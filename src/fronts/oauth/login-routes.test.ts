import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { XSS_PAYLOADS } from '../../../test/support/xss-corpus.ts'
import type { Logins, LoginVisitor } from '../../protocol/oauth.ts'
import type { SignIn } from '../../protocol/sign-in.ts'
import { createLoginRoutes } from './login-routes.ts'

/** The pages before logins that redirect to `https://issuer.example/`. */
const serve = async ({ isSecure = false, visitorOf = async () => undefined }: Partial<Opened> = {}) => {
  const visitors: LoginVisitor[] = []
  const { log, lines } = createTestLog()
  const open: Logins['open'] = async (_, visitor) => {
    visitors.push(visitor)
    return { kind: 'redirect', url: 'https://issuer.example/', cookie: 'value' }
  }
  const routes = createLoginRoutes({
    logins: { open } as Logins,
    signIn: { visitorOf } as unknown as SignIn,
    isTokenRequired: () => true,
    document: () => undefined,
    isSecure: () => isSecure,
    log,
  })
  const server = createServer((request, response) => routes['/oauth/login/*']?.(request, response, request.url ?? ''))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const get = (cookie: string) =>
    fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/oauth/login/secret-id`, {
      headers: { cookie },
      redirect: 'manual',
    })
  return { get, visitors, lines }
}
interface Opened {
  readonly isSecure: boolean
  readonly visitorOf: SignIn['visitorOf']
}

test('over https, the cookie of a login is one that no other host can set', async () => {
  const { get, visitors } = await serve({ isSecure: true })
  const { headers } = await get('dragoman-login=planted')
  expect(headers.get('set-cookie')).toBe(
    '__Host-dragoman-login=value; Path=/; HttpOnly; SameSite=Lax; Max-Age=900; Secure',
  )
  await get('a=b; __Host-dragoman-login=value')
  expect(visitors.map(({ cookie }) => cookie)).toEqual([undefined, 'value'])
})

test.each(XSS_PAYLOADS)('script that an authorization server sends is text: %s', async quoted => {
  const finish: Logins['finish'] = async () => ({ kind: 'refused', status: 400, text: `Denied (${quoted}).`, quoted })
  const routes = createLoginRoutes({
    logins: { finish } as Logins,
    signIn: { visitorOf: async () => undefined } as unknown as SignIn,
    isTokenRequired: () => true,
    document: () => undefined,
    isSecure: () => false,
    log: createTestLog().log,
  })
  const server = createServer((raw, response) => routes['/oauth/callback']?.(raw, response, '/oauth/callback'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/oauth/callback?state=x`)
  const page = await response.text()
  const shown = page.slice(page.indexOf('<p>') + '<p>'.length, page.indexOf('</p>'))
  expect(shown).toMatch(/^Denied/)
  expect(shown).not.toMatch(/[<>"]/)
  expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^;]+;/)
})

test('a page that fails does not log the secret of its link', async () => {
  const { get, lines } = await serve({ visitorOf: async () => Promise.reject(new Error('store away')) })
  expect((await get('')).status).toBe(503)
  expect(JSON.stringify(lines)).toContain('page failed')
  expect(JSON.stringify(lines)).not.toContain('secret-id')
})

test.each<[Record<string, string>, number]>([
  [{}, 303],
  [{ host: 'mcp.example.com' }, 401],
  [{ 'x-forwarded-for': '203.0.113.1' }, 401],
  [{ 'x-real-ip': '203.0.113.1' }, 401],
  [{ via: '1.1 proxy' }, 401],
])('a visitor is the user of this machine only if no proxy sent the request: %j', async (headers, status) => {
  const routes = createLoginRoutes({
    logins: {
      open: async (_, { principal }) =>
        principal === 'local' ? { kind: 'redirect', url: 'https://issuer.example/', cookie: 'x' } : { kind: 'sign_in' },
    } as Logins,
    signIn: {
      visitorOf: async () => undefined,
      ask: () => ({ kind: 'message', page: { status: 401, title: 'Sign in', text: '' } }),
    } as unknown as SignIn,
    isTokenRequired: () => true,
    document: () => undefined,
    isSecure: () => false,
    log: createTestLog().log,
  })
  const server = createServer((raw, response) => routes['/oauth/login/*']?.(raw, response, raw.url ?? ''))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const sent = request({ host: '127.0.0.1', port, path: '/oauth/login/id', headers, agent: false }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  expect(response.statusCode).toBe(status)
})
