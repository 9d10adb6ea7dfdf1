import { expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { modern, openSession, openStream, send } from '../support/raw.ts'
import { clientOf, inCell, serverOf } from './cells.ts'
import type { MatrixServer } from './server.ts'
import { ToolError } from './server.ts'
import type { sessionServer } from './session-server.ts'

const M = clientOf('2026-07-28')
const L = serverOf('2025-11-25')
const FORM = {
  mode: 'form',
  message: 'Name?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
}
const ELICITS = { capabilities: { elicitation: {} } }
const accept = { action: 'accept', content: { name: 'Ann' } }

const asksName = (server: MatrixServer): void => {
  server.tools.set('ask', async call => ({
    content: [{ type: 'text', text: JSON.stringify(await call.ask('n', 'elicitation/create', FORM)) }],
  }))
}
const call = (id: number, more: Record<string, unknown> = {}, meta: object = {}) =>
  modern(id, 'tools/call', { name: 'ask', ...more }, { capabilities: { elicitation: { form: {}, url: {} } }, meta })
const responsesOf = (server: MatrixServer) =>
  server.arrivals
    .filter(({ message }) => message.method === undefined && message.id !== undefined)
    .map(({ message }) => message)

test('B1: a legacy server’s form is answered by the retry; one call, one stream', async () => {
  await inCell(M, L, ELICITS, async ({ server, url }) => {
    asksName(server)
    const first = await send(url, call(1))
    expect(first.json.result).toMatchObject({
      resultType: 'input_required',
      requestState: expect.stringMatching(/^gw2\./),
    })
    const requests = first.json.result?.inputRequests as Record<string, unknown>
    expect(Object.values(requests)).toEqual([{ method: 'elicitation/create', params: FORM }])
    const [key = ''] = Object.keys(requests)
    const second = await send(
      url,
      call(2, { requestState: first.json.result?.requestState, inputResponses: { [key]: accept } }),
    )
    expect(second.json).toMatchObject({
      id: 2,
      result: { resultType: 'complete', content: [{ text: JSON.stringify(accept) }] },
    })
    expect(server.of('tools/call')).toHaveLength(1)
    expect(responsesOf(server)).toEqual([{ jsonrpc: '2.0', id: expect.anything(), result: accept }])
  })
})

test('B5, B6: two questions at once are one round; a missing answer is asked again, the given one delivered once', async () => {
  await inCell(M, L, ELICITS, async ({ server, url }) => {
    server.tools.set('ask', async call => {
      const both = await Promise.all([
        call.ask('a', 'elicitation/create', FORM),
        call.ask('b', 'elicitation/create', { ...FORM, message: 'Again?' }),
      ])
      return { content: [{ type: 'text', text: JSON.stringify(both) }] }
    })
    const first = (await send(url, call(1))).json.result
    const [a = '', b = ''] = Object.keys(first?.inputRequests as object)
    const second = (await send(url, call(2, { requestState: first?.requestState, inputResponses: { [b]: accept } })))
      .json.result
    expect(second).toMatchObject({
      resultType: 'input_required',
      inputRequests: { [a]: { method: 'elicitation/create' } },
    })
    expect(Object.keys(second?.inputRequests as object)).toEqual([a])
    expect(second?.requestState).not.toBe(first?.requestState)
    const third = (
      await send(url, call(3, { requestState: second?.requestState, inputResponses: { [a]: { action: 'decline' } } }))
    ).json.result
    expect(third).toMatchObject({
      resultType: 'complete',
      content: [{ text: JSON.stringify([{ action: 'decline' }, accept]) }],
    })
    expect(responsesOf(server)).toHaveLength(2)
  })
})

test('B7: a state replayed, tampered, moved to other arguments or left too long is refused; then the server is released', async () => {
  await inCell(M, L, { ...ELICITS, limits: { questionTtlMs: 400 } }, async ({ server, url }) => {
    server.tools.set('ask', async call => {
      await call.ask('n', 'elicitation/create', FORM)
      return new Promise(() => {}) // a server that does not take the hint
    })
    const first = (await send(url, call(1))).json.result
    const state = String(first?.requestState)
    const answers = { q1: accept }
    const tries = [
      { requestState: `${state.slice(0, -1)}${state.endsWith('A') ? 'B' : 'A'}`, inputResponses: answers },
      { requestState: state, inputResponses: answers, arguments: { other: 1 } },
      { requestState: state.slice(0, 20), inputResponses: answers },
      { requestState: `gw2.${'x'.repeat(1 << 20)}`, inputResponses: answers },
    ]
    for (const more of tries) expect((await send(url, call(2, more))).json.error?.code).toBe(-32602)
    await server.arrived('notifications/cancelled')
    expect(responsesOf(server)).toMatchObject([{ result: { action: 'cancel' } }])
    expect((await send(url, call(3, { requestState: state, inputResponses: answers }))).json.error).toMatchObject({
      code: -32602,
      data: { reason: 'invalid_request_state' },
    })
    expect(server.of('tools/call')).toHaveLength(1)
  })
})

test('B8: a client without elicitation is not asked; the server’s own fallback is the result', async () => {
  await inCell(M, L, {}, async ({ client, server }) => {
    server.tools.set('ask', async call => {
      const answer = await call
        .ask('n', 'elicitation/create', FORM)
        .catch((error: ToolError) => ({ refused: error.code }))
      return { content: [{ type: 'text', text: JSON.stringify(answer) }] }
    })
    const { result, asked } = await client.call('tools/call', { name: 'ask' })
    expect(asked).toEqual([])
    expect(result).toMatchObject({ resultType: 'complete', content: [{ text: '{"refused":-32601}' }] })
  })
})

test('B9: "open this link first" becomes a question, and the call is sent again once the server knows', async () => {
  await inCell(M, L, {}, async ({ server, url }) => {
    let isDone = false
    server.tools.set('ask', () => {
      if (isDone) return { content: [] }
      throw new ToolError(-32042, 'links', {
        elicitations: [{ mode: 'url', url: 'https://x.test/go', message: 'Go', elicitationId: 'e1' }],
      })
    })
    const first = (await send(url, call(1))).json.result
    expect(first).toMatchObject({ resultType: 'input_required' })
    const [[key, request] = ['', undefined]] = Object.entries(first?.inputRequests as Record<string, unknown>)
    expect(request).toEqual({
      method: 'elicitation/create',
      params: { mode: 'url', url: 'https://x.test/go', message: 'Go', elicitationId: 'e1' },
    })
    const retry = send(
      url,
      call(2, { requestState: first?.requestState, inputResponses: { [key]: { action: 'accept' } } }),
    )
    isDone = true
    server.say('notifications/elicitation/complete', { elicitationId: 'e1' })
    expect((await retry).json.result).toMatchObject({ resultType: 'complete', content: [] })
    expect(server.of('tools/call')).toHaveLength(2)
  })
})

test('B9: a link that is declined fails the tool in words', async () => {
  await inCell(M, L, {}, async ({ server, url }) => {
    server.tools.set('ask', () => {
      throw new ToolError(-32042, 'links', {
        elicitations: [{ mode: 'url', url: 'https://x.test/go', message: 'Go', elicitationId: 'e1' }],
      })
    })
    const first = (await send(url, call(1))).json.result
    const second = (
      await send(url, call(2, { requestState: first?.requestState, inputResponses: { q1: { action: 'decline' } } }))
    ).json.result
    expect(second).toMatchObject({ resultType: 'complete', isError: true })
  })
})

test('B10: without links among its capabilities the client is told what is missing', async () => {
  await inCell(M, L, {}, async ({ server, url }) => {
    server.tools.set('ask', () => {
      throw new ToolError(-32042, 'links', {
        elicitations: [{ mode: 'url', url: 'https://x.test/go', message: 'Go', elicitationId: 'e1' }],
      })
    })
    const reply = await send(url, modern(1, 'tools/call', { name: 'ask' }, { capabilities: { elicitation: {} } }))
    expect([reply.status, reply.json.error?.code, reply.json.error?.data]).toEqual([
      400,
      -32021,
      { requiredCapabilities: { elicitation: { url: {} } } },
    ])
  })
})

test('B4: what a fresh session asks on its own goes to the call that waits for it, before the call is sent', async () => {
  await inCell(M, L, {}, async ({ server, another }) => {
    const legacy = server as Awaited<ReturnType<typeof sessionServer>>
    server.tools.set('roots', () => ({ content: [] }))
    void server.arrived('notifications/initialized').then(() => legacy.askOutside('roots/list', {}))
    const client = await another({ roots: {} })
    const { asked, result } = await client.call('tools/call', { name: 'roots' }, { answer: () => ({ roots: [] }) })
    expect(asked.map(({ method }) => method)).toEqual(['roots/list'])
    expect(result).toMatchObject({ resultType: 'complete' })
    const order = server.arrivals.map(({ message }) =>
      message.id === undefined ? 'other' : (message.method ?? 'answer'),
    )
    expect(order.indexOf('answer')).toBeLessThan(order.indexOf('tools/call'))
  })
})

test('B13: a question open when the legacy client lost its stream is told once more, under the same id', async () => {
  await inCell(clientOf('2025-11-25'), serverOf('2026-07-28'), {}, async ({ server, url }) => {
    asksName(server)
    const { headers } = await openSession(url, '2025-11-25', { elicitation: {} })
    const stream = await openStream(url, {
      headers,
      body: { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'ask' } },
    })
    const asked = await stream.next()
    expect(asked?.json).toMatchObject({ id: expect.stringMatching(/^gw-/), method: 'elicitation/create' })
    stream.close()
    const resumed = await openStream(url, {
      method: 'GET',
      headers: { ...headers, 'last-event-id': String(asked?.id).replace(/\d+$/, '0') },
    })
    const again = await resumed.next()
    expect(again?.json).toEqual(asked?.json)
    expect((await send(url, { headers, body: { jsonrpc: '2.0', id: again?.json.id, result: accept } })).status).toBe(
      202,
    )
    expect((await resumed.all()).map(({ json }) => json.id)).toEqual([5])
    expect(server.of('tools/call')).toHaveLength(2)
    expect(server.of('tools/call').some(({ isGone }) => isGone)).toBe(false)
  })
})

