import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules, type ServerConfig } from '../../../src/config/snapshot.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import type { TestClient } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { modern, openSession, send } from '../../support/raw.ts'

const PROGRAM = fileURLToPath(new URL('../../support/servers/dual-era.mjs', import.meta.url))
const closing: (() => Promise<void>)[] = []
let gateway: Gateway
let direct = ''

const common = { disabled: false, era: 'auto', timeoutMs: 5000 } as const
const configs = (url: string): ServerConfig[] => [
  { ...common, name: 'web', kind: 'remote', url, type: 'auto', headers: {} },
  { ...common, name: 'pipe', kind: 'process', command: process.execPath, args: [PROGRAM, 'stdio'], env: {}, cwd: '/' },
]

beforeAll(async () => {
  const server = spawn(process.execPath, [PROGRAM, 'http'], { stdio: ['ignore', 'pipe', 'inherit'] })
  closing.push(async () => void server.kill())
  const [line] = (await once(server.stdout, 'data')) as [Buffer]
  direct = line.toString().trim()
  const servers = new Map(configs(direct).map(config => [config.name, config]))
  gateway = await startGateway(
    {
      listen: { ...DEFAULT_LISTEN, port: 0 },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 500 },
      servers,
      workspaces: new Map(
        Object.entries({ web: ['web'], pipe: ['pipe'], joint: ['web', 'pipe'] }).map(([name, members]) => {
          return [name, { name, servers: members, ...defaultRules(members.length) }]
        }),
      ),
      warnings: [],
    },
    { log: SILENT },
  )
  await gateway.ready
  closing.push(() => gateway.close())
})
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/** What a client gets of the server: its lists, an answered question, a log line. */
const experience = async (client: TestClient, prefix = '') => {
  const text = async (name: string) => (await client.call(`${prefix}${name}`, {})).content[0]?.text
  const tools = await client.toolNames()
  const [greeting, logged] = [await text('greet'), await text('log')]
  if (client.era === 'legacy') await client.notices.next('notifications/message')
  const asked = client.asked.length
  await client.close()
  return { era: client.era, tools: tools.filter(name => name.startsWith(prefix)), greeting, logged, asked }
}
const answer = () => ({ action: 'accept', content: { name: 'Ada' } })
const urlOf = (place: string): string => (place === 'direct' ? direct : gateway.url(place))

const CLIENTS = {
  'SDK v1': (url: string) => connectV1({ url, answer }),
  'SDK v2 legacy': (url: string) => connectV2('SDK v2 legacy', { url, answer }),
  'SDK v2 auto': (url: string) => connectV2('SDK v2 auto', { url, answer }),
}

describe.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])('%s before a server of both eras', kind => {
  it.each(['web', 'pipe'])('gets through the gateway what it gets directly: %s', async place => {
    const expected = await experience(await CLIENTS[kind](direct))
    expect(await experience(await CLIENTS[kind](urlOf(place)))).toEqual(expected)
    expect(expected).toMatchObject(
      kind === 'SDK v2 auto'
        ? { era: 'modern', tools: ['greet', 'log'], greeting: expect.stringContaining('unavailable') }
        : { era: 'legacy', tools: ['greet', 'log', 'legacy_only'], greeting: 'hello Ada', asked: 1 },
    )
  })

  it('gets the same in a workspace of several servers', async () => {
    const expected = await experience(await CLIENTS[kind](direct))
    for (const prefix of ['web__', 'pipe__']) {
      // The first answer may be what the gateway learnt in the other era; the client's own list follows it.
      await vi.waitFor(async () => {
        const client = await CLIENTS[kind](urlOf('joint'))
        const tools = await client.toolNames().finally(() => client.close())
        expect(tools).toEqual(expect.arrayContaining(expected.tools.map(name => prefix + name)))
      }, 5000)
      const found = await experience(await CLIENTS[kind](urlOf('joint')), prefix)
      expect(found).toEqual({ ...expected, tools: expected.tools.map(name => prefix + name) })
    }
  })
})

it.each(['web', 'pipe'])(
  'a legacy client is told the flags of the legacy leg, a modern one those of the modern: %s',
  async place => {
    const { result } = await openSession(gateway.url(place))
    expect(result.capabilities).toEqual({ logging: {}, tools: { listChanged: true } })
    const discovered = await send(gateway.url(place), modern(1, 'server/discover'))
    expect(discovered.json.result?.capabilities).toEqual({ logging: {}, tools: { listChanged: false } })
  },
)
