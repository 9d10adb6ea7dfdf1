import { expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { modern, openSession, openStream, send } from '../support/raw.ts'
import { clientOf, inCell, serverOf } from './cells.ts'
import { ToolError } from './server.ts'

const M = clientOf('2026-07-28')
const LEGACY = serverOf('2025-11-25')
const MODERN = serverOf('2026-07-28')

/** A tool that waits until the test lets it go. */
const gate = () => {
  let open = () => {}
  const passed = new Promise<void>(resolve => {
    open = resolve
  })
  return { open, passed }
}

test.each([LEGACY, MODERN, serverOf('2025-06-18', 'stdio'), serverOf('2025-11-25', 'http-sse')])(
  'C1: two callers with equal tokens see only their own progress ($name)',
  async kind => {
    await inCell(M, kind, {}, async ({ client, another, server }) => {
      const both = gate()
      let arrived = 0
      server.tools.set('work', async call => {
        if (++arrived === 2) both.open()
        await both.passed
        call.progress(Number(call.arguments.n))
        return { content: [] }
      })
      const other = await another()
      const run = (who: typeof client, n: number) =>
        who.call('tools/call', { name: 'work', arguments: { n } }, { meta: { progressToken: 1 } })
      const [one, two] = await Promise.all([run(client, 1), run(other, 2)])
      expect([one.notices[0]?.params, two.notices[0]?.params]).toEqual([
        { progressToken: 1, progress: 1 },
        { progressToken: 1, progress: 2 },
      ])
      const tokens = server
        .of('tools/call')
        .map(({ message }) => (message.params?._meta as { progressToken?: unknown } | undefined)?.progressToken)
      expect(new Set(tokens).size).toBe(2)
    })
  },
)

test('C3: logs go to the request that asked for them, at its level, and the session is told once', async () => {
  await inCell(M, LEGACY, {}, async ({ client, server }) => {
    server.tools.set('talk', call => {
      for (const level of ['debug', 'info', 'error']) call.log(level, level)
      return { content: [] }
    })
    const [curious, silent] = await Promise.all([
      client.call('tools/call', { name: 'talk', arguments: { curious: true } }, { meta: { [META.logLevel]: 'info' } }),
      client.call('tools/call', { name: 'talk' }),
    ])
    expect(curious.notices.map(({ params }) => params?.level)).toEqual(['info', 'error'])
    expect(silent.notices).toEqual([])
    await client.call('tools/call', { name: 'talk' }, { meta: { [META.logLevel]: 'warning' } })
    expect(server.of('logging/setLevel').map(({ message }) => message.params)).toEqual([{ level: 'info' }])
    const order = server.arrivals.map(({ message, text }) => (text.includes('curious') ? 'curious' : message.method))
    expect(order.filter(method => method === 'logging/setLevel' || method === 'curious')).toEqual([
      'logging/setLevel',
      'curious',
    ])
    for (const { text } of server.of('tools/call')) expect(text).not.toContain('logLevel')
  })
})

test('C5: a modern client that leaves cancels at a legacy server, under the server’s own id', async () => {
  await inCell(M, LEGACY, {}, async ({ server, url }) => {
    server.tools.set('work', async call => {
      call.progress(1)
      return new Promise(() => {})
    })
    const { headers, body } = modern(1, 'tools/call', { name: 'work' }, { meta: { progressToken: 't' } })
    const stream = await openStream(url, { headers, body })
    await stream.next()
    stream.close()
    const { message } = await server.arrived('notifications/cancelled')
    expect(message.params?.requestId).toBe(server.of('tools/call')[0]?.message.id)
    const since = server.arrivals.slice(server.arrivals.findIndex(({ message }) => message.method === 'tools/call'))
    expect(since.map(({ message }) => message.method)).toEqual(['tools/call', 'notifications/cancelled'])
  })
})

test('C6: a modern client that leaves aborts the request at a modern server', async () => {
  await inCell(M, MODERN, {}, async ({ server, url }) => {
    server.tools.set('work', async call => {
      call.progress(1)
      return new Promise(() => {})
    })
    const { headers, body } = modern(1, 'tools/call', { name: 'work' }, { meta: { progressToken: 't' } })
    const stream = await openStream(url, { headers, body })
    await stream.next()
    stream.close()
    await expect.poll(() => server.of('tools/call')[0]?.isGone).toBe(true)
  })
})

test('C6: a modern client on a pipe that cancels aborts the request at a modern server, and is answered nothing', async () => {
  await inCell(clientOf('2026-07-28', 'stdio'), MODERN, {}, async ({ client, server }) => {
    server.tools.set('work', () => new Promise(() => {}))
    void client.call('tools/call', { name: 'work' })
    await server.arrived('tools/call')
    await client.notify('notifications/cancelled', { requestId: 1, reason: 'enough' })
    await expect.poll(() => server.of('tools/call')[0]?.isGone).toBe(true)
    expect(server.of('notifications/cancelled')).toEqual([])
    await client.call('tools/list')
    expect(client.received.map(({ id }) => id)).toEqual([2])
  })
})

test('C7: a dropped legacy call runs on at a modern server and is resumed', async () => {
  await inCell(clientOf('2025-11-25'), MODERN, {}, async ({ server, url }) => {
    const { open, passed } = gate()
    server.tools.set('work', async call => {
      call.progress(1)
      await passed
      call.progress(2)
      return { content: [{ type: 'text', text: 'done' }] }
    })
    const { headers } = await openSession(url, '2025-11-25')
    const body = {
      jsonrpc: '2.0',
      id: 5,
      method: 'tools/call',
      params: { name: 'work', _meta: { progressToken: 't' } },
    }
    const stream = await openStream(url, { headers, body })
    const first = await stream.next()
    stream.close()
    open()
    const resumed = await openStream(url, {
      method: 'GET',
      headers: { ...headers, 'last-event-id': String(first?.id) },
    })
    const rest = await resumed.all()
    expect(rest.map(({ json }) => json.params?.progress ?? json.id)).toEqual([2, 5])
    expect(server.of('tools/call').map(({ isGone }) => isGone)).toEqual([false])
  })
})

test('C8: a legacy client’s cancel aborts the request at a modern server; its stream ends without an answer', async () => {
  await inCell(clientOf('2025-11-25'), MODERN, {}, async ({ server, url }) => {
    server.tools.set('work', async call => {
      call.progress(1)
      return new Promise(() => {})
    })
    const { headers } = await openSession(url, '2025-11-25')
    const stream = await openStream(url, {
      headers,
      body: { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'work', _meta: { progressToken: 't' } } },
    })
    await stream.next()
    const reply = await send(url, {
      headers,
      body: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } },
    })
    expect(reply.status).toBe(202)
    expect(await stream.all()).toEqual([])
    await expect.poll(() => server.of('tools/call')[0]?.isGone).toBe(true)
  })
})

