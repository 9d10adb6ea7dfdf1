import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules, type ServerConfig } from '../../../src/config/snapshot.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import type { ClientOptions, TestClient } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { modern, send } from '../../support/raw.ts'
import { type Created, createToken } from '../auth/guarded.ts'
import { type GatedServer, startGated } from './gated-server.ts'

const CHANGED = 'notifications/tools/list_changed'
const ALL = ['slow__one', 'slow__two', 'quick__x']

const CLIENTS: readonly [string, (options: ClientOptions) => Promise<TestClient>][] = [
  ['SDK v1', connectV1],
  ['SDK v2 modern', options => connectV2('SDK v2 modern', options)],
  ['SDK v2 legacy', options => connectV2('SDK v2 legacy', options)],
]

const CAPABILITIES = [{}, { roots: {} }, { elicitation: {}, roots: { listChanged: true } }]

/** A slow server beside a quick one. */
const servers = async (): Promise<{ slow: GatedServer; quick: GatedServer }> => {
  const [slow, quick] = [await startGated('slow', 'one', 'two'), await startGated('quick', 'x')]
  onTestFinished(async () => void (await Promise.all([slow.end(), quick.end()])))
  return { slow, quick }
}

const folder = async (): Promise<string> => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-lists-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  return data
}

interface Start {
  readonly data?: string
  readonly listWaitMs?: number
}

const start = async (configs: readonly ServerConfig[], { data, listWaitMs = 8000 }: Start = {}) => {
  const names = configs.map(({ name }) => name)
  const gateway = await startGateway(
    {
      listen: { ...DEFAULT_LISTEN, port: 0 },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 200, listWaitMs },
      servers: new Map(configs.map(config => [config.name, config])),
      workspaces: new Map([['default', { name: 'default', servers: names, ...defaultRules(names.length) }]]),
      warnings: [],
    },
    { log: SILENT, data },
  )
  onTestFinished(() => gateway.close())
  return { gateway, url: gateway.url() }
}

const opened = async (opening: Promise<TestClient>): Promise<TestClient> => {
  const client = await opening
  onTestFinished(() => client.close())
  return client
}

/** A modern client of the SDK listens only on request. */
const isTold = async ({ era, notices }: TestClient): Promise<void> => {
  if (era === 'legacy') await notices.next(CHANGED)
}

/** Long enough for processes to start on a busy machine. */
const eventually = <T>(value: () => T) => expect.poll(value, { timeout: 15_000 })

const isReady = async ({ origin }: Gateway): Promise<boolean> => (await fetch(`${origin}/readyz`)).ok

