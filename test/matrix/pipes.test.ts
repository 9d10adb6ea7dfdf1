import { expect, onTestFinished, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import type { Revision } from '../../src/protocol/revisions.ts'
import { clientOf, inCell, serverOf } from './cells.ts'
import type { MatrixClient, Wire } from './client.ts'
import { openPipe } from './pipe-client.ts'
import { type MatrixServer, ToolError } from './server.ts'

// Acceptance scenarios whose other tests have a client over HTTP.

const PIPE = clientOf('2026-07-28', 'stdio')
const LEGACY_SERVERS = [
  serverOf('2025-11-25'),
  serverOf('2025-06-18', 'stdio'),
  serverOf('2025-11-25', 'http-sse'),
] as const
const UPDATED = 'notifications/resources/updated'
const TOOLS_CHANGED = 'notifications/tools/list_changed'
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'

/** A pipe whose messages the test writes itself. */
const rawPipe = async (url: string, revision: Revision) => {
  const pipe = openPipe(url)
  onTestFinished(() => pipe.close())
  const received: Wire[] = []
  pipe.listen(message => void received.push(message))
  const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  await pipe.send({ jsonrpc: '2.0', id: 0, method: 'initialize', params })
  await expect.poll(() => received.length).toBe(1)
  await pipe.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  received.length = 0
  return { send: pipe.send, received }
}

const callOf = (id: number | string, name: string, given: object = {}) => ({
  ...{ jsonrpc: '2.0', id, method: 'tools/call' },
  params: { name, arguments: given },
})

test.each(LEGACY_SERVERS)(
  'D1: modern listeners on pipes of a legacy server: acknowledged first, tagged, subscribed once for two, unsubscribed after both ($name)',
  async kind => {
    await inCell(PIPE, kind, {}, async ({ client, another, server }) => {
      const other = await another()
      const listeners = [client, other] as const
      for (const each of listeners) await each.listen(['test://a'])
      for (const { received } of listeners)
        expect(received[0]).toMatchObject({
          method: ACKNOWLEDGED,
          params: {
            notifications: { toolsListChanged: true, resourceSubscriptions: ['test://a'] },
            _meta: { [META.subscriptionId]: 1 },
          },
        })
      server.say(UPDATED, { uri: 'test://b' })
      server.say(UPDATED, { uri: 'test://a/part' })
      server.say(TOOLS_CHANGED)
      const tagged = { [META.subscriptionId]: 1 }
      for (const { heard } of listeners) {
        expect((await heard(UPDATED)).params).toMatchObject({ uri: 'test://a/part', _meta: tagged })
        expect((await heard(TOOLS_CHANGED)).params).toMatchObject({ _meta: tagged })
      }
      expect(server.of('resources/subscribe')).toHaveLength(1)
      await client.notify('notifications/cancelled', { requestId: 1 })
      await client.call('tools/list') // the gateway has read the cancellation
      server.say(UPDATED, { uri: 'test://a' })
      expect((await other.heard(UPDATED)).params).toMatchObject({ uri: 'test://a' })
      expect(server.of('resources/unsubscribe')).toEqual([])
      await other.close()
      expect((await server.arrived('resources/unsubscribe')).message.params).toMatchObject({ uri: 'test://a' })
    })
  },
)

/** The capabilities that the client of a session or process has declared to the server. */
const declaredTo = (server: MatrixServer): object[] =>
  server.of('initialize').map(({ message }) => (message.params?.capabilities ?? {}) as object)

test.each([clientOf('2026-07-28'), PIPE])(
  'D9: a legacy server that lists more to a client that can be asked: two lists, and one session for each ($name)',
  async kind => {
    await inCell(kind, serverOf('2025-11-25'), {}, async ({ client, another, server }) => {
      const asking = await another({ elicitation: {}, sampling: {} })
      const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })
      const sessions = new Map<unknown, object>()
      server.methods.set('tools/list', () => {
        const session = server.of('tools/list').at(-1)?.headers['mcp-session-id']
        if (!sessions.has(session)) sessions.set(session, declaredTo(server).at(-1) ?? {})
        const canAsk = 'elicitation' in (sessions.get(session) ?? {})
        return { tools: [tool('plain'), ...(canAsk ? [tool('asks')] : [])] }
      })
      const listed = async (who: MatrixClient): Promise<unknown> => (await who.call('tools/list')).result?.tools
      expect(await listed(client)).toMatchObject([{ name: 'plain' }])
      expect(await listed(asking)).toMatchObject([{ name: 'plain' }, { name: 'asks' }])
      expect(await listed(client)).toMatchObject([{ name: 'plain' }])
      expect(sessions.size).toBe(2)
    })
  },
)