test.each([LEGACY, serverOf('2025-06-18', 'stdio'), serverOf('2025-11-25', 'http-sse')])(
  'D1: a modern listener on a legacy server: acknowledged first, tagged, subscribed once for two, unsubscribed after both ($name)',
  async kind => {
    await inCell(M, kind, {}, async ({ server, url }) => {
      const listen = (id: string | number) =>
        openStream(
          url,
          modern(id, 'subscriptions/listen', {
            notifications: { toolsListChanged: true, resourceSubscriptions: ['test://a'] },
          }),
        )
      const one = await listen('sub-1')
      expect((await one.next())?.json).toMatchObject({
        method: 'notifications/subscriptions/acknowledged',
        params: {
          notifications: { toolsListChanged: true, resourceSubscriptions: ['test://a'] },
          _meta: { [META.subscriptionId]: 'sub-1' },
        },
      })
      const two = await listen(2)
      await two.next()
      server.say('notifications/prompts/list_changed')
      server.say('notifications/resources/updated', { uri: 'test://b' })
      server.say('notifications/resources/updated', { uri: 'test://a/part' })
      server.say('notifications/tools/list_changed')
      for (const [stream, id] of [
        [one, 'sub-1'],
        [two, 2],
      ] as const) {
        expect((await stream.next())?.json).toMatchObject({
          method: 'notifications/resources/updated',
          params: { uri: 'test://a/part', _meta: { [META.subscriptionId]: id } },
        })
        expect((await stream.next())?.json).toMatchObject({
          method: 'notifications/tools/list_changed',
          params: { _meta: { [META.subscriptionId]: id } },
        })
      }
      expect(server.of('resources/subscribe')).toHaveLength(1)
      one.close()
      server.say('notifications/resources/updated', { uri: 'test://a' })
      expect((await two.next())?.json.params).toMatchObject({ uri: 'test://a' })
      expect(server.of('resources/unsubscribe')).toEqual([])
      two.close()
      expect((await server.arrived('resources/unsubscribe')).message.params).toMatchObject({ uri: 'test://a' })
    })
  },
)