describe.each(CLIENTS)('%s', (_, connect) => {
  test('gets every tool once the gateway is ready, with any capabilities, while no process answers it', async () => {
    const { slow, quick } = await servers()
    const { gateway, url } = await start([slow.config, quick.config])
    await eventually(() => isReady(gateway)).toBe(true)
    slow.close() // whatever is asked of it from now on is not answered
    for (const capabilities of CAPABILITIES) {
      const client = await opened(connect({ url, capabilities }))
      expect(await client.toolNames()).toEqual(ALL)
    }
    const response = await fetch(`${gateway.origin}/actions/default/openapi.json`)
    expect(await response.text()).toContain('slow__two')
  })

  test('gets its own list behind that, and list_changed only if it differs', async () => {
    const { slow, quick } = await servers()
    const { gateway, url } = await start([slow.config, quick.config])
    await gateway.ready
    for (const server of [slow, quick]) server.close()
    const plain = await opened(connect({ url, capabilities: { roots: {} } }))
    const sampling = await opened(connect({ url, capabilities: { sampling: {} } }))
    expect(await Promise.all([plain.toolNames(), sampling.toolNames()])).toEqual([ALL, ALL])
    for (const server of [slow, quick]) server.open()
    await isTold(sampling)
    const more = ['slow__one', 'slow__two', 'slow__sample', 'quick__x', 'quick__sample']
    await eventually(() => sampling.toolNames()).toEqual(more)
    await eventually(() => slow.asked.filter(method => method === 'tools/list').length).toBe(3)
    expect(await plain.toolNames()).toEqual(ALL)
    expect(plain.notices.pending(CHANGED)).toEqual([])
  })

  test('that comes before a server has started waits for its tools', async () => {
    const { slow, quick } = await servers()
    slow.close()
    const { url, gateway } = await start([slow.config, quick.config])
    const listing = opened(connect({ url, capabilities: { roots: {} } })).then(client => client.toolNames())
    const describing = fetch(`${gateway.origin}/actions/default/openapi.json`).then(response => response.text())
    await eventually(() => slow.asked).toContain('initialize')
    slow.open()
    expect(await listing).toEqual(ALL)
    for (const tool of ALL) expect(await describing).toContain(tool)
  })

  test('that waits in vain is told when the tools are there', async () => {
    const { slow, quick } = await servers()
    slow.close()
    const { url, gateway } = await start([slow.config, quick.config], { listWaitMs: 50 })
    await eventually(() => gateway.status()[0]?.servers[1]?.state).toBe('ready')
    const client = await opened(connect({ url, capabilities: { roots: {} } }))
    expect(await client.toolNames()).toEqual(['quick__x'])
    slow.open()
    await isTold(client)
    await eventually(() => client.toolNames()).toEqual(ALL)
  })

  test('gets every tool after a restart while the server still starts, and calls wait for it', async () => {
    const { slow, quick } = await servers()
    const data = await folder()
    const first = await start([slow.config, quick.config], { data })
    await first.gateway.ready
    await first.gateway.close()
    slow.close()
    const { url } = await start([slow.config, quick.config], { data })
    const client = await opened(connect({ url, capabilities: { roots: {} } }))
    expect(await client.toolNames()).toEqual(ALL)
    const calling = client.call('slow__one')
    await eventually(() => slow.asked.filter(method => method === 'initialize').length).toBeGreaterThan(1)
    slow.open()
    expect(await calling).toMatchObject({ content: [{ text: 'called slow' }] })
  })
})

describe('a workspace with one server', () => {
  test.each(CLIENTS)('%s: lists and initialize wait for it only once', async (_, connect) => {
    const { slow } = await servers()
    const data = await folder()
    const first = await start([slow.config], { data })
    await first.gateway.ready
    await first.gateway.close()
    slow.close()
    const { url } = await start([slow.config], { data, listWaitMs: 200 })
    for (const capabilities of CAPABILITIES) {
      const client = await opened(connect({ url, capabilities }))
      expect(await client.toolNames()).toEqual(['one', 'two'])
    }
    const sampling = await opened(connect({ url, capabilities: { sampling: {} } }))
    expect(await sampling.toolNames()).toEqual(['one', 'two'])
    slow.open()
    await isTold(sampling)
    await eventually(() => sampling.toolNames()).toEqual(['one', 'two', 'sample'])
  })
})

test("what a user's process lists after a call is shown to no other user, nor stored", async () => {
  const { slow, quick } = await servers()
  const data = await folder()
  const [ann, bob] = [await createToken(data), await createToken(data)]
  const ask = async (url: string, { headers }: Created, method: string, params = {}): Promise<string> => {
    const request = modern(1, method, params, { capabilities: { roots: {} } })
    return (await send(url, { ...request, headers: { ...request.headers, ...headers } })).text
  }
  const first = await start([slow.config, quick.config], { data })
  await first.gateway.ready
  expect(await ask(first.url, ann, 'tools/call', { name: 'slow__one', arguments: {} })).toContain('called slow')
  await eventually(() => ask(first.url, ann, 'tools/list')).toContain('slow__made_by_process')
  const others = [await ask(first.url, bob, 'tools/list')]
  await first.gateway.close()
  const second = await start([slow.config, quick.config], { data })
  for (const token of [ann, bob]) others.push(await ask(second.url, token, 'tools/list'))
  for (const text of others) {
    expect(text).toContain('slow__two')
    expect(text).not.toContain('made_by_process')
  }
  await second.gateway.close() // nothing is written any more
  for (const file of await readdir(join(data, 'lists')))
    expect(await readFile(join(data, 'lists', file), 'utf8')).not.toContain('made_by_process')
})

