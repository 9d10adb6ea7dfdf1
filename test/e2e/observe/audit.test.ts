import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { createTestLog } from '../../support/log.ts'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
import { createToken } from '../auth/guarded.ts'

type AuditRow = Readonly<Record<string, unknown>>

let data = ''
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'dragoman-audit-'))
})
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
  await rm(data, { recursive: true })
})

const start = async (config: object = {}) => {
  const testLog = createTestLog()
  const value = { mcpServers: { demo: { builtin: 'demo' } }, audit: true, limits: { shutdownMs: 200 }, ...config }
  const load = (more: object = {}) => loadConfig({ value: { ...value, ...more }, env: {}, flags: { port: 0 } })
  const gateway = await startGateway(await load(), { log: testLog.log, data, version: '1.2.3' })
  closing.push(gateway.close)
  /** Everything that was written, after the gateway has closed. */
  const rows = async (event = 'request'): Promise<AuditRow[]> => {
    await gateway.close()
    const text = await readFile(join(data, 'audit.jsonl'), 'utf8')
    expect(text.endsWith('\n')).toBe(true)
    const all = text
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as AuditRow)
    return all.filter(row => row.event === event)
  }
  return { ...testLog, gateway, origin: gateway.origin, url: gateway.url(), load, rows }
}

const echo = (id: number | string, message = 's3cret') =>
  modern(id, 'tools/call', { name: 'example-echo', arguments: { message } })

describe('a request', () => {
  test('is one line: who, where, what, how it ended, how long and how large; not its arguments', async () => {
    const { url, rows } = await start()
    await send(url, echo('call-7'))
    const [row] = await rows()
    expect(row).toEqual({
      time: expect.stringMatching(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      event: 'request',
      principal: 'local',
      client: { name: 'test', version: '1' },
      address: '127.0.0.1',
      workspace: 'default',
      dialect: 'stateless',
      revision: '2026-07-28',
      method: 'tools/call',
      tool: 'example-echo',
      server: 'demo',
      outcome: 'ok',
      ms: expect.any(Number),
      bytesIn: expect.any(Number),
      bytesOut: expect.any(Number),
      id: 'call-7',
      replica: expect.any(String),
    })
    expect(Number(row?.bytesIn)).toBeGreaterThan(100)
    expect(Number(row?.bytesOut)).toBeGreaterThan(20)
    expect(JSON.stringify(row)).not.toContain('s3cret')
    expect((await stat(join(data, 'audit.jsonl'))).mode & 0o777).toBe(0o600)
  })

  test('of a session shows a name of the session that is not its id', async () => {
    const { url, rows } = await start()
    const { headers, id } = await openSession(url)
    for (const message of ['a', 'b'])
      await send(url, {
        headers,
        body: {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'example-echo', arguments: { message } },
        },
      })
    const calls = (await rows()).filter(({ method }) => method === 'tools/call')
    expect(calls).toMatchObject([
      { dialect: 'streamable', revision: '2025-11-25', client: { name: 'test' }, address: '127.0.0.1', id: 1 },
      { outcome: 'ok' },
    ])
    expect(calls[0]?.session).toMatch(/^[\w-]{16}$/)
    expect(calls[0]?.session).toBe(calls[1]?.session)
    expect(await readFile(join(data, 'audit.jsonl'), 'utf8')).not.toContain(id)
  })

  test.each([
    ['a tool that reports an error', { name: 'test_error_handling' }, { outcome: 'tool_error', server: 'demo' }],
    ['a tool that does not exist', { name: 'none' }, { outcome: 'error', code: -32602, tool: 'none' }],
    [
      'a tool that asks',
      { name: 'test_input_required_result_elicitation' },
      { outcome: 'input_required', server: 'demo' },
    ],
  ])('%s', async (_, params, expected) => {
    const { url, rows } = await start()
    await send(url, modern(1, 'tools/call', params, { capabilities: { elicitation: {} } }))
    expect(await rows()).toMatchObject([expected])
  })

  test('whose server is down names the server and the reason', async () => {
    const { url, rows, gateway } = await start({ mcpServers: { gone: { url: 'http://127.0.0.1:1/mcp' } } })
    await gateway.ready
    await send(url, modern(1, 'tools/call', { name: 'any' }))
    expect(await rows()).toMatchObject([
      { outcome: 'error', code: -32603, reason: 'upstream_unreachable', server: 'gone' },
    ])
  })

  test('that its client gives up is cancelled', async () => {
    const { url, rows } = await start()
    const stream = await openStream(
      url,
      modern(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } }),
    )
    await stream.next()
    stream.close()
    await expect.poll(async () => (await send(url, echo(2))).status).toBe(200)
    const all = await rows()
    expect(all.find(({ method }) => method === 'subscriptions/listen')).toMatchObject({
      outcome: 'cancelled',
      reason: 'gone',
    })
  })

  test('over REST and of a prompt and a resource', async () => {
    const { origin, url, rows } = await start()
    await send(`${origin}/actions/default/example-echo`, { body: { message: 'hi' } })
    await send(url, modern(1, 'prompts/get', { name: 'test_simple_prompt' }))
    await send(url, modern(2, 'resources/read', { uri: 'test://user:pass@static-text?token=abc' }))
    const all = await rows()
    expect(all).toMatchObject([
      { dialect: 'rest', tool: 'example-echo', address: '127.0.0.1' },
      { method: 'prompts/get', prompt: 'test_simple_prompt' },
      { method: 'resources/read', resource: 'test://static-text?…' },
    ])
    expect(all[0]).not.toHaveProperty('id')
  })

  test('that a policy hides says so in the log, and nowhere else', async () => {
    const { url, rows } = await start({
      workspaces: {
        default: { servers: ['demo'], policy: { deny: { tools: ['demo/example-*'], resources: ['test://*'] } } },
      },
    })
    const [hidden, unknown] = [await send(url, echo(1)), await send(url, modern(1, 'tools/call', { name: 'none' }))]
    await send(url, modern(3, 'resources/read', { uri: 'test://static-text' }))
    expect(hidden.text.replace('example-echo', 'none')).toBe(unknown.text)
    expect(await rows()).toMatchObject([
      { tool: 'example-echo', outcome: 'denied', code: -32602 },
      { tool: 'none', outcome: 'error', code: -32602 },
      { resource: 'test://static-text', outcome: 'denied' },
    ])
  })
})

