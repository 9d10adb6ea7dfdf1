import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Gateway } from '../../../src/app/gateway.ts'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { META } from '../../../src/protocol/meta.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { remoteConfig } from '../../matrix/server.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { modern, send } from '../../support/raw.ts'
import { modern as answersModern, result, scriptedServer, sendJson } from '../../support/scripted-server.ts'
import { startTwenty, startWith, type Victim } from './twenty.ts'

const CHANGED = 'notifications/tools/list_changed'

let victims: readonly Victim[]
let gateway: Gateway
let slow: Awaited<ReturnType<typeof startSlow>>

beforeAll(async () => {
  victims = await startTwenty()
  slow = await startSlow()
  const names = victims.map(({ config }) => config.name)
  const well = names.filter(name => !name.startsWith('modern-'))
  const ill = [...well, 'dead-1', 'dead-2', 'slow']
  gateway = await startWith([...victims.map(({ config }) => config), ...DEAD, slow.config], { default: names, ill })
}, 60_000)

afterAll(async () => {
  await gateway?.close()
  await slow?.close()
  for (const victim of victims ?? []) await victim.close()
}, 60_000)

const DEAD: readonly ServerConfig[] = [
  remoteConfig('http://127.0.0.1:1/mcp', 'dead-1'),
  {
    name: 'dead-2',
    disabled: false,
    kind: 'process',
    command: '/nowhere/to/be/found',
    args: [],
    env: {},
    cwd: undefined,
    era: 'auto',
    timeoutMs: 20_000,
  },
]

/** A modern server that answers a list when it is told to, and not before. */
const startSlow = async () => {
  const held: { readonly response: ServerResponse; readonly id: unknown }[] = []
  const server = await scriptedServer(
    answersModern(({ body, method }, response) => {
      if (method !== 'POST') return void response.writeHead(405).end()
      if (body.method === 'tools/list') held.push({ response, id: body.id })
      else sendJson(response, result(body.id, { resultType: 'complete', content: [] }))
    }),
  )
  const tools = [{ name: 'late', inputSchema: { type: 'object' } }]
  const listed = { resultType: 'complete', tools, ttlMs: 0, cacheScope: 'private' }
  return {
    config: remoteConfig(server.url, 'slow'),
    held,
    answer: () => {
      for (const { response, id } of held.splice(0)) sendJson(response, result(id, listed))
    },
    close: server.close,
  }
}

interface Listed {
  readonly tools: { readonly name: string }[]
  readonly _meta?: Record<string, unknown>
}

const list = async (workspace: string): Promise<Listed> => {
  const { json } = await send(gateway.url(workspace), modern(1, 'tools/list'))
  return json.result as unknown as Listed
}

/** The servers that have a tool in the list. */
const shownIn = ({ tools }: Listed): Set<string> => new Set(tools.map(({ name }) => name.slice(0, name.indexOf('__'))))

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] as number

describe('twenty servers of every transport and era, two of them dead and one slow', () => {
  test('cold, a list comes without those who are missing, and names them', async () => {
    const listed = await list('ill')
    expect(slow.held.length).toBeGreaterThan(0) // it has not answered anybody yet
    expect(shownIn(listed).size).toBe(17)
    expect(listed._meta?.[META.unavailable]).toEqual(['dead-1', 'dead-2', 'slow'])
    await gateway.ready
  }, 30_000)

  test('the slow one is in the list as soon as it has answered, and the healthy twenty are all in theirs', async () => {
    slow.answer()
    await expect.poll(async () => shownIn(await list('ill')).has('slow'), { timeout: 10_000 }).toBe(true)
    await expect.poll(async () => shownIn(await list('default')).size, { timeout: 10_000 }).toBe(20)
    expect((await list('default'))._meta).toBeUndefined()
    expect((await list('ill'))._meta?.[META.unavailable]).toEqual(['dead-1', 'dead-2'])
  }, 30_000)

  test('warm, a list takes no more than half as long again as with twenty that are well', async () => {
    const ratio = async (): Promise<number> => {
      const times: Record<'default' | 'ill', number[]> = { default: [], ill: [] }
      for (let round = 0; round < 40; round++)
        for (const workspace of round % 2 === 0 ? (['default', 'ill'] as const) : (['ill', 'default'] as const)) {
          const begun = performance.now()
          await list(workspace)
          times[workspace].push(performance.now() - begun)
        }
      return median(times.ill) / median(times.default)
    }
    const ratios: number[] = []
    while (ratios.length < 3 && !ratios.some(found => found <= 1.5)) ratios.push(await ratio())
    expect(Math.min(...ratios)).toBeLessThanOrEqual(1.5)
  }, 60_000)

  test('a call to a dead one fails at once and says which it is, what happened and since when', async () => {
    for (const [name, reason] of [
      ['dead-1', /^Server "dead-1" did not answer: .*ECONNREFUSED/],
      ['dead-2', /^Server "dead-2" could not be started: .*was not found/],
    ] as const) {
      const { json } = await send(gateway.url('ill'), modern(1, 'tools/call', { name: `${name}__x`, arguments: {} }))
      expect(json.error?.code).toBe(-32603)
      expect(json.error?.message).toMatch(reason)
      expect(json.error?.message).toMatch(
        /It has been down since 2\d{3}-\S+Z and is (tried again in \d+ s|being tried)/,
      )
      expect(json.error?.data).toMatchObject({ upstream: name, reason: 'upstream_unreachable' })
    }
  })
})

