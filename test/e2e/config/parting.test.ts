import { afterEach, expect, test } from 'vitest'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  defaultRules,
  type ServerConfig,
  type Snapshot,
} from '../../../src/config/snapshot.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import {
  legacy,
  result,
  type Script,
  type ScriptedServer,
  scriptedServer,
  sendJson,
} from '../../support/scripted-server.ts'
import { call, openSession } from '../cli/call.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const SESSIONS = Array.from({ length: 50 }, (_, i) => `s${i + 1}`)

/** Answers everything; whoever leaves early is let go slowly. */
const answering = (ended: Set<unknown>): Script => {
  let left = 0
  const talk = legacy(
    ({ body }, response) => {
      if (body.id === undefined) response.writeHead(202).end()
      else sendJson(response, result(body.id, { tools: [] }))
    },
    { sessions: SESSIONS },
  )
  return (arrived, response) => {
    if (arrived.method !== 'DELETE') return talk(arrived, response)
    const session = arrived.headers['mcp-session-id']
    setTimeout(() => response.writeHead(204).end(() => ended.add(session)), left++ < 2 ? 400 : 0)
  }
}

const DEMO: ServerConfig = { name: 'far', disabled: false, kind: 'builtin', builtin: 'demo' }

const remote = (url: string): ServerConfig => ({
  name: 'far',
  disabled: false,
  kind: 'remote',
  url,
  type: 'http',
  headers: {},
  era: 'legacy',
  timeoutMs: 2000,
})

const snapshotWith = (server: ServerConfig): Snapshot => ({
  listen: { ...DEFAULT_LISTEN, port: 0 },
  limits: { ...DEFAULT_LIMITS, shutdownMs: 200 },
  servers: new Map([[server.name, server]]),
  workspaces: new Map([['default', { name: 'default', servers: [server.name], ...defaultRules(1) }]]),
  warnings: [],
})

/** A gateway before a server that knows which of its sessions were ended. */
const start = async () => {
  const ended = new Set<unknown>()
  const server = await scriptedServer(answering(ended))
  closing.push(() => server.close())
  const gateway = await startGateway(snapshotWith(remote(server.url)), { log: SILENT })
  closing.push(() => gateway.close())
  return { server, gateway, ended }
}

/** Several callers of both eras, some of whom have just left. */
const useIt = async (gateway: Gateway): Promise<void> => {
  const url = gateway.url('default')
  const sessions = await Promise.all(Array.from({ length: 4 }, () => openSession(url)))
  for (const headers of sessions) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' })
    await (await fetch(url, { method: 'POST', headers, body })).text()
  }
  await call(url, 'tools/list')
  await Promise.all(sessions.slice(0, 2).map(headers => fetch(url, { method: 'DELETE', headers })))
}

const opened = (server: ScriptedServer): number => server.of('initialize').length

test('a gateway that stops ends every session it opened at a server', async () => {
  const { server, gateway, ended } = await start()
  await useIt(gateway)
  await gateway.close()
  expect(opened(server)).toBeGreaterThan(4)
  expect(ended.size).toBe(opened(server))
})

test('so does one whose configuration does not name the server any more', async () => {
  const { server, gateway, ended } = await start()
  await useIt(gateway)
  gateway.swap(snapshotWith(DEMO))
  await server.until(() => ended.size === opened(server), 'the end of every session')
  expect(opened(server)).toBeGreaterThan(4)
})