test('arguments and results are written if the configuration asks for them, without what looks like a secret', async () => {
  const { url, rows } = await start({ audit: { arguments: true, results: true } })
  const bearer = 'Bearer abcdefghijklmnopqrstuvwx'
  await send(
    url,
    modern(1, 'tools/call', {
      name: 'example-echo',
      arguments: { message: bearer, password: 'hunter2', nested: { api_key: { a: 1 } } },
    }),
  )
  const [row] = await rows()
  expect(row?.arguments).toEqual({ message: 'Bearer [hidden]', password: '[hidden]', nested: { api_key: '[hidden]' } })
  expect(JSON.stringify(row?.result)).toContain('content')
  expect(JSON.stringify(row)).not.toMatch(/hunter2|abcdefghij/)
})

test('long arguments are cut', async () => {
  const { url, rows } = await start({ audit: { arguments: true } })
  await send(url, echo(1, 'x'.repeat(100_000)))
  const [row] = await rows()
  expect(String(row?.arguments).length).toBeLessThan(9000)
})

test('requests that are not admitted, and tokens that come and go', async () => {
  const { url, rows, saw } = await start({ auth: { required: true } })
  await send(url, echo(1))
  const { id, headers } = await createToken(data, { principal: 'ada', name: 'laptop' })
  await saw(({ message }) => message === 'tokens read')
  await send(url, { ...echo(2), headers: { ...echo(2).headers, ...headers } })
  await send(`${url}/none`, { ...echo(3), headers: { ...echo(3).headers, ...headers } })
  const [rejected, created, requests] = [await rows('rejected'), await rows('token_created'), await rows()]
  expect(rejected).toMatchObject([
    { address: '127.0.0.1', workspace: 'default', status: 401, reason: expect.stringContaining('token is needed') },
    { workspace: 'none', status: 404 },
  ])
  expect(created).toMatchObject([{ token: id, name: 'laptop', principal: 'ada', workspaces: ['*'] }])
  expect(requests).toMatchObject([{ principal: 'ada', outcome: 'ok' }])
  expect(await readFile(join(data, 'audit.jsonl'), 'utf8')).not.toContain(headers.authorization.slice(7))
})

