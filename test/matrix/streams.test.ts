import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { openRawChannel } from '../support/channel.ts'
import { startTestGateway } from '../support/gateway.ts'
import { modern, openSession, openStream, send } from '../support/raw.ts'
import {
  legacy,
  notice,
  openStream as openEvents,
  result,
  scriptedServer,
  sendJson,
  tokenOf,
} from '../support/scripted-server.ts'
import { clientOf, everyCell, inCell, serverOf } from './cells.ts'
import type { sessionServer } from './session-server.ts'

everyCell(
  'C2: a 2024-11-05 client is told of progress without a message, which it does not know',
  async ({ client, server }) => {
    server.tools.set('work', call => {
      call.progress(1, { total: 2, message: 'half', acme: 1 })
      return { content: [] }
    })
    const { notices } = await client.call('tools/call', { name: 'work' }, { meta: { progressToken: 'mine' } })
    expect(notices.map(({ method, params }) => [method, params])).toEqual([
      ['notifications/progress', { progressToken: 'mine', progress: 1, total: 2, acme: 1 }],
    ])
    const meta = server.of('tools/call')[0]?.message.params?._meta as { progressToken?: unknown } | undefined
    expect(meta?.progressToken).toEqual(expect.any(Number))
  },
  { only: (client, server) => client === '2024-11-05' && server > '2024-11-05' },
)

everyCell(
  'C4: a modern server logs for a 2025-06-18 session at the level it has set, and at info before that',
  async ({ client, server }) => {
    server.tools.set('talk', call => {
      call.log('warning', 'careful')
      return { content: [] }
    })
    const before = await client.call('tools/call', { name: 'talk' })
    expect(before.notices.map(({ params }) => params)).toEqual([{ level: 'warning', data: 'careful' }])
    expect((await client.call('logging/setLevel', { level: 'warning' })).result).toEqual({})
    for (const _ of [1, 2]) {
      const { notices } = await client.call('tools/call', { name: 'talk' })
      expect(notices.map(({ method, params }) => [method, params])).toEqual([
        ['notifications/message', { level: 'warning', data: 'careful' }],
      ])
    }
    const levels = server
      .of('tools/call')
      .map(({ message }) => (message.params?._meta as Record<string, unknown> | undefined)?.[META.logLevel])
    expect(levels).toEqual(['info', 'warning', 'warning'])
    expect(server.of('logging/setLevel')).toEqual([])
  },
  { only: (client, server) => client === '2025-06-18' && server === '2026-07-28' },
)

/** The fields of each event of a stream, as they were written. */
const eventsOf = (text: string): { id: string | undefined; data: string }[] =>
  text
    .split('\n\n')
    .filter(block => /^(id|data|event|retry)/m.test(block))
    .map(block => ({ id: /^id: ?(.*)$/m.exec(block)?.[1], data: /^data: ?(.*)$/m.exec(block)?.[1] ?? 'none' }))

test.each(['2026-07-28', '2025-11-25'] as const)(
  'C9: a stream begins with an empty event for 2025-11-25 and for nobody older; every event has an id (%s server)',
  async revision => {
    await inCell(clientOf('2025-11-25'), serverOf(revision), {}, async ({ server, url }) => {
      server.tools.set('work', call => {
        call.progress(1)
        return { content: [] }
      })
      const streams = async (version: string): Promise<{ id: string | undefined; data: string }[][]> => {
        const { headers } = await openSession(url, version)
        const inbox = await openRawChannel(url, { ...headers, accept: 'text/event-stream' })
        const params = { name: 'work', _meta: { progressToken: 1 } }
        const { text } = await send(url, { headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params } })
        server.say('notifications/tools/list_changed')
        await expect.poll(() => inbox.text()).toContain('list_changed')
        inbox.close()
        return [eventsOf(text), eventsOf(inbox.text())]
      }
      for (const version of ['2025-11-25', '2025-06-18', '2025-03-26'])
        for (const events of await streams(version)) {
          expect(events.length).toBeGreaterThan(0)
          for (const { id } of events) expect([version, id]).toEqual([version, expect.stringMatching(/^\w+\.\d+$/)])
          expect(new Set(events.map(({ id }) => id)).size).toBe(events.length)
          const empty = events.flatMap(({ data }, at) => (data === '' ? at : []))
          expect([version, empty]).toEqual([version, version === '2025-11-25' ? [0] : []])
        }
    })
  },
)