/** Calls every other server over and over, and keeps whatever was not right. */
const keepCalling = (others: readonly Victim[]) => {
  const wrong: unknown[] = []
  let calls = 0
  let isOver = false
  const url = gateway.url()
  const work = others.map(async ({ config, tool, given = {} }) => {
    while (!isOver) {
      const params = { name: `${config.name}__${tool}`, arguments: given }
      const { json } = await send(url, modern(1, 'tools/call', params))
      calls++
      if (!json.result || json.result.isError) wrong.push([config.name, json])
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })
  return {
    wrong,
    /** Settles when so many more calls were made. */
    more: (count: number) => {
      const wanted = calls + count
      return expect.poll(() => calls, { timeout: 20_000 }).toBeGreaterThan(wanted)
    },
    stop: async () => {
      isOver = true
      await Promise.all(work)
    },
  }
}

describe('one that is killed in the midst of traffic and started again', () => {
  const clients: MatrixClient[] = []
  beforeAll(async () => {
    clients.push(await sessionClient(gateway.url(), '2025-11-25', {}), await statelessClient(gateway.url(), {}))
    for (const client of clients) await client.listen()
    for (const client of clients) expect((await client.call('tools/list')).error).toBeUndefined()
  }, 30_000)
  afterAll(async () => {
    for (const client of clients) await client.close()
  })

  const REMOTE = ['modern-1', 'streamable-1', 'streamable-3', 'streamable-4', 'sse-1', 'sdk-v1', 'sdk-v1-sse', 'sdk-v2']
  const STARTED = ['pipe-legacy', 'pipe-modern', 'sdk-v1-pipe', 'sdk-v2-pipe', 'small']

  test.each([...REMOTE, ...STARTED])('%s', { timeout: 60_000 }, async name => {
    const victim = victims.find(({ config }) => config.name === name) as Victim
    const traffic = keepCalling(victims.filter(other => other !== victim))
    const [client] = clients as [MatrixClient]
    const call = (tool: string) => client.call('tools/call', { name: `${name}__${tool}`, arguments: {} })
    try {
      expect((await call(victim.tool)).error).toBeUndefined()
      await traffic.more(20)
      const underWay = call(victim.slowTool)
      await traffic.more(20)
      await victim.kill()
      expect(await underWay).toMatchObject({
        error: { code: -32603, message: expect.stringContaining(`"${name}"`), data: { upstream: name } },
      })
      if (victim.revive) {
        const failures = []
        while (stateOf(name) !== 'down') failures.push(await call(victim.tool))
        for (const { error } of failures) expect(error?.message).toContain(`"${name}"`)
        expect((await call(victim.tool)).error?.message).toContain('It has been down since')
        const before = clients.map(changesHeard)
        await victim.revive()
        await expect
          .poll(() => clients.map(changesHeard).every((count, at) => count > (before[at] ?? 0)), { timeout: 20_000 })
          .toBe(true)
      }
      await expect.poll(async () => (await call(victim.tool)).error, { timeout: 20_000 }).toBeUndefined()
      expect(stateOf(name)).toBe('ready')
      await expect.poll(async () => shownIn(await list('default')).size, { timeout: 10_000 }).toBe(20)
      await traffic.more(20)
    } finally {
      await traffic.stop()
    }
    expect(traffic.wrong).toEqual([])
  })

  const changesHeard = ({ received }: MatrixClient): number =>
    received.filter(({ method }) => method === CHANGED).length

  const stateOf = (name: string): string | undefined =>
    gateway
      .status()
      .flatMap(({ servers }) => servers)
      .find(server => server.name === name)?.state
})
