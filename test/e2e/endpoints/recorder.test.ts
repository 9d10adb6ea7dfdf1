import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Recording, RecordingList } from '../../../src/admin/api/recorder.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { exhibit } from '../../support/exhibit-server.ts'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
import { failure, scriptedServer, sendJson } from '../../support/scripted-server.ts'
import { type Configured, startConfigured } from './configured.ts'

const BOOKING = fileURLToPath(new URL('../../support/servers/booking.mjs', import.meta.url))

const definition = (name: string) => ({ name, inputSchema: { type: 'object' } })
const far = await scriptedServer(
  exhibit({
    tools: [
      { definition: definition('plain'), run: { content: [] } },
      {
        definition: definition('tells'),
        run: ({ stream, token }) => {
          const { notify, answer } = stream()
          notify('notifications/progress', { progressToken: token, progress: 1 })
          answer({ content: [] })
        },
      },
      {
        definition: definition('breaks'),
        run: ({ response }) => {
          response.writeHead(502, { 'content-type': 'text/html' })
          response.end('<html><title>Bad Gateway</title><h1>Bad Gateway</h1></html>')
        },
      },
      {
        definition: definition('refuses'),
        run: ({ arrived, response }) => {
          response.setHeader('retry-after', '7')
          sendJson(response, failure(arrived.body.id, -32602, 'No'), 400)
        },
      },
    ],
  }),
)

let site: Configured
beforeAll(async () => {
  site = await startConfigured(
    {
      mcpServers: {
        booking: { command: process.execPath, args: [BOOKING], env: { BOOKING_TOKEN: 'configured-secret-1' } },
        demo: { builtin: 'demo' },
        far: { url: far.url },
        unused: {
          command: 'unused',
          disabled: true,
          args: ['--api-key', 'secret-in-args', '--header=x', 'postgres://u:p%40ss-in-args@db/x'],
          env: {
            KEY: 'secret-in-env-key',
            GITHUB_PAT: 'secret-in-env-pat',
            SENTRY_DSN: 'secret-in-env-dsn',
            DB_PWD: 'a"quoted\\secret',
          },
          credentials: { ann: { env: { MY_TOKEN: 'secret-of-ann' } } },
        },
        away: {
          url: 'http://127.0.0.1:1/mcp?key=key-in-address',
          disabled: true,
          credentials: { '*': { headers: { Authorization: 'Bearer header-of-others' } } },
        },
      },
    },
    'data',
  )
  await site.gateway.ready
})
afterAll(() => Promise.all([site.close(), far.close()]))