test('the instructions of all servers are in the first answer to initialize', async () => {
  const all = await Promise.all(Array.from({ length: 25 }, (_, i) => startGated(`s${i}`, 'x')))
  onTestFinished(async () => void (await Promise.all(all.map(server => server.end()))))
  const configs = all.map(({ config }) => config)
  const { gateway, url } = await start(configs)
  await gateway.ready
  for (const server of all) server.close()
  const body = {
    protocolVersion: '2025-06-18',
    capabilities: { sampling: {} },
    clientInfo: { name: 'c', version: '1' },
  }
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const init = { jsonrpc: '2.0', id: 1, method: 'initialize', params: body }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(init) })
  const text = await response.text()
  expect(all.filter(({ config }) => !text.includes(`Use ${config.name}.`))).toEqual([])
}, 60_000)

describe('lists on disk', () => {
  const learn = async (data: string, configs: readonly ServerConfig[]): Promise<void> => {
    const { gateway } = await start(configs, { data })
    await gateway.ready
    await gateway.close()
  }

  /** The tools that a client lists after a restart while no server answers. */
  const restart = async (data: string, configs: readonly ServerConfig[]): Promise<string[]> => {
    const { url } = await start(configs, { data, listWaitMs: 50 })
    const client = await opened(connectV1({ url, capabilities: { roots: {} } }))
    return client.toolNames()
  }

  test('are not used for a changed entry, nor shown for a removed one', async () => {
    const { slow, quick } = await servers()
    const data = await folder()
    await learn(data, [slow.config, quick.config])
    slow.close()
    const changed = { ...slow.config, env: { TOKEN: 'another' } } as ServerConfig
    expect(await restart(data, [changed, quick.config])).toEqual(['quick__x'])
    expect(await restart(data, [quick.config, quick.config])).toEqual(['quick__x'])
  })

  test('are shared by two gateways with one data directory', async () => {
    const { slow, quick } = await servers()
    const data = await folder()
    const both = await Promise.all([start([slow.config, quick.config], { data }), start([quick.config], { data })])
    await Promise.all(both.map(({ gateway }) => gateway.ready))
    await Promise.all(both.map(({ gateway }) => gateway.close()))
    slow.close()
    quick.close()
    expect(await restart(data, [slow.config, quick.config])).toEqual(ALL)
  })
})

test('lists start no process for a list that is known, and a call only that of its server', async () => {
  const { slow, quick } = await servers()
  const data = await folder()
  const sampling = { capabilities: { sampling: {} } }
  const running = () => [slow.processes(), quick.processes()]
  const list = async (url: string) => {
    const listed: string[][] = []
    for (const [, connect] of CLIENTS)
      for (const more of [{}, sampling]) {
        const client = await connect({ url, capabilities: {}, ...more })
        listed.push(await client.toolNames())
        await client.close()
      }
    return listed
  }
  const first = await start([slow.config, quick.config], { data })
  await first.gateway.ready
  await list(first.url)
  await eventually(running).toEqual([2, 2]) // one more for clients with sampling: to them the server lists more
  const more = ['slow__one', 'slow__two', 'slow__sample', 'quick__x', 'quick__sample']
  await eventually(async () => (await list(first.url))[1]).toEqual(more)
  const before = await list(first.url)
  expect(before.filter((_, at) => at % 2 === 1)).toEqual([more, more, more])
  expect(before.filter((_, at) => at % 2 === 0)).toEqual([ALL, ALL, ALL])
  expect(running()).toEqual([2, 2])
  const caller = await opened(connectV1({ url: first.url, ...sampling }))
  await caller.call('slow__one')
  await caller.call('unknown').catch(() => {})
  expect(running()).toEqual([3, 2])
  await first.gateway.close()

  const second = await start([slow.config, quick.config], { data })
  await second.gateway.ready
  expect(await list(second.url)).toEqual(before)
  expect(running()).toEqual([4, 3])
})
