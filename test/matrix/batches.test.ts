import { expect, test } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { openSession, openStream, send } from '../support/raw.ts'
import {
  legacy,
  notice,
  openStream as openEvents,
  result,
  type Script,
  scriptedServer,
  sendJson,
  tokenOf,
} from '../support/scripted-server.ts'
import { clientOf, inCell, SERVERS, serverOf } from './cells.ts'

const request = (n: number) => ({
  jsonrpc: '2.0',
  id: n,
  method: 'tools/call',
  params: { name: 't', arguments: { n } },
})
const note = { jsonrpc: '2.0', method: 'acme/note' }
const MODERN = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' }

test.each(SERVERS)(
  'F4: the array of a 2025-06-18 session is served one by one; a modern one is refused ($name server)',
  async kind => {
    await inCell(clientOf('2025-06-18'), kind, {}, async ({ server, url }) => {
      server.tools.set('t', ({ arguments: { n } }) => ({ content: [{ type: 'text', text: String(n) }] }))
      const { headers } = await openSession(url, '2025-06-18')
      const reply = await send(url, { headers, body: [request(3), request(1), note, request(2)] })
      expect(reply.status).toBe(200)
      const answers = messagesIn(reply.text, String(reply.headers['content-type']))
      expect(answers.map(({ id, result: { content } }) => [id, content[0]?.text]).sort()).toEqual([
        [1, '1'],
        [2, '2'],
        [3, '3'],
      ])
      await server.arrived('acme/note')
      expect(
        server
          .of('tools/call')
          .map(({ message }) => (message.params?.arguments as { n: number } | undefined)?.n)
          .sort(),
      ).toEqual([1, 2, 3])
      expect(server.arrivals.filter(({ text }) => text.startsWith('['))).toEqual([])

      const before = server.of('tools/call').length
      for (const [more, body] of [
        [MODERN, [request(1), request(2)]],
        [{}, [request(1)]],
        [headers, []],
        [headers, [request(1), { jsonrpc: '2.0', id: 'gw-1', result: {} }]],
        [headers, [{ ...request(1), method: 'initialize' }, request(2)]],
      ] as const) {
        const refused = await send(url, { headers: more, body })
        expect([refused.status, refused.json.error?.code]).toEqual([400, -32600])
      }
      expect((await send(url, { headers, body: [note, note] })).status).toBe(202)
      expect(server.of('tools/call')).toHaveLength(before)
    })
  },
)

/** The messages of a reply: an array, or one event for each. */
const messagesIn = (text: string, type: string): { id: number; result: { content: { text: string }[] } }[] =>
  type.includes('json')
    ? JSON.parse(text)
    : [...text.matchAll(/^data: ?(\{.*)$/gm)].map(([, data]) => JSON.parse(data as string))

const MANNERS: Record<string, (messages: readonly object[]) => Script> = {
  'one event': messages => (_arrived, response) => {
    const stream = openEvents(response)
    stream.event(messages)
    stream.end()
  },
  'two events': messages => (_arrived, response) => {
    const stream = openEvents(response)
    stream.event(messages.slice(0, 1))
    stream.event(messages.slice(1))
    stream.end()
  },
  'a JSON body': messages => (_arrived, response) => sendJson(response, messages),
}

test.each(Object.keys(MANNERS))(
  'F5: what a 2025-03-26 server says in arrays, in %s, comes one by one',
  async manner => {
    const server = await scriptedServer(
      legacy(
        (arrived, response) => {
          if (arrived.body.id === undefined) return void response.writeHead(202).end()
          const token = tokenOf(arrived)
          const messages = [
            notice('notifications/progress', { progressToken: token, progress: 1 }),
            notice('notifications/progress', { progressToken: token, progress: 2, message: 'nearly' }),
            result(arrived.body.id, { content: [{ type: 'text', text: 'done' }] }),
          ]
          MANNERS[manner]?.(messages)(arrived, response)
        },
        { version: '2025-03-26' },
      ),
    )
    const gateway = await startTestGateway(server.url)
    const { headers } = await openSession(gateway.url, '2025-11-25')
    const stream = await openStream(gateway.url, {
      headers,
      body: { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 't', _meta: { progressToken: 'mine' } } },
    })
    const events = (await stream.all()).map(({ json }) => json)
    expect(events).toEqual([
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'mine', progress: 1 } },
      {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 'mine', progress: 2, message: 'nearly' },
      },
      { jsonrpc: '2.0', id: 7, result: { content: [{ type: 'text', text: 'done' }] } },
    ])
    expect(server.of('tools/call')).toHaveLength(1)
    expect(server.of('tools/call')[0]?.headers).not.toHaveProperty('mcp-protocol-version')
    await gateway.close()
    await server.close()
  },
)

test('F3: an array with initialize in it is refused whole, and opens nothing', async () => {
  await inCell(clientOf('2025-03-26'), serverOf('2026-07-28'), {}, async ({ server, url }) => {
    const { headers } = await openSession(url, '2025-03-26')
    const hello = { jsonrpc: '2.0', id: 9, method: 'initialize', params: { protocolVersion: '2025-03-26' } }
    server.arrivals.length = 0
    for (const more of [headers, {}]) {
      const reply = await send(url, { headers: more, body: [hello, request(1)] })
      expect([reply.status, reply.json.error?.code, reply.headers['mcp-session-id']]).toEqual([400, -32600, undefined])
    }
    expect(server.of('tools/call')).toEqual([])
  })
})