test('C10: a server that closes its stream after priming is asked again no sooner than it said; the client sees one request', async () => {
  let call: { id: unknown; token: unknown; closedAt: number } | undefined
  let resumedAt = 0
  const server = await scriptedServer(
    legacy((arrived, response) => {
      const { id, method } = arrived.body
      if (method === 'tools/call') {
        const stream = openEvents(response)
        stream.raw('id: e-1\nretry: 200\ndata:\n\n')
        stream.end()
        call = { id, token: tokenOf(arrived), closedAt: Date.now() }
        return
      }
      if (arrived.method !== 'GET') return sendJson(response, result(id, { tools: [] }))
      resumedAt = Date.now()
      const stream = openEvents(response)
      stream.event(notice('notifications/progress', { progressToken: call?.token, progress: 1 }), 'id: e-2\n')
      stream.event(result(call?.id, { content: [{ type: 'text', text: 'done' }] }), 'id: e-3\n')
      stream.end()
    }),
  )
  const gateway = await startTestGateway(server.url)
  const request = modern(1, 'tools/call', { name: 'work' }, { meta: { progressToken: 't' } })
  const stream = await openStream(gateway.url, request)
  const events = (await stream.all()).map(({ json }) => json)
  expect(events).toEqual([
    { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 't', progress: 1 } },
    { jsonrpc: '2.0', id: 1, result: expect.objectContaining({ resultType: 'complete' }) },
  ])
  const resumed = server.of('GET').filter(({ headers }) => headers['last-event-id'] !== undefined)
  const session = server.of('tools/call')[0]?.headers['mcp-session-id']
  expect(session).toBeDefined()
  expect(resumed.map(({ headers }) => [headers['last-event-id'], headers['mcp-session-id']])).toEqual([
    ['e-1', session],
  ])
  expect(resumedAt - (call?.closedAt ?? 0)).toBeGreaterThanOrEqual(199) // the clocks of timers and dates differ by a hair
  expect(server.of('tools/call')).toHaveLength(1)
  expect(server.of('notifications/cancelled')).toEqual([])
  await gateway.close()
  await server.close()
})

/** A 2025-11-25 server whose calls end their stream after this event, and which answers on the stream that asks again. */
const pollingServer = (event: string) => {
  let call: { id: unknown; token: unknown } | undefined
  return scriptedServer(
    legacy((arrived, response) => {
      const { id, method } = arrived.body
      if (method === 'tools/call') {
        call = { id, token: tokenOf(arrived) }
        const stream = openEvents(response)
        stream.raw(event)
        return stream.end()
      }
      if (method === 'notifications/cancelled') return void response.writeHead(202).end()
      if (arrived.method !== 'GET') return sendJson(response, result(id, { tools: [] }))
      const stream = openEvents(response)
      stream.event(notice('notifications/progress', { progressToken: call?.token, progress: 1 }), 'id: e-2\n')
      stream.event(result(call?.id, { content: [{ type: 'text', text: 'done' }] }), 'id: e-3\n')
      stream.end()
    }),
  )
}

const POLLED_CALL = {
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name: 'work', _meta: { progressToken: 't' } },
}
const POLLED_ANSWER = [
  { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 't', progress: 1 } },
  { jsonrpc: '2.0', id: 7, result: { content: [{ type: 'text', text: 'done' }] } },
]