test('B14: a refusal that has no modern form fails the tool in words, and nothing is sent again', async () => {
  await inCell(
    clientOf('2025-11-25'),
    serverOf('2026-07-28'),
    { capabilities: { sampling: {} } },
    async ({ client, server }) => {
      server.tools.set('ask', async call => ({
        content: [],
        structuredContent: await call.ask('s', 'sampling/createMessage', { messages: [], maxTokens: 1 }),
      }))
      const { result } = await client.call(
        'tools/call',
        { name: 'ask' },
        { answer: () => ({ error: { code: -1, message: 'User rejected sampling request' } }) },
      )
      expect(result).toMatchObject({
        isError: true,
        content: [{ type: 'text', text: expect.stringContaining('User rejected') }],
      })
      expect(server.of('tools/call')).toHaveLength(1)
    },
  )
})

test('B15: a modern server’s own state passes byte for byte, and nothing is parked', async () => {
  await inCell(M, serverOf('2026-07-28'), {}, async ({ server, url }) => {
    asksName(server)
    const first = (await send(url, call(1))).json.result
    expect(first?.requestState).toBe('st-1 é')
    await send(url, call(2, { requestState: 'st-1 é', inputResponses: { n: accept } }))
    expect(server.of('tools/call')[1]?.message.params?.requestState).toBe('st-1 é')
  })
})

