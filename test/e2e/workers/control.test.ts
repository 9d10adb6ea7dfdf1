import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { eventually, SERVER } from '../../support/processes.ts'
import { modern, openSession, openStream, type RawReply, type RawRequest, send } from '../../support/raw.ts'
import { start as startServer } from '../../support/servers/sdk-v1-server.ts'
import { endPrograms, runProgram } from '../cli/program.ts'
import { ready, startWorkers, type WorkerGateway } from './worker-gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'dragoman-worker-control-'))
const file = join(folder, 'mcp.json')
let server: Awaited<ReturnType<typeof startServer>>
let data = ''
let gateway: WorkerGateway

const write = (more: object = {}): void => {
  const small = { command: process.execPath, args: [SERVER, '{}'] }
  const settings = { audit: { file: `${data}.audit` }, limits: { requestTimeoutMs: 1000 } }
  writeFileSync(file, JSON.stringify({ ...settings, mcpServers: { remote: { url: server.url }, small, ...more } }))
}

beforeAll(async () => {
  server = await startServer()
})
afterEach(endPrograms)
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const start = async (args: readonly string[] = []): Promise<void> => {
  data = join(folder, randomUUID())
  write()
  gateway = await startWorkers(['--config', file, '--data', data, ...args])
}

/** Sends it once to each of the two workers. */
const both = async (path: string, request: RawRequest = {}): Promise<RawReply[]> => {
  const url = `${gateway.origin}${path}`
  return [await send(url, request), await send(url, request)]
}
const ownerHeaders = (): Record<string, string> => {
  const { token } = JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { token: string }
  return { authorization: `Bearer ${token}` }
}
const echo = (id: number) => modern(id, 'tools/call', { name: 'echo', arguments: { text: 'x' } })
const dragoman = (...args: readonly string[]) => runProgram([...args, '--data', data])

test('the commands for the daemon concern all workers', async () => {
  await start()
  for (let at = 0; at < 4; at++) await openSession(`${gateway.url}/remote`)
  await eventually(async () => (await dragoman('status')).stdout).toContain('sessions: 4 ')
  const status = await dragoman('status')
  expect(status.stdout).toContain(`process ${gateway.pid}`)

  write({ added: { url: server.url } })
  expect((await dragoman('reload')).code).toBe(0)
  await eventually(async () => (await both('/mcp/added', echo(1))).map(({ status }) => status)).toEqual([200, 200])

  const [worker = 0] = gateway.workers()
  expect((await dragoman('restart')).code).toBe(0)
  await ready(gateway, 2)
  expect(gateway.workers()).not.toContain(worker)
  expect((await both('/mcp/added', echo(1))).map(({ status }) => status)).toEqual([200, 200])

  const logs = await dragoman('logs')
  expect(logs.stdout).toMatch(/worker ready/)
  expect((await dragoman('stop')).code).toBe(0)
  expect(await gateway.ended).toBe(0)
}, 90_000)

