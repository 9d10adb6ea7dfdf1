import { afterEach, expect, test } from 'vitest'
import { modern, send } from '../../support/raw.ts'
import { TestBrowser } from '../../support/test-browser.ts'
import { type Guarded, startGuarded } from './guarded.ts'

const gateways: Guarded[] = []
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close()
})

const SERVER = { signIn: ['token'], registration: 'open', clients: new Map() } as const
const PING = modern(1, 'tools/call', { name: 'example-ping', arguments: {} })

/** A gateway to which this test is the proxy. */
const start = async (trustedProxies: readonly string[], options: Parameters<typeof startGuarded>[0] = {}) => {
  const gateway = await startGuarded({ ...options, listen: { trustedProxies } })
  gateways.push(gateway)
  return gateway
}

let names = 0
const register = async ({ origin }: Guarded, client: string): Promise<number> => {
  const body = JSON.stringify({ client_name: `client ${++names}`, redirect_uris: ['https://app.example/cb'] })
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': client }
  return (await fetch(`${origin}/oauth/register`, { method: 'POST', headers, body })).status
}
const call = async ({ url }: Guarded, client: string, headers: object = {}): Promise<number> =>
  (await send(url, { body: PING.body, headers: { ...PING.headers, 'x-forwarded-for': client, ...headers } })).status
const callWrongly = (gateway: Guarded, client: string): Promise<number> =>
  call(gateway, client, { authorization: `Bearer drg_${'x'.repeat(43)}` })
const signInWrongly = async ({ origin }: Guarded, client: string): Promise<number> => {
  const response = await fetch(`${origin}/admin/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin, 'x-forwarded-for': client },
    body: JSON.stringify({ token: 'nonsense' }),
  })
  return response.status
}

const LIMITS: readonly [
  what: string,
  options: Parameters<typeof startGuarded>[0],
  send: (gateway: Guarded, client: string) => Promise<number>,
  most: number,
  status: number,
][] = [
  ['registrations of clients', { auth: { server: SERVER } }, register, 30, 201],
  ['rejected tokens', { auth: { required: true } }, callWrongly, 30, 401],
  ['failed sign-ins at the console', { auth: { required: true } }, signInWrongly, 30, 401],
  [
    'requests of anonymous callers',
    { insecure: true, limits: { rate: { perPrincipal: { perSecond: 1, burst: 4 } } } },
    call,
    5,
    200,
  ],
]

test.each(LIMITS)(
  '%s are counted by the address that a trusted proxy names',
  async (_, options, sendOne, most, status) => {
    const gateway = await start(['127.0.0.1'], options)
    const statuses = await Promise.all(Array.from({ length: most * 3 }, () => sendOne(gateway, '203.0.113.1')))
    expect(new Set(statuses)).toEqual(new Set([status, 429]))
    expect(await sendOne(gateway, '203.0.113.2')).toBe(status)
  },
)

test.each(LIMITS)(
  '%s: without a trusted proxy, no client chooses its address',
  async (_, options, sendOne, most, status) => {
    const gateway = await start([], options)
    const clients = Array.from({ length: most * 3 }, (_each, at) => `203.0.113.${at}`)
    const statuses = await Promise.all(clients.map(client => sendOne(gateway, client)))
    expect(new Set(statuses)).toEqual(new Set([status, 429]))
  },
)

test('failed sign-ins on the page of OAuth are counted by it, too, and the log names it', async () => {
  const gateway = await start(['127.0.0.1'], { auth: { server: SERVER } })
  const failAs = async (client: string, times: number): Promise<number> => {
    const browser = new TestBrowser(gateway.origin)
    browser.added['x-forwarded-for'] = client
    let page = await browser.open(`${gateway.origin}/oauth/clients`)
    for (let count = 0; count < times; count++) page = await browser.submit(page, '/oauth/sign-in', { token: 'wrong' })
    return page.status
  }
  expect(await failAs('203.0.113.1', 21)).toBe(429)
  expect(await failAs('203.0.113.2', 1)).toBe(403)
  const failed = gateway.lines.filter(({ message }) => message === 'sign-in failed')
  expect(failed.at(-1)?.fields).toMatchObject({ address: '203.0.113.2' })
})
