import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { createClients } from './clients.ts'
import { answerOAuth } from './oauth-rejection.ts'
import { RegisteredClients } from './registered-clients.ts'
import { createRegistration } from './registration.ts'
import { createTokenEndpoint } from './token-endpoint.ts'

const DAY = 24 * 3600_000
let cluster: MemoryCluster
let clients: RegisteredClients
let other: RegisteredClients // on another replica
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
  cluster = new MemoryCluster()
  clients = new RegisteredClients(cluster.join())
  other = new RegisteredClients(cluster.join())
})
afterEach(() => {
  vi.useRealTimers()
})

const wait = (ms: number): void => void vi.setSystemTime(Date.now() + ms)
const clientCount = (): number =>
  [...cluster.records.values()].filter(({ kind, id }) => kind === 'oauth-client' && id !== 'unused').length
const registration = (isOpen = true) => {
  const register = createRegistration(clients, isOpen, () => {}, createTestLog().log)
  return (body: unknown, address = '192.0.2.1') =>
    answerOAuth(() => register(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), address))
}
const METADATA = { redirect_uris: ['https://app.example/cb'], client_name: 'App' }

it('a client is found on every replica, under one id however often it registers', async () => {
  const { id } = await clients.register({ name: 'App', redirectUris: ['https://app.example/cb'] })
  expect(await other.find(id)).toEqual({
    id,
    source: 'registered',
    name: 'App',
    redirectUris: ['https://app.example/cb'],
  })
  expect((await other.register({ name: 'App', redirectUris: ['https://app.example/cb'] })).id).toBe(id)
  expect((await other.register({ name: 'App', redirectUris: ['https://app.example/cb2'] })).id).not.toBe(id)
  expect((await other.register({ name: 'Ape', redirectUris: ['https://app.example/cb'] })).id).not.toBe(id)
})

it.each(['', 'unused', 'client-', '__proto__', `client-${'0'.repeat(32)}`])('there is no client %j', async id => {
  await clients.register({ name: undefined, redirectUris: ['https://app.example/cb'] })
  expect(await clients.find(id)).toBeUndefined()
})

it('a client that no visitor has used is forgotten after 30 days, a used one a year after its last use', async () => {
  const { id } = await clients.register({ name: 'a', redirectUris: ['https://app.example/cb'] })
  wait(29 * DAY)
  await other.markUsed(id)
  wait(364 * DAY)
  expect(await clients.find(id)).toBeDefined()
  await clients.markUsed(id)
  wait(364 * DAY)
  expect(await clients.find(id)).toBeDefined()
  wait(DAY)
  expect(await clients.find(id)).toBeUndefined()
  const unused = await clients.register({ name: 'b', redirectUris: ['https://app.example/cb'] })
  wait(30 * DAY)
  expect(await clients.find(unused.id)).toBeUndefined()
})

it('a client that refreshes its tokens is known for as long as it does', async () => {
  const store = cluster.join()
  const registered = new RegisteredClients(store)
  const { id } = await registered.register({ name: 'a', redirectUris: ['https://app.example/cb'] })
  await registered.markUsed(id)
  const issued = { access: 'a', refresh: 'r', expiresInMs: 1000, scopes: [] }
  const { token } = createTokenEndpoint({
    origin: () => 'https://mcp.example',
    scopes: new Map(),
    workspaceAt: () => undefined,
    clients: createClients({
      config: { registration: 'open', clients: new Map() },
      registered,
      documents: { find: () => Promise.reject(new Error('not used here')) },
    }),
    grants: { refresh: async () => issued, redeem: async () => issued, revoke: async () => {} },
  })
  const params = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'r', client_id: id })
  for (let month = 0; month < 26; month++) {
    wait(30 * DAY)
    expect(await token({ params, authorization: undefined })).toMatchObject({ status: 200 })
  }
  const take = vi.spyOn(store, 'take')
  expect(await token({ params, authorization: undefined })).toMatchObject({ status: 200 })
  expect(take).not.toHaveBeenCalled() // once a day is enough
  wait(365 * DAY)
  await expect(token({ params, authorization: undefined })).rejects.toThrow('The client is unknown here')
})