const ask = async <T>(path: string, method = 'GET', body?: object): Promise<T> => {
  const response = await fetch(`${site.origin}/admin/recordings${path}`, {
    method,
    headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(response.status).toBe(200)
  return (await response.json()) as T
}

test('a modern client that calls a legacy server is recorded on both sides', async () => {
  const client = await connectV2('SDK v2 modern', {
    url: `${site.origin}/mcp/booking`,
    answer: () => ({ action: 'accept', content: { nights: 3 } }),
  })
  const progress: unknown[] = []
  const result = await client.call(
    'book',
    { city: 'Bern', password: 'hunter2hunter2' },
    { onProgress: each => void progress.push(each) },
  )
  expect(result.content[0]).toMatchObject({ text: '3 nights in Bern' })
  await client.close()
  const { recordings } = await ask<RecordingList>('?method=tools/call&server=booking')
  const [second, first] = recordings
  expect(recordings).toMatchObject([
    { outcome: 'ok', continues: first?.id, isTranslated: true, client: 'test-client-v2 1.0.0', subject: 'book' },
    {
      outcome: 'input_required',
      continuedBy: second?.id,
      dialect: 'stateless',
      revision: '2026-07-28',
      servers: [{ name: 'booking', dialect: 'stdio', revision: '2025-11-25' }],
    },
  ])
  const shown = async (id = '') =>
    (await ask<Recording>(`/${id}`)).all.map(({ side, direction, kind, key }) => `${side} ${direction} ${kind}: ${key}`)
  expect(await shown(first?.id)).toEqual([
    'client in request: request',
    'server out request: request',
    'server in notification: notifications/progress 1',
    'client out notification: notifications/progress 1',
    'server in question: question 1',
    'client out result: question 1',
  ])
  expect(await shown(second?.id)).toEqual([
    'client in request: answer 1',
    'server out answer: answer 1',
    'server in notification: notifications/progress 2',
    'client out notification: notifications/progress 2',
    'server in result: result',
    'client out result: result',
  ])
  const { all } = await ask<Recording>(`/${first?.id}`)
  expect(all[0]?.headers).toEqual([
    ['mcp-protocol-version', '2026-07-28'],
    ['mcp-method', 'tools/call'],
    ['mcp-name', 'book'],
  ])
  expect(JSON.parse(all[1]?.text ?? '')).toEqual({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'book', arguments: { city: 'Bern', password: '[redacted]' }, _meta: { progressToken: 1 } },
  })
})

test('the HTTP status and type of each answer are kept, on both sides', async () => {
  const JSON_TYPE = ['content-type', 'application/json']
  const EVENTS = [
    [':status', '200'],
    ['content-type', 'text/event-stream'],
  ]
  const repliesTo = async (tool: string) => {
    const call = modern(1, 'tools/call', { name: tool, arguments: {} }, { meta: { progressToken: 1 } })
    const { status, headers } = await send(`${site.origin}/mcp/far`, call)
    const [{ id = '' } = {}] = (await ask<RecordingList>(`?subject=${tool}`)).recordings
    const { all } = await ask<Recording>(`/${id}`)
    const endOf = (side: string) =>
      all.findLast(each => each.side === side && (each.kind === 'result' || each.kind === 'error'))
    expect(endOf('client')?.headers).toEqual([
      [':status', String(status)],
      ['content-type', headers['content-type']],
    ])
    return { client: endOf('client')?.headers, server: endOf('server')?.headers, text: endOf('server')?.text }
  }
  expect(await repliesTo('plain')).toMatchObject({
    client: [[':status', '200'], JSON_TYPE],
    server: [[':status', '200'], JSON_TYPE],
  })
  expect(await repliesTo('tells')).toMatchObject({ client: EVENTS, server: EVENTS })
  const { server, text } = await repliesTo('breaks')
  expect([server, text]).toEqual([
    [
      [':status', '502'],
      ['content-type', 'text/html'],
    ],
    'HTTP 502: Bad Gateway',
  ])
  expect(await repliesTo('refuses')).toMatchObject({
    client: [[':status', '200'], JSON_TYPE],
    server: [[':status', '400'], JSON_TYPE, ['retry-after', '7']],
  })
})

const SECRETS: Readonly<Record<string, string>> = {
  password: 'hunter2-in-arguments',
  api_key: 'key-in-arguments-0123456789',
  note: 'Authorization: Bearer bearer-in-text-0123456789',
  url: 'https://ann:password-in-url@example.com/?access_token=token-in-query',
  github: `ghp_${'githubTokenInText0123456789abcdefghij'}`,
  configured: 'it is configured-secret-1',
  others: [
    ...[
      'secret-in-args',
      'p%40ss-in-args',
      'p@ss-in-args',
      'secret-in-env-key',
      'secret-in-env-pat',
      'secret-in-env-dsn',
    ],
    ...['a"quoted\\secret', 'secret-of-ann', 'key-in-address', 'header-of-others'],
  ].join(', '),
  nested: JSON.stringify({ client_secret: 'secret-in-nested-json' }),
}
const HIDDEN = [
  ...['hunter2-in-arguments', 'key-in-arguments', 'bearer-in-text', 'password-in-url', 'token-in-query'],
  ...['secret-in-args', 'ss-in-args', 'secret-in-env', 'quoted', 'secret-of-ann', 'in-address', 'header-of-others'],
  ...['githubTokenInText', 'configured-secret-1', 'secret-in-nested-json', 'secret-in-meta', 'cookie-in-meta'],
]

const textOf = async (path: string, token = site.gateway.localSecret): Promise<string> =>
  (await fetch(site.origin + path, { headers: { authorization: `Bearer ${token}` } })).text()

test('no secret is in the list, in a recording, in the events, in a file, or found by a search', async () => {
  const token = site.gateway.localSecret
  const events = await openStream(`${site.origin}/admin/events`, {
    method: 'GET',
    headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
  })
  const meta = { secret: 'secret-in-meta', 'set-cookie': ['cookie-in-meta'] }
  const params = { name: 'example-echo', arguments: { message: JSON.stringify(SECRETS), ...SECRETS }, _meta: meta }
  const echoed = await send(`${site.origin}/mcp/demo`, modern('secrets', 'tools/call', params))
  for (const secret of ['hunter2-in-arguments', 'bearer-in-text']) expect(echoed.text).toContain(secret)
  const named = modern(1, 'tools/call', { name: `ghp_${'githubTokenInText0123456789abcdefghij'}`, arguments: {} })
  await send(`${site.origin}/mcp/demo`, named)
  const [{ id = '' } = {}] = (await ask<RecordingList>('?subject=example-echo')).recordings
  let told = ''
  while (!told.includes('example-echo')) told += (await events.next())?.data ?? 'example-echo, but the stream has ended'
  events.close()
  const shown = [
    ...[await textOf('/admin/recordings'), await textOf(`/admin/recordings/${id}`), told],
    await textOf('/admin/recordings/export'),
  ]
  expect(shown[1]).toContain('[redacted]')
  for (const text of shown) expect(HIDDEN.filter(secret => text.includes(secret))).toEqual([])
  for (const secret of HIDDEN)
    expect((await ask<RecordingList>(`?search=${encodeURIComponent(secret)}`)).recordings).toEqual([])
  expect((await ask<RecordingList>('?search=EXAMPLE-echo')).recordings.length).toBe(1)
})

test('a viewer sees which calls were made, not what was said', async () => {
  await send(`${site.origin}/mcp/demo`, modern(1, 'tools/call', { name: 'test_error_handling' }))
  const status = async (path: string, method = 'GET') =>
    (await fetch(`${site.origin}/admin/recordings${path}`, { method })).status // without a token, on this machine
  const list = (await (await fetch(`${site.origin}/admin/recordings?outcome=tool_error`)).json()) as RecordingList
  expect(list.recordings[0]).toMatchObject({ subject: 'test_error_handling' })
  expect(list.recordings[0]).not.toHaveProperty('error')
  const [{ id = '', error = '' } = {}] = (await ask<RecordingList>('?outcome=tool_error')).recordings
  expect(error).not.toBe('')
  expect([await status(`/${id}`), await status('/export')]).toEqual([403, 403])
  expect([await status('', 'DELETE'), await status('', 'PATCH')]).toEqual([403, 403])
})

test('what a session says is recorded: its handshake, a call, a notification', async () => {
  const { headers } = await openSession(`${site.origin}/mcp/demo`)
  await send(`${site.origin}/mcp/demo`, {
    headers,
    body: { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'example-ping' } },
  })
  await send(`${site.origin}/mcp/demo`, {
    headers,
    body: { jsonrpc: '2.0', method: 'notifications/roots/list_changed' },
  })
  const found = async (method: string): Promise<Recording> => {
    const [{ id = '' } = {}] = (await ask<RecordingList>(`?method=${method}`)).recordings
    return ask<Recording>(`/${id}`)
  }
  const handshake = await found('initialize')
  expect(handshake).toMatchObject({ dialect: 'streamable', outcome: 'ok', isTranslated: true })
  expect(JSON.parse(handshake.all[0]?.text ?? '')).toMatchObject({
    method: 'initialize',
    params: { clientInfo: { name: 'test' } },
  })
  expect(JSON.parse(handshake.all.at(-1)?.text ?? '')).toMatchObject({ result: { protocolVersion: '2025-11-25' } })
  const call = await found('tools/call')
  expect(call.all.map(({ side, kind }) => `${side} ${kind}`)).toEqual([
    ...['client request', 'server request', 'server result', 'client result'],
  ])
  const [, session = ''] = call.all[0]?.headers?.find(([name]) => name === 'mcp-session-id') ?? []
  expect(session).toMatch(/^.{8}…$/)
  expect(await found('notifications/roots/list_changed')).toMatchObject({ outcome: 'ok', messages: 1 })
})