test('C10: a 2025-11-25 client of a server that wants to be polled is told to poll, too, and loses nothing', async () => {
  const server = await pollingServer('id: e-1\nretry: 200\ndata:\n\n')
  const gateway = await startTestGateway(server.url)
  const { headers } = await openSession(gateway.url)
  const { text } = await send(gateway.url, { headers, body: POLLED_CALL })
  expect(text).toMatch(/^id: (\S+)\ndata: ?\n\nretry: 200\n\n$/)
  await server.until(() => server.of('GET').some(({ headers: { 'last-event-id': id } }) => id === 'e-1'), 'the poll')
  const last = /^id: (\S+)$/m.exec(text)?.[1] ?? ''
  const resumed = await openStream(gateway.url, { method: 'GET', headers: { ...headers, 'last-event-id': last } })
  expect((await resumed.all()).map(({ json }) => json)).toEqual(POLLED_ANSWER)
  expect(server.of('tools/call')).toHaveLength(1)
  expect(server.of('notifications/cancelled')).toEqual([])
  await gateway.close()
  await server.close()
})

test('C10: an SDK v1 client gets its result although the server closes a stream that brought it nothing', async () => {
  let call: unknown
  let polls = 0
  const server = await scriptedServer(
    legacy((arrived, response) => {
      const { id, method } = arrived.body
      if (id === undefined && arrived.method === 'POST') return void response.writeHead(202).end()
      if (method === 'tools/call') call = id
      else if (arrived.method !== 'GET') return sendJson(response, result(id, { tools: [] }))
      const stream = openEvents(response)
      if (method === 'tools/call') stream.raw('id: e-1\nretry: 50\ndata:\n\n')
      else if (++polls === 4) stream.event(result(call, { content: [{ type: 'text', text: 'done' }] }), 'id: e-2\n')
      stream.end()
    }),
  )
  const gateway = await startTestGateway(server.url)
  const client = new Client({ name: 'v1', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)) as Transport)
  expect((await client.callTool({ name: 'work' })).content).toEqual([{ type: 'text', text: 'done' }])
  expect(server.of('tools/call')).toHaveLength(1)
  await client.close()
  await gateway.close()
  await server.close()
})

test.each([
  ['2025-06-18', 'with a time', 'id: e-1\nretry: 100\ndata:\n\n'],
  ['2025-03-26', 'with a time', 'id: e-1\nretry: 100\ndata:\n\n'],
  ['2025-11-25', 'without a time, as a proxy may', 'id: e-1\ndata:\n\n'],
])('C10: a %s client keeps its stream where the server closes its own %s', async (revision, _how, event) => {
  const server = await pollingServer(event)
  const gateway = await startTestGateway(server.url)
  const { headers } = await openSession(gateway.url, revision)
  const stream = await openStream(gateway.url, { headers, body: POLLED_CALL })
  expect((await stream.all()).map(({ json }) => json)).toEqual(POLLED_ANSWER)
  await gateway.close()
  await server.close()
})

test.each(['streamable', 'stdio'])(
  'C11: a session the server forgot is opened anew, and the call runs once (%s client)',
  async dialect => {
    const kind = dialect === 'stdio' ? clientOf('2026-07-28', 'stdio') : clientOf('2026-07-28')
    await inCell(kind, serverOf('2025-11-25'), {}, async ({ client, server }) => {
      const { sessions } = server as Awaited<ReturnType<typeof sessionServer>>
      let ran = 0
      server.tools.set('count', () => ({ content: [{ type: 'text', text: String(++ran) }] }))
      await client.call('tools/call', { name: 'count' })
      const opened = server.of('initialize').length
      ;(sessions as Set<string>).clear()
      const { result: second, error } = await client.call('tools/call', { name: 'count' })
      expect([error, second?.resultType, second?.content]).toEqual([
        undefined,
        'complete',
        [{ type: 'text', text: '2' }],
      ])
      expect(server.of('initialize')).toHaveLength(opened + 1)
      const calls = server.of('tools/call').map(({ headers }) => headers['mcp-session-id'])
      expect(calls).toHaveLength(3) // the second was refused with 404, and sent again in the new session
      expect([calls[0] === calls[1], calls[1] === calls[2]]).toEqual([true, false])
      expect(server.of('initialize').at(-1)?.message.params).toMatchObject({ protocolVersion: '2025-11-25' })
    })
  },
)