it('a flood of 10,000 registrations leaves 1,000 unused clients, and every client that a visitor has used', async () => {
  const used = await clients.register({ name: 'used', redirectUris: ['https://app.example/cb'] })
  await clients.markUsed(used.id)
  const register = registration()
  const statuses = new Map<number, number>()
  let last = ''
  for (let count = 0; count < 10_000; count++) {
    const answer = await register({ ...METADATA, client_name: `flood ${count}` }, `198.51.100.${count % 60}`)
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    last = String(answer.body?.client_id ?? last)
    if (count % 5000 === 0) wait(61_000)
  }
  expect(clientCount()).toBeLessThanOrEqual(1001)
  expect(await clients.find(used.id)).toBeDefined()
  expect(await clients.find(last)).toBeDefined()
  expect([...statuses.keys()].sort()).toEqual([201, 429])
})

it('one address may register 30 clients in a minute', async () => {
  const register = registration()
  const flood = async (count: number, address?: string) => {
    const statuses: number[] = []
    for (let at = 0; at < count; at++)
      statuses.push((await register({ ...METADATA, client_name: `${at}` }, address)).status)
    return statuses
  }
  expect(await flood(30)).toEqual(new Array(30).fill(201))
  expect(await register(METADATA)).toMatchObject({
    status: 429,
    body: { error: 'temporarily_unavailable' },
    headers: { 'retry-after': '60' },
  })
  expect(await flood(1, '192.0.2.2')).toEqual([201])
  wait(60_000)
  expect(await flood(1)).toEqual([201])
})

it('a registration is answered with what was registered, never with a secret', async () => {
  const answer = await registration()({
    ...METADATA,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_post',
    scope: 'mcp',
    logo_uri: 'javascript:alert(1)',
  })
  expect(answer).toEqual({
    status: 201,
    body: {
      client_id: expect.stringMatching(/^client-[0-9a-f]{32}$/),
      client_id_issued_at: Math.floor(Date.now() / 1000),
      client_name: 'App',
      redirect_uris: ['https://app.example/cb'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      scope: 'mcp',
    },
  })
})

it.each([
  ['no JSON', '{', 'invalid_client_metadata'],
  ['a list', [], 'invalid_client_metadata'],
  ['null', null, 'invalid_client_metadata'],
  ['no redirect URI', {}, 'invalid_redirect_uri'],
  ['an empty list', { redirect_uris: [] }, 'invalid_redirect_uri'],
  ['a text', { redirect_uris: 'https://app.example/cb' }, 'invalid_redirect_uri'],
  ['a number', { redirect_uris: [1] }, 'invalid_redirect_uri'],
  ['a script', { redirect_uris: ['javascript:alert(1)'] }, 'invalid_redirect_uri'],
  ['one bad of two', { redirect_uris: ['https://app.example/cb', 'http://app.example'] }, 'invalid_redirect_uri'],
  ['too many', { redirect_uris: new Array(21).fill('https://app.example/cb') }, 'invalid_redirect_uri'],
  ['a name that is no text', { ...METADATA, client_name: {} }, 'invalid_client_metadata'],
  ['only machines', { ...METADATA, grant_types: ['client_credentials'] }, 'invalid_client_metadata'],
  ['only implicit', { ...METADATA, response_types: ['token'] }, 'invalid_client_metadata'],
])('a registration with %s is rejected', async (_what, body, error) => {
  expect(await registration()(body)).toMatchObject({ status: 400, body: { error } })
  expect(clientCount()).toBe(0)
})

it('a name is shown on one line, without invisible characters, and not longer than 100 characters', async () => {
  const nameOf = async (client_name: string) => (await registration()({ ...METADATA, client_name })).body?.client_name
  expect(await nameOf('  Cl\u202eau\u0000de\n\n\tCode\u200b ')).toBe('Claude Code')
  expect(await nameOf('é'.repeat(150))).toBe(`${'é'.repeat(100)}…`)
  expect(await nameOf(' \u200b ')).toBeUndefined()
})

it('with listed clients only, none can register', async () => {
  expect(await registration(false)(METADATA)).toMatchObject({ status: 403, body: { error: 'access_denied' } })
})