test('many rejected requests of one address become one event with their number', async () => {
  const { url, rows } = await start({ auth: { required: true } })
  for (let i = 0; i < 50; i++) await send(url, echo(i))
  const rejected = await rows('rejected')
  expect(rejected.length).toBe(31)
  expect(rejected.at(-1)).toMatchObject({ address: '127.0.0.1', count: 20 })
})

test('the start, the end, another configuration and what its owner does', async () => {
  const { gateway, origin, load, rows } = await start()
  const owner = { headers: { authorization: `Bearer ${gateway.localSecret}` } }
  await send(`${origin}/admin/reload`, owner)
  await send(`${origin}/admin/stop`, {})
  await send(`${origin}/admin/status`, { ...owner, method: 'GET' })
  gateway.swap(await load({ mcpServers: { demo: { builtin: 'demo' }, more: { builtin: 'demo' } } }))
  gateway.rejectedReload('dragoman.json is not JSON')
  expect(await rows('started')).toMatchObject([{ version: '1.2.3', origin, pid: process.pid }])
  expect(await rows('admin')).toMatchObject([
    { action: '/admin/reload', outcome: 'error', address: '127.0.0.1' }, // a program embeds this gateway
    { action: '/admin/stop', outcome: 'denied' },
  ])
  expect(await rows('config_reloaded')).toMatchObject([{ servers: { added: ['more'] } }])
  expect(await rows('config_rejected')).toMatchObject([{ reason: 'dragoman.json is not JSON' }])
  expect(await rows('stopped')).toHaveLength(1)
})

test('a full disk stops no call, is one line of the log and a count of /metrics', async () => {
  if (process.platform !== 'linux') return
  const { url, origin, saw, lines } = await start({ audit: { file: '/dev/full' } })
  for (let i = 0; i < 5; i++) expect((await send(url, echo(i))).status).toBe(200)
  await saw(({ message }) => message.startsWith('audit log not written'))
  expect((await send(url, echo(9))).status).toBe(200)
  const { text } = await send(`${origin}/metrics`, { method: 'GET' })
  expect(text).toMatch(/^dragoman_audit_failures_total [1-9]/m)
  expect(text).toMatch(/^dragoman_audit_events_total\{outcome="written"\} 0$/m)
  expect(lines.filter(({ message }) => message.startsWith('audit'))).toHaveLength(1)
})

test('a file that cannot be opened is an error of the configuration', async () => {
  await expect(start({ audit: { file: join(data, 'no', 'audit.jsonl') } })).rejects.toThrow(
    /cannot write the audit log .*its folder does not exist; choose another "file" in "audit"/,
  )
})

test('many calls leave a line each, over several files', async () => {
  const { url, gateway } = await start({ audit: { maxBytes: 65_536, files: 100 } })
  const calls = 250
  for (let at = 0; at < calls; at += 50)
    await Promise.all(Array.from({ length: 50 }, (_, i) => send(url, echo(`n${at + i}`))))
  await gateway.close()
  const names = ['audit.jsonl', ...Array.from({ length: 99 }, (_, i) => `audit.jsonl.${i + 1}`)]
  const texts = await Promise.all(names.map(name => readFile(join(data, name), 'utf8').catch(() => '')))
  const ids = texts.flatMap(text => [...text.matchAll(/"id":"(n\d+)"/g)].map(match => match[1]))
  expect(new Set(ids).size).toBe(calls)
  expect(ids.length).toBe(calls)
  expect(texts.filter(text => text !== '').length).toBeGreaterThan(1)
})
