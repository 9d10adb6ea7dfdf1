import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { Answerer, TestClient } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { createTestLog } from '../../support/log.ts'
import { createToken } from '../auth/guarded.ts'
import { call, openSession } from '../cli/call.ts'

let folder: string
const closing: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-swap-'))
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await rm(folder, { recursive: true })
})

const load = async (config: object) => {
  const file = join(folder, 'mcp.json')
  await writeFile(file, JSON.stringify({ limits: { shutdownMs: 200 }, ...config }))
  return loadConfig({ file, env: {}, flags: { port: 0 } })
}

const start = async (
  config: object,
  data?: string,
): Promise<Gateway & { swapTo: (config: object) => Promise<void> }> => {
  const { log } = createTestLog()
  const gateway = await startGateway(await load(config), { log, data })
  closing.push(() => gateway.close())
  await gateway.ready
  return { ...gateway, swapTo: async next => void gateway.swap(await load(next)) }
}

/** Something far away that has sessions: another gateway, spoken to as a legacy server. */
const startFar = async () => {
  const far = await start({ mcpServers: { demo: { builtin: 'demo' } } })
  return { entry: { url: far.url(), era: 'legacy' }, far }
}

const connect = async (kind: 'v1' | 'v2', url: string, answer?: Answerer): Promise<TestClient> => {
  const client =
    kind === 'v1' ? await connectV1({ url, ...(answer && { answer }) }) : await connectV2('SDK v2 modern', { url })
  closing.push(() => client.close().catch(() => {}))
  return client
}

const DEMO = { builtin: 'demo' }

/** A tool call that waits for an answer until `answer` is called. */
const waitingCall = async (url: string, tool: string) => {
  let answer = (): void => {}
  const asked = new Promise<void>(resolve => {
    answer = resolve
  })
  const client = await connect('v1', url, async () => {
    await asked
    return { action: 'accept', content: { username: 'ada', email: 'a@b.test' } }
  })
  const result = client.call(tool, { message: 'Who?' })
  await expect.poll(() => client.asked.length).toBe(1)
  return { client, answer, result }
}

test('a server that is added is there at once, and whoever listens is told', async () => {
  const one = { mcpServers: { a: DEMO }, workspaces: { default: { servers: ['a'], names: 'prefix' } } }
  const gateway = await start(one)
  const legacy = await connect('v1', gateway.url())
  const modern = await connect('v2', gateway.url())
  await modern.watch('test://watched-resource')
  expect((await legacy.toolNames()).every(name => name.startsWith('a__'))).toBe(true)
  await gateway.swapTo({
    mcpServers: { a: DEMO, b: DEMO },
    workspaces: { default: { servers: ['a', 'b'], names: 'prefix' } },
  })
  for (const client of [legacy, modern]) {
    await client.notices.next('notifications/tools/list_changed')
    expect(await client.toolNames()).toEqual(expect.arrayContaining(['a__example-ping', 'b__example-ping']))
    expect((await client.call('b__example-ping')).content).toEqual([{ type: 'text', text: 'pong' }])
  }
})

test('a call under way to a server that is taken away finishes; the server is closed then', async () => {
  const { entry, far } = await startFar()
  const workspaces = (servers: string[]) => ({ default: { servers, names: 'prefix' } })
  const gateway = await start({ mcpServers: { far: entry, near: DEMO }, workspaces: workspaces(['far', 'near']) })
  const { client, answer, result } = await waitingCall(gateway.url(), 'far__test_elicitation')
  await gateway.swapTo({ mcpServers: { near: DEMO }, workspaces: workspaces(['near']) })
  await client.notices.next('notifications/tools/list_changed')
  expect((await client.toolNames()).filter(name => name.startsWith('far'))).toEqual([])
  await expect(client.call('far__example-ping')).rejects.toThrow('Unknown tool')
  expect(far.load().sessions).toBeGreaterThan(0)
  answer()
  expect(JSON.stringify(await result)).toContain('ada')
  await expect.poll(() => far.load().sessions, { timeout: 8000 }).toBe(0)
})