test.each([
  [clientOf('2025-06-18'), MODERN],
  [clientOf('2025-11-25', 'stdio'), serverOf('2026-07-28', 'stdio')],
])(
  'D2: a legacy client’s subscriptions change the listen at a modern server without a gap ($0.name, $1.name)',
  async (from, to) => {
    await inCell(from, to, {}, async ({ client, server }) => {
      await client.listen(['test://a'])
      await client.listen(['test://b'])
      expect((await client.call('resources/unsubscribe', { uri: 'test://a' })).result).toEqual({})
      server.say('notifications/resources/updated', { uri: 'test://a' }) // the server has not been told yet
      server.say('notifications/resources/updated', { uri: 'test://b' })
      expect((await client.heard('notifications/resources/updated')).params).toEqual({ uri: 'test://b' })
      server.say('notifications/tools/list_changed')
      expect((await client.heard('notifications/tools/list_changed')).params ?? {}).toEqual({})
      const filters = server
        .of('subscriptions/listen')
        .map(
          ({ message }) =>
            (message.params?.notifications as { resourceSubscriptions?: string[] } | undefined)?.resourceSubscriptions,
        )
      expect(filters).toEqual([undefined, ['test://a'], ['test://a', 'test://b']])
      if (to === MODERN)
        await expect
          .poll(() => server.of('subscriptions/listen').map(({ isGone }) => isGone))
          .toEqual([true, true, false])
      else {
        const ids = server.of('subscriptions/listen').map(({ message }) => message.id)
        const ended = () => server.of('notifications/cancelled').map(({ message }) => message.params?.requestId)
        await expect.poll(ended).toEqual(ids.slice(0, 2))
        const order = server.arrivals.map(({ message: { method, id, params } }) => [method, id ?? params?.requestId])
        const at = (method: string, id: unknown) => order.findIndex(each => each[0] === method && each[1] === id)
        expect(at('notifications/cancelled', ids[0])).toBeGreaterThan(at('subscriptions/listen', ids[1]))
        expect(at('notifications/cancelled', ids[1])).toBeGreaterThan(at('subscriptions/listen', ids[2]))
      }
    })
  },
)

test('D9: two capability sets are two sessions of a legacy server, one set is one', async () => {
  await inCell(M, LEGACY, {}, async ({ client, another, server }) => {
    const rooted = await another({ roots: {} })
    server.arrivals.length = 0
    for (const who of [client, rooted, client, await another()]) await who.call('tools/list')
    const sessions = server.of('tools/list').map(({ headers }) => headers['mcp-session-id'])
    expect(new Set(sessions).size).toBe(2)
    expect(sessions[0]).toBe(sessions[2])
    expect(sessions[0]).toBe(sessions[3])
  })
})