test('figures and the state of servers are those of all workers, whichever answers', async () => {
  await start()
  for (let id = 0; id < 6; id++) await send(`${gateway.url}/remote`, echo(id))
  for (const { text } of await both('/metrics', { method: 'GET' })) {
    const counted = /^dragoman_requests_total\{dialect="stateless",method="tools\/call",outcome="ok"\} (\d+)$/m.exec(
      text,
    )
    expect(Number(counted?.[1])).toBe(6)
    expect(text.match(/^# TYPE process_resident_memory_bytes/gm)).toHaveLength(1)
    expect(text).toMatch(/^dragoman_replicas 2$/m)
  }
  const ready = await both('/readyz', { method: 'GET' })
  expect(ready[0]?.json).toMatchObject({ status: 'ready' })
  expect(ready[1]?.text.replace(/"forwards":\d+/, '')).toBe(ready[0]?.text.replace(/"forwards":\d+/, ''))
}, 60_000)

test('a server that its owner stops is stopped in all workers, also in one that starts later', async () => {
  await start()
  const order = (action: string) =>
    send(`${gateway.origin}/admin/servers/remote/${action}`, { headers: ownerHeaders() })
  expect((await order('stop')).status).toBe(200)
  const refused = async () => (await both('/mcp/remote', echo(1))).map(({ json }) => json.error?.message ?? 'served')
  await eventually(refused).toEqual([expect.stringContaining('disabled'), expect.stringContaining('disabled')])
  process.kill(gateway.workers()[0] ?? 0, 'SIGKILL')
  await ready(gateway, 2)
  await eventually(refused).toEqual([expect.stringContaining('disabled'), expect.stringContaining('disabled')])
  expect((await order('start')).status).toBe(200)
  await eventually(refused).toEqual(['served', 'served'])
}, 60_000)

test('the audit log has one whole line for each call of every worker', async () => {
  await start()
  const calls = Array.from({ length: 40 }, (_, id) => send(`${gateway.url}/remote`, echo(id)))
  for (const reply of await Promise.all(calls)) expect(reply.status).toBe(200)
  gateway.signal('SIGTERM')
  expect(await gateway.ended).toBe(0)
  const lines = readFileSync(`${data}.audit`, 'utf8').trimEnd().split('\n')
  const read = lines.map(line => JSON.parse(line) as { method?: string; replica?: string })
  const made = read.filter(({ method }) => method === 'tools/call')
  expect(made).toHaveLength(40)
  expect(new Set(made.map(({ replica }) => replica)).size).toBe(2)
}, 60_000)

test('a token is valid, and revoked, in all workers', async () => {
  await start()
  const created = await dragoman('token', 'create', 'ada')
  const [secret = ''] = /drg_\S+/.exec(created.stdout) ?? []
  const headers = { authorization: `Bearer ${secret}` }
  const call = { ...echo(1), headers: { ...echo(1).headers, ...headers } }
  const statuses = async (request: RawRequest) => (await both('/mcp/remote', request)).map(({ status }) => status)
  await eventually(() => statuses(echo(1))).toEqual([401, 401])
  expect(await statuses(call)).toEqual([200, 200])
  expect((await dragoman('token', 'revoke', 'ada')).code).toBe(0)
  await eventually(() => statuses(call)).toEqual([401, 401])
}, 60_000)

test('each worker limits the time of a request head, and serves a client that has closed its side', async () => {
  await start()
  const { port } = new URL(gateway.origin)
  const exchange = (text: string, isHalfClosed: boolean): Promise<string> =>
    new Promise(resolve => {
      let answer = ''
      const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true }, () =>
        isHalfClosed ? socket.end(text) : socket.write(text),
      )
      socket.on('data', chunk => {
        answer += chunk
      })
      socket.on('error', () => {})
      socket.on('end', () => socket.end())
      socket.on('close', () => resolve(answer))
    })
  for (let at = 0; at < 2; at++) expect(await exchange('GET /healthz HTTP/1.1\r\nHo', false)).toMatch(/^HTTP\/1.1 408/)
  const whole = 'GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n'
  for (let at = 0; at < 2; at++) expect(await exchange(whole, true)).toMatch(/^HTTP\/1.1 200/)
}, 60_000)

test('the flight recorder shows the exchanges of all workers', async () => {
  await start()
  const headers = ownerHeaders()
  const events = await openStream(`${gateway.origin}/admin/events`, { method: 'GET', headers })
  for (let id = 0; id < 6; id++) await send(`${gateway.url}/remote`, echo(id))
  type Page = { recordings: { id: string; order: number }[]; next?: string; kept: number }
  const read = async (path: string): Promise<Page> =>
    (await send(`${gateway.origin}/admin/recordings${path}`, { method: 'GET', headers })).json as unknown as Page
  const all = await read('?method=tools/call')
  expect(all.recordings).toHaveLength(6)
  expect(new Set(all.recordings.map(({ id }) => id.split('-')[0])).size).toBe(2)
  expect(all.recordings.map(({ order }) => order)).toEqual(
    all.recordings.map(({ order }) => order).toSorted((a, b) => b - a),
  )
  const found: string[] = []
  for (
    let page = await read('?method=tools/call&limit=2');
    ;
    page = await read(`?method=tools/call&limit=2&before=${page.next}`)
  ) {
    found.push(...page.recordings.map(({ id }) => id))
    if (page.next === undefined) break
  }
  expect(found).toEqual(all.recordings.map(({ id }) => id))
  for (const { id } of all.recordings)
    expect((await send(`${gateway.origin}/admin/recordings/${id}`, { method: 'GET', headers })).json).toMatchObject({
      id,
    })
  const isOfWorker = async (): Promise<boolean> => {
    await send(`${gateway.url}/remote`, echo(9))
    await send(`${gateway.url}/remote`, echo(10))
    const event = await events.next()
    return event?.event === 'recording' && JSON.stringify(event.json).includes('.2-')
  }
  await eventually(isOfWorker).toBe(true)
  events.close()
  await send(`${gateway.origin}/admin/recordings`, { method: 'DELETE', headers })
  expect((await read('')).kept).toBe(0)
}, 60_000)