test('a legacy client’s links carry an id, and its completion is told before the result', async () => {
  await inCell(
    clientOf('2025-11-25'),
    serverOf('2026-07-28'),
    { capabilities: { elicitation: { url: {} } } },
    async ({ client, server }) => {
      server.tools.set('ask', async call => ({
        content: [],
        structuredContent: await call.ask('l', 'elicitation/create', {
          mode: 'url',
          url: 'https://x.test',
          message: 'Go',
        }),
      }))
      const { asked, notices, result } = await client.call(
        'tools/call',
        { name: 'ask' },
        { answer: () => ({ action: 'accept' }) },
      )
      const id = asked[0]?.params.elicitationId
      expect(id).toMatch(/^[0-9a-f-]{36}$/)
      expect(notices).toMatchObject([{ method: 'notifications/elicitation/complete', params: { elicitationId: id } }])
      expect(result?.structuredContent).toEqual({ action: 'accept' })
      expect(JSON.stringify(server.of('tools/call')[1]?.message)).not.toContain('elicitationId')
    },
  )
})

test('a modern server that asks for ever is stopped after ten rounds', async () => {
  await inCell(
    clientOf('2025-11-25'),
    serverOf('2026-07-28'),
    { capabilities: { elicitation: {} } },
    async ({ client, server }) => {
      server.tools.set('ask', call => call.ask(`k${Math.random()}`, 'elicitation/create', FORM))
      const { result, asked } = await client.call('tools/call', { name: 'ask' }, { answer: () => accept })
      expect(asked).toHaveLength(10)
      expect(result).toMatchObject({ isError: true })
    },
  )
})