test('E8: a legacy client’s arguments are repeated in headers where a modern tool wants that', async () => {
  await inCell(clientOf('2025-06-18'), MODERN, {}, async ({ client, server }) => {
    const inputSchema = {
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, n: { type: 'integer' } },
    }
    const broken = { type: 'object', properties: { a: { type: 'object', 'x-mcp-header': 'A' } } }
    server.tools.set('données', () => ({ content: [] }))
    server.methods.set('tools/list', () => ({
      tools: [
        { name: 'données', inputSchema },
        { name: 'broken', inputSchema: broken },
      ],
    }))
    await client.call('tools/call', { name: 'données', arguments: { region: 'Hello, 世界', n: 1 } })
    const encode = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`
    expect(server.of('tools/call')[0]?.headers).toMatchObject({
      'mcp-param-region': encode('Hello, 世界'),
      'mcp-name': encode('données'),
    })
    const { result } = await client.call('tools/list')
    expect(((result?.tools ?? []) as { name: string }[]).map(({ name }) => name)).toEqual(['données'])
  })
})

test('a modern client on a pipe has no headers; its arguments are repeated in them all the same', async () => {
  await inCell(clientOf('2026-07-28', 'stdio'), MODERN, {}, async ({ client, server }) => {
    const inputSchema = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } }
    server.tools.set('t', () => ({ content: [] }))
    server.methods.set('tools/list', () => ({ tools: [{ name: 't', inputSchema }] }))
    const { error } = await client.call('tools/call', { name: 't', arguments: { region: 'eu' } })
    expect(error).toBeUndefined()
    expect(server.of('tools/call')[0]?.headers['mcp-param-region']).toBe('eu')
  })
})

test('F1: requests of one principal on different connections reach one session', async () => {
  await inCell(M, LEGACY, {}, async ({ another, server }) => {
    let count = 0
    server.tools.set('count', () => ({ content: [{ type: 'text', text: String(++count) }] }))
    for (const n of [1, 2, 3]) {
      const { result } = await (await another()).call('tools/call', { name: 'count' })
      expect(result?.content).toEqual([{ type: 'text', text: String(n) }])
    }
    expect(new Set(server.of('tools/call').map(({ headers }) => headers['mcp-session-id'])).size).toBe(1)
  })
})

test('F3: a batch of a legacy session becomes single requests at a modern server', async () => {
  await inCell(clientOf('2025-03-26'), MODERN, {}, async ({ server, url }) => {
    server.tools.set('t', ({ arguments: args }) => ({ content: [{ type: 'text', text: String(args.n) }] }))
    const { headers } = await openSession(url, '2025-03-26')
    const request = (n: number) => ({
      jsonrpc: '2.0',
      id: n,
      method: 'tools/call',
      params: { name: 't', arguments: { n } },
    })
    const reply = await send(url, {
      headers,
      body: [request(1), request(2), request(3), { jsonrpc: '2.0', method: 'acme/note' }],
    })
    const ids = [...reply.text.matchAll(/"id":(\d)/g)].map(([, id]) => Number(id)) // an array, or events if it took long
    expect(ids.sort()).toEqual([1, 2, 3])
    expect(server.of('tools/call')).toHaveLength(3)
  })
})

test('F10: a legacy server’s old codes are put right for a modern client, its own reach it unchanged', async () => {
  await inCell(M, LEGACY, {}, async ({ client, server }) => {
    server.tools.set('fail', ({ arguments: args }) => {
      throw new ToolError(Number(args.code), 'x')
    })
    const fail = async (code: number) => (await client.call('tools/call', { name: 'fail', arguments: { code } })).error
    expect(await fail(-32002)).toMatchObject({ code: -32602 })
    expect(await fail(-32020)).toMatchObject({ code: -32603, data: { upstreamCode: -32020 } })
    expect(await fail(-32050)).toMatchObject({ code: -32050, message: 'x' })
    expect(await fail(-31000)).toMatchObject({ code: -31000 })
  })
})

test('F13: an id in flight twice is refused in a legacy session and served on two modern requests', async () => {
  await inCell(clientOf('2025-11-25'), MODERN, {}, async ({ server, url }) => {
    const { open, passed } = gate()
    server.tools.set('wait', async () => {
      await passed
      return { content: [] }
    })
    const { headers } = await openSession(url, '2025-11-25')
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'wait' } }
    const first = send(url, { headers, body })
    await server.arrived('tools/call')
    expect((await send(url, { headers, body })).json.error?.code).toBe(-32600)
    const twice = [1, 2].map(() => send(url, modern(1, 'tools/call', { name: 'wait' })))
    await server.arrived('tools/call', 3)
    open()
    expect((await Promise.all(twice)).map(({ json }) => json.result?.resultType)).toEqual(['complete', 'complete'])
    expect((await first).text).toContain('"id":1')
  })
})