test.each([serverOf('2026-07-28'), serverOf('2026-07-28', 'stdio')])(
  'F3: a batch on a pipe becomes single requests at a modern server, answered line by line ($name)',
  async kind => {
    await inCell(clientOf('2025-11-25', 'stdio'), kind, {}, async ({ server, url }) => {
      server.tools.set('t', ({ arguments: { n } }) => ({ content: [{ type: 'text', text: String(n) }] }))
      const { send, received } = await rawPipe(url, '2025-03-26')
      const note = { jsonrpc: '2.0', method: 'acme/note', params: {} }
      await send([callOf(1, 't', { n: 1 }), callOf(2, 't', { n: 2 }), note, callOf(3, 't', { n: 3 })])
      await expect.poll(() => received.map(({ id }) => id).sort()).toEqual([1, 2, 3])
      expect(received.filter(Array.isArray)).toEqual([])
      await server.arrived('acme/note')
      expect(server.of('tools/call')).toHaveLength(3)
      expect(server.arrivals.filter(({ text }) => text.startsWith('['))).toEqual([])
      received.length = 0
      await send([{ jsonrpc: '2.0', id: 9, method: 'initialize', params: {} }, callOf(4, 't')])
      await expect.poll(() => received).toMatchObject([{ error: { code: -32600 } }])
      expect(server.of('tools/call')).toHaveLength(3)
    })
  },
)

test.each(LEGACY_SERVERS)(
  'F10: a legacy server’s old codes are put right for a modern client on a pipe ($name)',
  async kind => {
    await inCell(PIPE, kind, { capabilities: { elicitation: { url: {} } } }, async ({ client, server }) => {
      server.tools.set('fail', ({ arguments: { code } }) => {
        throw new ToolError(Number(code), 'x')
      })
      const fail = async (code: number) =>
        (await client.call('tools/call', { name: 'fail', arguments: { code } })).error
      expect(await fail(-32002)).toMatchObject({ code: -32602, message: 'x' })
      expect(await fail(-32020)).toMatchObject({ code: -32603, data: { upstreamCode: -32020 } })
      expect(await fail(-31000)).toMatchObject({ code: -31000 })
      expect(server.of('tools/call')).toHaveLength(3)
    })
  },
)

test.each(['2025-11-25', '2025-03-26'] as const)(
  'F13: an id in flight twice on a pipe of %s is refused, and the first request is answered',
  async revision => {
    await inCell(clientOf('2025-11-25', 'stdio'), serverOf('2026-07-28'), {}, async ({ server, url }) => {
      let open = (): void => {}
      const passed = new Promise<void>(resolve => {
        open = resolve
      })
      server.tools.set('wait', async () => {
        await passed
        return { content: [] }
      })
      const { send, received } = await rawPipe(url, revision)
      await send(callOf(1, 'wait'))
      await server.arrived('tools/call')
      await send(callOf(1, 'wait'))
      await expect.poll(() => received).toMatchObject([{ id: 1, error: { code: -32600 } }])
      await send(callOf('1', 'wait')) // another id
      await server.arrived('tools/call', 2)
      open()
      await expect.poll(() => new Set(received.slice(1).map(({ id }) => id))).toEqual(new Set([1, '1']))
      expect(received.slice(1).map(({ result }) => result)).toEqual([{ content: [] }, { content: [] }])
      expect(server.of('tools/call')).toHaveLength(2)
    })
  },
)
