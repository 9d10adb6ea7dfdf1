import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as TransportV2 } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules } from '../../../src/config/snapshot.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { remoteConfig } from '../../matrix/server.ts'
import type { ClientOptions, TestClient } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { legacy, modern, result, type ScriptedServer, scriptedServer, sendJson } from '../../support/scripted-server.ts'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
const EACH = 18
const SLOW_MS = 150 // before each answer to a list
const NAMES = Array.from({ length: 25 }, (_, at) => `s${at}`)
const ALL = NAMES.flatMap(name => Array.from({ length: EACH }, (_, at) => `${name}__tool_${at}`)).sort()

const toolsFrom = (page: number) =>
  Array.from({ length: EACH / 2 }, (_, at) => ({
    name: `tool_${page * (EACH / 2) + at}`,
    inputSchema: { type: 'object' },
  }))

/** A server with tools on two pages, which takes its time; every second one is of the modern era. */
const startOne = (at: number): Promise<ScriptedServer> => {
  const era = at % 2 === 0 ? modern : legacy
  return scriptedServer(
    era(({ body, method }, response) => {
      if (method !== 'POST') return void response.writeHead(405).end()
      const page = body.params?.cursor === undefined ? 0 : 1
      const listed = { tools: toolsFrom(page), ...(page === 0 && { nextCursor: 'next' }) }
      const more = era === modern ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {}
      if (body.method === 'tools/list') setTimeout(sendJson, SLOW_MS, response, result(body.id, { ...listed, ...more }))
      else sendJson(response, result(body.id, more))
    }),
  )
}

let servers: readonly ScriptedServer[]
beforeAll(async () => {
  servers = await Promise.all(NAMES.map((_, at) => startOne(at)))
})
afterAll(async () => {
  for (const server of servers) await server.close()
})

const CLIENTS: readonly [string, (options: ClientOptions) => Promise<TestClient>][] = [
  ['SDK v1', connectV1],
  ['SDK v2 modern', options => connectV2('SDK v2 modern', options)],
]

describe.each(CLIENTS)('25 servers: the first client, %s,', (_, connect) => {
  test.each([{}, { sampling: {}, roots: {} }])(
    'lists every tool of all of them with capabilities %j',
    async capabilities => {
      const configs = servers.map(({ url }, at) => remoteConfig(url, NAMES[at] as string))
      const gateway = await startGateway(
        {
          listen: { ...DEFAULT_LISTEN, port: 0 },
          limits: { ...DEFAULT_LIMITS, shutdownMs: 200 },
          servers: new Map(configs.map(config => [config.name, config])),
          workspaces: new Map([['default', { name: 'default', servers: NAMES, ...defaultRules(NAMES.length) }]]),
          warnings: [],
        },
        { log: SILENT },
      )
      onTestFinished(() => gateway.close())
      await gateway.ready
      const client = await connect({ url: gateway.url(), capabilities })
      onTestFinished(() => client.close())
      expect((await client.toolNames()).sort()).toEqual(ALL)
    },
  )
})

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('25 servers: `dragoman stdio` that starts the daemon', () => {
  const start = () => {
    const data = mkdtempSync(join(tmpdir(), 'dragoman-25-'))
    const config = join(data, 'mcp.json')
    const entries = servers.map(({ url }, at) => [NAMES[at], { url }])
    writeFileSync(config, JSON.stringify({ mcpServers: Object.fromEntries(entries) }))
    onTestFinished(async () => {
      const { pid } = JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { pid: number }
      process.kill(pid, 'SIGTERM')
      await expect.poll(() => isRunning(pid), { timeout: 20_000 }).toBe(false)
      rmSync(data, { recursive: true, force: true })
    })
    return {
      command: process.execPath,
      args: [MAIN, 'stdio', '--data', data, '--config', config],
      stderr: 'ignore' as const,
    }
  }

  test('lists every tool to a legacy client', async () => {
    const client = new Client({ name: 'cold', version: '1' }, { capabilities: { sampling: {} } })
    await client.connect(new StdioClientTransport(start()))
    onTestFinished(() => client.close())
    expect((await client.listTools()).tools.map(({ name }) => name).sort()).toEqual(ALL)
  })

  test('lists every tool to a modern client', async () => {
    const client = new ClientV2(
      { name: 'cold', version: '1' },
      { capabilities: {}, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    await client.connect(new TransportV2(start()))
    onTestFinished(() => client.close())
    expect((await client.listTools()).tools.map(({ name }) => name).sort()).toEqual(ALL)
  })
})
