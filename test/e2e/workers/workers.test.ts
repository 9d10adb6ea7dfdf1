import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openRawChannel } from '../../support/channel.ts'
import { type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { rpcInitialize, rpcRequest } from '../../support/front.ts'
import { eventually, SERVER } from '../../support/processes.ts'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
import { livingWith } from '../../support/run-processes.ts'
import { start as startServer } from '../../support/servers/sdk-v1-server.ts'
import { endPrograms, startProgram } from '../cli/program.ts'
import { isRunning, ready, startWorkers, type WorkerGateway } from './worker-gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'dragoman-workers-'))
const file = join(folder, 'mcp.json')
const run = randomUUID()
let server: Awaited<ReturnType<typeof startServer>>
const clients: TestClient[] = []

beforeAll(async () => {
  server = await startServer()
  const small = { command: process.execPath, args: [SERVER, '{}'], env: { TEST_RUN: run } }
  const newer = { command: process.execPath, args: [SERVER, '{"era":"modern"}'], env: { TEST_RUN: `${run}-modern` } }
  writeFileSync(file, JSON.stringify({ mcpServers: { remote: { url: server.url }, small, newer } }))
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close().catch(() => {})
  await endPrograms()
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const start = (): Promise<WorkerGateway> => startWorkers(['--config', file, '--data', join(folder, randomUUID())])
const tool = (id: number, name: string, given: object = {}) => rpcRequest(id, 'tools/call', { name, arguments: given })
const contentOf = (reply: { json: { result?: Record<string, unknown> } }): string =>
  (reply.json.result?.content as { text: string }[] | undefined)?.[0]?.text ?? JSON.stringify(reply.json)
const forwardsOf = async ({ origin }: WorkerGateway): Promise<number> => {
  const { text } = await send(`${origin}/metrics`, { method: 'GET' })
  return Number(/^dragoman_forwards_total\{outcome="forwarded"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}

test('a session serves requests that reach any worker, one connection each', async () => {
  const gateway = await start()
  const url = `${gateway.url}/remote`
  const session = await openSession(url)
  for (let id = 1; id <= 8; id++) {
    const reply = await send(url, { headers: session.headers, body: tool(id, 'echo', { text: `call ${id}` }) })
    expect([reply.status, contentOf(reply)]).toEqual([200, expect.stringContaining(`call ${id}`)])
  }
  expect(await forwardsOf(gateway)).toBeGreaterThan(2)
  expect((await send(url, { method: 'DELETE', headers: session.headers })).status).toBe(200)
  for (let id = 1; id <= 2; id++)
    expect((await send(url, { headers: session.headers, body: tool(id, 'echo') })).status).toBe(404)
}, 60_000)

test('SDK clients of every era list, call, are asked and hear of changes', async () => {
  const gateway = await start()
  const url = `${gateway.url}/remote`
  clients.push(
    await connectV1({ url, persistent: true }),
    await connectV1({ url: `${gateway.origin}/remote/sse`, sse: true }),
    await connectV2('SDK v2 modern', { url }),
  )
  for (const client of clients) {
    expect(await client.toolNames()).toContain('echo')
    expect(textOf(await client.call('echo', { text: 'hello' }))).toContain('hello')
    expect(textOf(await client.call('test_elicitation', { message: 'Who?' }))).toContain('Ada')
    await client.watch('test://watched-resource')
    await client.call('change_watched_resource')
    await client.notices.next('notifications/resources/updated')
  }
}, 60_000)

test('a question that one worker has parked is answered at the other', async () => {
  const gateway = await start()
  const url = `${gateway.url}/remote`
  const ask = (id: number, more: object = {}) =>
    send(
      url,
      modern(
        id,
        'tools/call',
        { name: 'test_elicitation', arguments: { message: 'Who?' }, ...more },
        { capabilities: { elicitation: {} } },
      ),
    )
  for (let round = 0; round < 2; round++) {
    const asked = (await ask(1)).json.result as { requestState: string; inputRequests: Record<string, unknown> }
    const [key = ''] = Object.keys(asked.inputRequests)
    const answers = { [key]: { action: 'accept', content: { username: 'Ada', email: 'ada@example.com' } } }
    await send(`${gateway.origin}/healthz`, { method: 'GET' }) // the next connection is for the other worker, or for the same
    if (round === 0) await send(`${gateway.origin}/healthz`, { method: 'GET' })
    const done = await ask(2, { requestState: asked.requestState, inputResponses: answers })
    expect(contentOf(done)).toContain('Ada')
  }
}, 60_000)

test('HTTP+SSE messages may be posted at any worker', async () => {
  const gateway = await start()
  const channels = [
    await openRawChannel(`${gateway.origin}/remote/sse`),
    await openRawChannel(`${gateway.origin}/small/sse`),
  ]
  for (const [at, channel] of channels.entries()) {
    const endpoint = `${gateway.origin}${(await channel.nextOf('endpoint')).data}`
    expect((await send(endpoint, { body: rpcInitialize('2024-11-05') })).status).toBe(202)
    await channel.nextOf('message')
    for (let id = 1; id <= 4; id++) {
      expect((await send(endpoint, { body: tool(id, 'echo', { text: `${at}` }) })).status).toBe(202)
      expect(JSON.parse((await channel.nextOf('message')).data)).toMatchObject({ id })
    }
    channel.close()
  }
}, 60_000)

test('a stdio server runs once, whichever worker its callers reach', async () => {
  const gateway = await start()
  const pids = new Set<string>()
  for (const name of ['small', 'newer'] as const) {
    const url = `${gateway.url}/${name}`
    pids.clear()
    for (let id = 1; id <= 4; id++)
      pids.add(contentOf(await send(url, modern(id, 'tools/call', { name: 'pid', arguments: {} }))))
    for (let client = 1; client <= 4; client++) {
      const session = await openSession(url)
      for (let id = 1; id <= 2; id++)
        pids.add(contentOf(await send(url, { headers: session.headers, body: tool(id, 'pid') })))
    }
    expect([...pids]).toEqual([expect.stringMatching(/^\d+$/)])
  }
  await eventually(() => livingWith(run)).toHaveLength(2) // one of each server: one that was tried as a legacy server ends
  gateway.signal('SIGTERM')
  expect(await gateway.ended).toBe(0)
  await eventually(() => livingWith(run)).toEqual([])
}, 60_000)

test('clients that can be asked share one process of a stdio server, too', async () => {
  const gateway = await start()
  const url = `${gateway.url}/small`
  for (let at = 0; at < 4; at++) clients.push(await connectV1({ url, persistent: true }))
  const pids = new Set<string>()
  for (const client of clients) pids.add(textOf(await client.call('pid')))
  expect(pids.size).toBe(1)
  for (const client of clients) expect(textOf(await client.call('ask'))).toContain('accept')
}, 60_000)

test('after kill -9 of a worker under calls, sessions go on and it is started again', async () => {
  const gateway = await start()
  const url = `${gateway.url}/remote`
  const sessions = await Promise.all(Array.from({ length: 6 }, () => openSession(url)))
  const [worker = 0] = gateway.workers()
  const running = sessions.map(({ headers }) =>
    openStream(url, { headers, body: tool(9, 'wait', { ms: 60_000 }) }).catch(() => undefined),
  )
  await Promise.all(running)
  process.kill(worker, 'SIGKILL')
  for (const [id, { headers }] of sessions.entries()) {
    const again = { headers, body: tool(id, 'echo', { text: 'still here' }) }
    const reply = await send(url, again).catch(() => send(url, again)) // a connection that was just given to it is closed
    expect([reply.status, contentOf(reply)]).toEqual([200, expect.stringContaining('still here')])
  }
  await ready(gateway, 2)
  await eventually(() => gateway.workers()).toHaveLength(1)
  expect(gateway.workers()).not.toContain(worker)
  for (const { headers } of sessions)
    expect((await send(url, { headers, body: tool(20, 'echo', { text: 'x' }) })).status).toBe(200)
  for (const stream of await Promise.all(running)) stream?.close()
}, 60_000)

test('after kill -9 of the main process, all workers and servers end', async () => {
  const gateway = await start()
  await send(`${gateway.url}/small`, modern(1, 'tools/call', { name: 'pid', arguments: {} }))
  expect(livingWith(run).length).toBeGreaterThan(0)
  const workers = gateway.workers()
  expect(workers).toHaveLength(1)
  gateway.signal('SIGKILL')
  await eventually(() => workers.filter(isRunning)).toEqual([])
  await eventually(() => livingWith(run)).toEqual([])
}, 60_000)

test('SIGTERM ends all with code 0, and calls that run get their answer', async () => {
  const gateway = await start()
  const workers = gateway.workers()
  const calls = Array.from({ length: 4 }, (_, id) =>
    send(`${gateway.url}/small`, modern(id, 'tools/call', { name: 'pause', arguments: { ms: 1000 } })),
  )
  await eventually(
    async () =>
      /^dragoman_calls_in_flight (\d+)/m.exec((await send(`${gateway.origin}/metrics`, { method: 'GET' })).text)?.[1],
  ).not.toBe('0')
  gateway.signal('SIGTERM')
  for (const reply of await Promise.all(calls)) expect(contentOf(reply)).toBe('paused')
  expect(await gateway.ended).toBe(0)
  expect(workers.filter(isRunning)).toEqual([])
  expect(livingWith(run)).toEqual([])
}, 60_000)

test('another daemon on the data directory is refused with the process id of the main process', async () => {
  const data = join(folder, randomUUID())
  const gateway = await startWorkers(['--config', file, '--data', data])
  const second = startProgram(['serve', '--config', file, '--port', '0', '--data', data])
  expect(await second.ended).toBe(2)
  expect(second.stderr()).toContain(`is in use by the dragoman with process id ${gateway.pid}`)
}, 60_000)

test.each([
  [['--ephemeral'], 'leave out --ephemeral'],
  [['--workers', '0'], 'expected a whole number from 1 to 64'],
])('%j is refused', async (args, message) => {
  const program = startProgram(['serve', '--demo', '--port', '0', '--workers', '2', ...args])
  expect(await program.ended).not.toBe(0)
  expect(program.stderr()).toContain(message)
})