test('REST calls are recorded as the messages they would be', async () => {
  const headers = { 'content-type': 'application/json' }
  const url = `${site.origin}/actions/example-ping?workspace=demo`
  expect((await fetch(url, { method: 'POST', headers, body: '{}' })).status).toBe(200)
  const [{ id = '', dialect } = {}] = (await ask<RecordingList>('?subject=example-ping&limit=1')).recordings
  expect(dialect).toBe('rest')
  expect((await ask<Recording>(`/${id}`)).all.map(({ side, kind }) => `${side} ${kind}`)).toEqual([
    ...['client request', 'server request', 'server result', 'client result'],
  ])
})

test('pages follow one another, and wrong questions are answered', async () => {
  for (let at = 0; at < 5; at++) await send(`${site.origin}/mcp/demo`, modern(at, 'tools/list'))
  const first = await ask<RecordingList>('?method=tools/list&limit=2')
  const second = await ask<RecordingList>(`?method=tools/list&limit=2&before=${first.next}`)
  const orders = [...first.recordings, ...second.recordings].map(({ order }) => order)
  expect(orders).toEqual([...orders].sort((a, b) => b - a))
  expect(new Set(orders).size).toBe(4)
  const refusal = async (path: string) => {
    const response = await fetch(`${site.origin}/admin/recordings${path}`, {
      headers: { authorization: `Bearer ${site.gateway.localSecret}` },
    })
    return `${response.status} ${((await response.json()) as { error: { message: string } }).error.message}`
  }
  expect(await refusal('?limit=0')).toMatch(/^400 "limit" is not valid: use a number from 1 to 500/)
  expect(await refusal('?before=x')).toMatch(/^400 "before" is not valid: use the "next" of a page/)
  expect(await refusal('?outcome=x')).toMatch(/^400 "outcome" is not valid: use one of running, ok/)
  expect(await refusal(`?search=${'x'.repeat(300)}`)).toMatch(/^400 "search" is too long/)
  expect(await refusal('/nothing')).toMatch(/^404 There is no recording "nothing": it was forgotten/)
  expect(await refusal('/export?id=nothing')).toMatch(/^404 There is no recording/)
})