test('what is the same in both configurations keeps its sessions and its calls', async () => {
  const { entry, far } = await startFar()
  const rest = { far: entry, near: DEMO }
  const gateway = await start({ mcpServers: rest, workspaces: { default: { servers: ['far', 'near'] } } })
  const { answer, result, client } = await waitingCall(gateway.url(), 'far__test_elicitation')
  const before = far.load().sessions
  await gateway.swapTo({ mcpServers: { ...rest, more: DEMO }, workspaces: { default: { servers: '*' } } })
  await client.notices.next('notifications/tools/list_changed')
  answer()
  expect(JSON.stringify(await result)).toContain('ada')
  await client.call('far__example-ping')
  expect(far.load().sessions).toBe(before)
})

test('a server that is changed is another one: new calls reach the new one, old ones finish on the old', async () => {
  const [first, second] = [await startFar(), await startFar()]
  const gateway = await start({ mcpServers: { far: first.entry } })
  const { client, answer, result } = await waitingCall(gateway.url(), 'test_elicitation')
  await gateway.swapTo({ mcpServers: { far: second.entry } })
  expect((await client.call('example-ping')).content).toEqual([{ type: 'text', text: 'pong' }])
  expect(second.far.load().sessions).toBeGreaterThan(0)
  expect(first.far.load().sessions).toBeGreaterThan(0)
  answer()
  expect(JSON.stringify(await result)).toContain('ada')
  await expect.poll(() => first.far.load().sessions, { timeout: 8000 }).toBe(0)
})

test('the sessions of a workspace that is taken away end as if they had been deleted, after their calls', async () => {
  const gateway = await start({
    mcpServers: { demo: DEMO },
    workspaces: { default: { servers: ['demo'] }, other: { servers: ['demo'] } },
  })
  const url = gateway.url('other')
  const { result, client, answer } = await waitingCall(url, 'test_elicitation')
  const idle = await openSession(url)
  await gateway.swapTo({ mcpServers: { demo: DEMO }, workspaces: { default: { servers: ['demo'] } } })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'tools/list' })
  const refused = await fetch(url, { method: 'POST', headers: idle, body })
  expect([refused.status, await refused.json()]).toMatchObject([404, { error: { message: /no workspace "other"/ } }])
  await expect(client.toolNames()).rejects.toThrow('no workspace "other" any more')
  answer()
  expect(JSON.stringify(await result)).toContain('ada')
  await expect.poll(() => gateway.load()).toMatchObject({ sessions: 0, calls: 0 })
})

test('what a token may see follows the policies of the configuration, in open sessions too', async () => {
  const data = await mkdtemp(join(folder, 'data-'))
  const { headers } = await createToken(data, { policy: 'pings' })
  const config = (policies: object) => ({ mcpServers: { demo: DEMO }, policies })
  const gateway = await start(config({ pings: { allow: { tools: ['demo/*ping'] } } }), data)
  const session = { ...(await openSession(gateway.url(), {}, headers)), ...headers }
  const names = async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'tools/list' })
    const answer = await fetch(gateway.url(), { method: 'POST', headers: session, body })
    return ((await answer.json()) as { result: { tools: { name: string }[] } }).result.tools.map(({ name }) => name)
  }
  expect(await names()).toEqual(['example-ping'])
  await gateway.swapTo(config({ pings: { allow: { tools: ['demo/*echo'] } } }))
  expect(await names()).toEqual(['example-echo'])
  await gateway.swapTo(config({}))
  expect(await names()).toEqual([])
})

test('what cannot change while it runs stays, and is said', async () => {
  const gateway = await start({ mcpServers: { demo: DEMO } })
  const next = await load({ mcpServers: { demo: DEMO }, limits: { shutdownMs: 200, batchSize: 1 } })
  expect(gateway.swap(next)).toEqual({
    servers: [],
    workspaces: [],
    policies: [],
    settings: [{ name: 'limits', kind: 'changed', details: [{ at: 'batchSize', from: '100', to: '1' }] }],
  })
  expect(JSON.stringify(await call(gateway.url(), 'tools/list'))).toContain('example-ping')
})