test('the client’s capabilities and level reach a modern server as they are', async () => {
  await inCell(
    clientOf('2025-06-18'),
    serverOf('2026-07-28'),
    { capabilities: { roots: { listChanged: true }, elicitation: {} } },
    async ({ client, server }) => {
      server.tools.set('t', () => ({ content: [] }))
      expect((await client.call('logging/setLevel', { level: 'warning' })).result).toEqual({})
      for (const _ of [1, 2]) await client.call('tools/call', { name: 't' })
      for (const { message } of server.of('tools/call'))
        expect(message.params?._meta).toMatchObject({
          [META.logLevel]: 'warning',
          [META.clientCapabilities]: { roots: {}, elicitation: {} },
          [META.clientInfo]: { name: 'test' },
        })
      expect(server.of('logging/setLevel')).toEqual([])
      expect((await client.call('logging/setLevel', { level: 'loud' })).error?.code).toBe(-32602)
    },
  )
})

test.each([
  ['stdio', serverOf('2025-06-18', 'stdio')],
  ['http-sse', serverOf('2025-11-25', 'http-sse')],
])(
  'B2: over %s, which does not tell calls apart, the second call that can be asked waits for the first',
  async (_name, kind) => {
    await inCell(M, kind, ELICITS, async ({ client, another, server }) => {
      server.tools.set('ask', async call => {
        const answer = await call.ask('n', 'elicitation/create', { ...FORM, message: String(call.arguments.who) })
        return { content: [{ type: 'text', text: JSON.stringify([call.arguments.who, answer.content]) }] }
      })
      server.tools.set('plain', () => ({ content: [] }))
      const ask = (who: string, by: typeof client) =>
        by.call(
          'tools/call',
          { name: 'ask', arguments: { who } },
          { answer: ({ params }) => ({ action: 'accept', content: { for: params.message } }) },
        )
      const results = await Promise.all([ask('one', client), ask('two', await another()), client.call('tools/list')])
      expect(
        results
          .slice(0, 2)
          .map(({ result }) => JSON.parse((result?.content as { text: string }[] | undefined)?.[0]?.text ?? ''))
          .sort(),
      ).toEqual([
        ['one', { for: 'one' }],
        ['two', { for: 'two' }],
      ])
      const order = server.arrivals.flatMap(({ message }) =>
        message.method === 'tools/call' ? 'call' : message.method === undefined ? 'answer' : [],
      )
      expect(order).toEqual(['call', 'answer', 'call', 'answer'])
    })
  },
)

test('B16: three rounds of a modern server are three questions on an old client’s channel', async () => {
  await inCell(
    clientOf('2024-11-05', 'http-sse'),
    serverOf('2026-07-28'),
    { capabilities: { sampling: {} } },
    async ({ client, server }) => {
      server.tools.set('ask', async call => {
        const state = String(call.params.requestState ?? '')
        const round = state === '' ? 0 : Number(/st-(\d)/.exec(state)?.[1])
        if (round < 3)
          await call.ask(`round ${round}`, 'sampling/createMessage', {
            messages: [{ role: 'user', content: { type: 'text', text: `r${round}` } }],
            maxTokens: 5,
          })
        return { content: [{ type: 'text', text: 'done' }] }
      })
      const answer = () => ({ role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' })
      const { result, asked } = await client.call('tools/call', { name: 'ask' }, { answer })
      expect(asked.map(({ method }) => method)).toEqual(Array(3).fill('sampling/createMessage'))
      expect(result?.content).toEqual([{ type: 'text', text: 'done' }])
      expect(server.of('tools/call')).toHaveLength(4)
    },
  )
})
