import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { ConfigError } from '../../../src/config/problems.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { LogHistory } from '../../../src/telemetry/log-history.ts'
import { runCommand } from '../cli/in-process.ts'

const history = new LogHistory()
const control = {
  reload: vi.fn(() => Promise.reject(new ConfigError('mcp.json has a problem'))),
  restart: vi.fn(() => Promise.resolve()),
  stop: vi.fn(),
}
let data: string
let gateway: Gateway
let [operator, limited] = ['', '']

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'dragoman-admin-'))
  const create = async (...args: string[]) =>
    (JSON.parse((await runCommand(['token', 'create', ...args, '--data', data, '--json'])).stdout) as { token: string })
      .token
  operator = await create('all')
  limited = await create('one', '--workspace', 'demo')
  const snapshot = await loadConfig({
    value: { mcpServers: { demo: { builtin: 'demo' } } },
    env: {},
    flags: { port: 0 },
  })
  gateway = await startGateway(snapshot, { log: SILENT, data, control, history })
  await gateway.ready
})
afterAll(async () => {
  await gateway.close()
  await rm(data, { recursive: true })
})

const ask = (path: string, token: string, method = 'GET') =>
  fetch(`${gateway.origin}/admin/${path}`, { method, headers: { authorization: `Bearer ${token}` } })
const statusOf = async (path: string, token: string, method?: string) => (await ask(path, token, method)).status

test('the status is for the owner and for tokens of every workspace', async () => {
  expect(await statusOf('status', '')).toBe(401)
  expect(await statusOf('status', limited)).toBe(403)
  expect(await statusOf('status', operator, 'POST')).toBe(405)
  for (const token of [operator, gateway.localSecret])
    expect(await (await ask('status', token)).json()).toMatchObject({
      origin: gateway.origin,
      pid: process.pid,
      parkedCalls: 0,
      servers: [{ name: 'demo', state: 'ready' }],
      workspaces: [{ name: 'default' }, { name: 'demo' }],
    })
})

test.each([
  ['logs', 'GET'],
  ['plan', 'POST'],
  ['reload', 'POST'],
  ['restart', 'POST'],
  ['stop', 'POST'],
])('%s is for the owner only', async (path, method) => {
  expect(await statusOf(path, operator, method)).toBe(403)
  expect(await statusOf(path, gateway.localSecret, method === 'GET' ? 'POST' : 'GET')).toBe(405)
})

test('the owner stops and restarts it, and learns why a reload failed', async () => {
  expect(await statusOf('stop', gateway.localSecret, 'POST')).toBe(200)
  expect(await statusOf('restart', gateway.localSecret, 'POST')).toBe(200)
  expect([control.stop.mock.calls.length, control.restart.mock.calls.length]).toEqual([1, 1])
  const failed = await ask('reload', gateway.localSecret, 'POST')
  expect([failed.status, await failed.text()]).toEqual([422, expect.stringContaining('mcp.json has a problem')])
})

test('the log of one server is sent, and later lines to those who follow', async () => {
  history.add({ time: 1, level: 'stderr', server: 'demo', text: 'early' })
  history.add({ time: 2, level: 'info', server: 'other', text: 'hidden' })
  expect(await (await ask('logs?server=demo', gateway.localSecret)).text()).toBe(
    '{"time":1,"level":"stderr","server":"demo","text":"early"}\n',
  )
  const { body } = await ask('logs?server=demo&follow=1', gateway.localSecret)
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toContain('early')
  history.add({ time: 3, level: 'info', server: 'other', text: 'hidden' })
  history.add({ time: 4, level: 'info', server: 'demo', text: 'late' })
  expect((await reader?.read())?.value).toBe('{"time":4,"level":"info","server":"demo","text":"late"}\n')
  await reader?.cancel()
})
