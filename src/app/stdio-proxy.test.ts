import { PassThrough } from 'node:stream'
import { afterEach, expect, test, vi } from 'vitest'
import type { Daemon } from '../config/daemon-file.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules, type ServerConfig } from '../config/snapshot.ts'
import { SILENT } from '../telemetry/log.ts'
import { LineDecoder } from '../wire/ndjson.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { serveStdioProxy } from './stdio-proxy.ts'

const DEMO: ServerConfig = { name: 'server', disabled: false, kind: 'builtin', builtin: 'demo' }
const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  vi.useRealTimers()
  for (const close of closing.splice(0).reverse()) await close()
})

/** A daemon that rejects every token but its own. */
const start = async (port: number): Promise<Gateway> => {
  const snapshot = {
    listen: { ...DEFAULT_LISTEN, port },
    limits: { ...DEFAULT_LIMITS, shutdownMs: 100 },
    auth: { required: true },
    servers: new Map([['server', DEMO]]),
    workspaces: new Map([['default', { name: 'default', servers: ['server'], ...defaultRules(1) }]]),
    warnings: [],
  }
  const gateway = await startGateway(snapshot, { log: SILENT })
  closing.push(() => gateway.close())
  return gateway
}

const daemonOf = ({ origin, localSecret }: Gateway): Daemon => ({ origin, token: localSecret, pid: process.pid })

type Response = { id: number; result?: object; error?: { data?: { reason?: string } } }

/** A client on a pipe, and the daemon that the proxy finds when it looks again. */
const openPipe = (daemon: Daemon) => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const found = { daemon, starts: 0, looks: 0 }
  const served = serveStdioProxy({
    daemon,
    findAgain: async mayStart => {
      found.looks++
      if (mayStart) found.starts++
      return found.daemon
    },
    workspace: 'default',
    input,
    output,
    log: SILENT,
    version: '0',
  })
  const waiting = new Map<number, (response: Response) => void>()
  const lines = new LineDecoder(line => {
    const response = JSON.parse(line.toString()) as Response
    waiting.get(response.id)?.(response)
  })
  output.on('data', chunk => lines.feed(chunk))
  closing.push(async () => {
    input.end()
    await served
  })
  let lastId = 0
  const request = (method: string, params: object = {}): Promise<Response> =>
    new Promise(resolve => {
      const id = ++lastId
      waiting.set(id, resolve)
      input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    })
  return { request, found }
}

const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'pipe', version: '1' } }

test('a daemon that was restarted on its port with another token is used at once', async () => {
  const first = await start(0)
  const { request, found } = openPipe(daemonOf(first))
  expect((await request('initialize', INITIALIZE)).result).toBeDefined()
  await first.close()
  const second = await start(first.port)
  found.daemon = daemonOf(second)
  expect((await request('tools/list')).result).toBeDefined()
  expect(found.starts).toBe(0)
})

test('a daemon that moved to another port is found by the first call that fails', async () => {
  const first = await start(0)
  const { request, found } = openPipe(daemonOf(first))
  expect((await request('initialize', INITIALIZE)).result).toBeDefined()
  await first.close()
  found.daemon = daemonOf(await start(0))
  expect((await request('tools/list')).error?.data?.reason).toBe('upstream_unreachable')
  expect((await request('tools/list')).result).toBeDefined()
})

test('a call that fails looks for a daemon without starting one', async () => {
  const first = await start(0)
  const { request, found } = openPipe(daemonOf(first))
  expect((await request('initialize', INITIALIZE)).result).toBeDefined()
  await first.close()
  expect((await request('tools/list')).error?.data?.reason).toBe('upstream_unreachable')
  expect(found.starts).toBe(0)
})

test.each([
  ['that runs until it is stopped is given five minutes to come back', true, 6],
  ['that was started on demand is replaced at the first ping', false, 1],
])('a daemon %s', async (_, isLasting, pings) => {
  const gone = { origin: 'http://127.0.0.1:1', token: 'none', pid: process.pid, isLasting }
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] })
  const { found } = openPipe(gone)
  for (let ping = 1; ping <= pings; ping++) {
    expect(found.starts).toBe(0)
    const before = found.looks
    vi.advanceTimersByTime(60_000)
    await vi.waitFor(() => expect(found.looks).toBe(before + 1))
  }
  expect(found.starts).toBe(1)
})