test('the owner switches it off and on, and clears it', async () => {
  expect(await ask<RecordingList>('', 'PATCH', { isOn: false })).toMatchObject({ isOn: false })
  const before = (await ask<RecordingList>('')).kept
  await send(`${site.origin}/mcp/demo`, modern(1, 'tools/list'))
  expect((await ask<RecordingList>('')).kept).toBe(before)
  expect(await ask<RecordingList>('', 'DELETE')).toMatchObject({ isOn: false, kept: 0, keptBytes: 0 })
  expect(await ask<RecordingList>('', 'PATCH', { isOn: true })).toMatchObject({ isOn: true })
  await send(`${site.origin}/mcp/demo`, modern(1, 'tools/list'))
  expect((await ask<RecordingList>('')).recordings).toMatchObject([{ method: 'tools/list' }])
})

test('of a long burst, exchanges that succeed are counted, and one that fails is recorded', async () => {
  const callFar = (tool: string) =>
    send(`${site.origin}/mcp/far`, modern(1, 'tools/call', { name: tool, arguments: {} }))
  const callPlain = async (turns: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) expect((await callFar('plain')).status).toBe(200)
  }
  vi.useFakeTimers({ toFake: ['performance'] }) // the burst takes no time, however slow the machine is
  try {
    await Promise.all(Array.from({ length: 16 }, () => callPlain(70)))
    expect((await ask<RecordingList>('?limit=1')).skipped).toBeGreaterThan(0)
    expect((await callFar('refuses')).json).toMatchObject({ error: { message: 'No' } })
  } finally {
    vi.useRealTimers()
  }

  const { recordings } = await ask<RecordingList>('?subject=refuses&outcome=error&limit=1')
  const found = await ask<Recording>(`/${recordings[0]?.id}`)
  expect(found).toMatchObject({ servers: [{ name: 'far' }], error: 'No', dropped: -1 })
  expect(found.all.map(({ side, direction, kind }) => `${side} ${direction} ${kind}`)).toEqual([
    'client in request',
    'client out error',
  ])
  expect(found.all[1]?.headers).toContainEqual([':status', '200'])
})
