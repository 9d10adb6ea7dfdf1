import { expect, test } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { modern, send } from '../support/raw.ts'
import { type ScriptedServer, scriptedServer, sendJson } from '../support/scripted-server.ts'
import { clientOf, inCell, serverOf } from './cells.ts'
import type { pipeServer } from './pipe-server.ts'
import type { MatrixServer } from './server.ts'
import type { sessionServer } from './session-server.ts'

const M = clientOf('2026-07-28')
const L = serverOf('2025-11-25')
const FORM = { message: 'Name?', requestedSchema: { type: 'object', properties: {} } }
const accept = { action: 'accept', content: {} }
const call = (id: number, more: Record<string, unknown> = {}) =>
  modern(id, 'tools/call', { name: 'ask', ...more }, { capabilities: { elicitation: {} } })

test.each([
  ['at once', 1, 1000],
  ['in ten rounds', 10, 100],
])('a server that asks 1,000 times, %s, is answered 1,000 times in one call', async (_name, rounds, most) => {
  await inCell(M, L, { capabilities: { elicitation: {} } }, async ({ client, server }) => {
    server.tools.set('ask', async tool => {
      const heard: unknown[] = []
      for (let round = 0; round < rounds; round++) {
        const questions = Array.from({ length: most }, (_, n) => ({ ...FORM, message: String(round * most + n) }))
        const answers = await Promise.all(questions.map(question => tool.ask('', 'elicitation/create', question)))
        heard.push(...answers.map(({ content }) => (content as { n: unknown }).n))
      }
      return { content: [{ type: 'text', text: JSON.stringify(heard) }] }
    })
    const { result, asked } = await client.call(
      'tools/call',
      { name: 'ask' },
      { answer: ({ params }) => ({ action: 'accept', content: { n: params.message } }) },
    )
    const numbers = Array.from({ length: rounds * most }, (_, n) => String(n))
    expect(JSON.parse((result?.content as { text: string }[] | undefined)?.[0]?.text ?? '')).toEqual(numbers)
    expect(asked.map(({ params }) => params.message)).toEqual(numbers)
    expect(new Set(asked.map(({ key }) => key)).size).toBe(rounds * most)
    expect(server.of('tools/call')).toHaveLength(1)
    expect(responsesOf(server)).toHaveLength(rounds * most)
  })
})

test('a server that asks again and again is answered again and again, in one call', async () => {
  await inCell(M, L, { capabilities: { elicitation: {} } }, async ({ client, server }) => {
    server.tools.set('ask', async tool => {
      for (let n = 0; n < 20; n++) await tool.ask('', 'elicitation/create', FORM)
      return { content: [] }
    })
    const { result, asked } = await client.call('tools/call', { name: 'ask' }, { answer: () => accept })
    expect([result?.resultType, asked.length, server.of('tools/call').length]).toEqual(['complete', 20, 1])
  })
})

test('a question after the result is refused in the end and harms nobody', async () => {
  await inCell(M, L, { capabilities: { elicitation: {} } }, async ({ client, server }) => {
    const legacy = server as Awaited<ReturnType<typeof sessionServer>>
    server.tools.set('ask', () => ({ content: [] }))
    expect((await client.call('tools/call', { name: 'ask' })).result?.resultType).toBe('complete')
    const late = legacy.askOutside('elicitation/create', FORM)
    // Whether it still finds the next call of the session or comes too late for it, everybody gets an answer.
    expect((await client.call('tools/call', { name: 'ask' }, { answer: () => accept })).result?.resultType).toBe(
      'complete',
    )
    expect((await client.call('tools/call', { name: 'ask' }, { answer: () => accept })).result?.resultType).toBe(
      'complete',
    )
    expect((await late).result?.action).toMatch(/accept|cancel/)
  })
})

const responsesOf = (server: MatrixServer) =>
  server.arrivals.filter(({ message }) => message.method === undefined && message.id !== undefined)

/** A legacy server whose stream the test writes by hand. */
const byHand = async (write: (say: (message: object) => void, id: unknown, server: ScriptedServer) => void) => {
  const server: ScriptedServer = await scriptedServer((arrived, response) => {
    const { id, method } = arrived.body
    if (arrived.method !== 'POST') return void response.writeHead(405).end()
    if (method === 'server/discover')
      return sendJson(response, { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no' } }, 400)
    if (method === 'initialize')
      return sendJson(
        response,
        {
          jsonrpc: '2.0',
          id,
          result: {
            protocolVersion: '2025-11-25',
            capabilities: { tools: {} },
            serverInfo: { name: 's', version: '1' },
          },
        },
        200,
        { 'mcp-session-id': 's' },
      )
    if (id === undefined || !method) return void response.writeHead(202).end()
    if (method === 'tools/list') return sendJson(response, { jsonrpc: '2.0', id, result: { tools: [] } })
    if (method === 'ping') return sendJson(response, { jsonrpc: '2.0', id, result: {} })
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    write(message => void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`), id, server)
  })
  const gateway = await startTestGateway(server.url)
  return { server, url: gateway.url, close: () => Promise.all([gateway.close(), server.close()]) }
}

test('a question whose id is open already is not asked twice', async () => {
  const { url, server, close } = await byHand((say, id, server) => {
    for (const message of ['one', 'two']) say({ id: 9, method: 'elicitation/create', params: { ...FORM, message } })
    void server
      .until(() => server.arrivals.some(({ body }) => body.id === 9 && !body.method))
      .then(() => say({ id, result: { content: [] } }))
  })
  const first = (await send(url, call(1))).json.result
  expect(Object.keys(first?.inputRequests as object)).toHaveLength(1)
  const second = (await send(url, call(2, { requestState: first?.requestState, inputResponses: { q1: accept } }))).json
    .result
  expect(second?.resultType).toBe('complete')
  expect(server.arrivals.filter(({ body }) => body.id === 9)).toHaveLength(1)
  await close()
})

test('H7: a question the server withdraws is void: its answer goes nowhere, the retry gets the result', async () => {
  let say: (message: object) => void = () => {}
  let id: unknown
  const { url, server, close } = await byHand((saying, called) => {
    say = saying
    id = called
    say({ id: 9, method: 'elicitation/create', params: FORM })
  })
  const first = (await send(url, call(1))).json.result
  say({ method: 'notifications/cancelled', params: { requestId: 9 } })
  say({ id: 10, method: 'ping' }) // whose answer shows that what was said before has been read
  await server.until(() => server.arrivals.some(({ body }) => body.id === 10))
  say({ id, result: { content: [{ type: 'text', text: 'without you' }] } })
  const second = (await send(url, call(2, { requestState: first?.requestState, inputResponses: { q1: accept } }))).json
    .result
  expect(second).toMatchObject({ resultType: 'complete', content: [{ text: 'without you' }] })
  expect(server.arrivals.filter(({ body }) => body.id === 9)).toEqual([])
  await close()
})

test('H6: a client that leaves during its retry cancels the call, and its answers cannot be sent again', async () => {
  await inCell(M, serverOf('2025-11-25'), {}, async ({ server, url }) => {
    server.tools.set('ask', async tool => {
      await tool.ask('n', 'elicitation/create', FORM)
      return new Promise(() => {})
    })
    const first = (await send(url, call(1))).json.result
    const { headers, body } = call(2, { requestState: first?.requestState, inputResponses: { q1: accept } })
    const leave = new AbortController()
    const retry = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }
    const left = fetch(url, { ...retry, body: JSON.stringify(body), signal: leave.signal }).catch(() => 'left')
    await expect.poll(() => responsesOf(server)).toHaveLength(1)
    leave.abort()
    const { message } = await server.arrived('notifications/cancelled')
    expect(message.params?.requestId).toBe(server.of('tools/call')[0]?.message.id)
    expect(await left).toBe('left')
    expect((await send(url, { headers, body })).json.error).toMatchObject({ code: -32602 })
    expect(server.of('tools/call')).toHaveLength(1)
    expect(responsesOf(server)).toHaveLength(1)
  })
})

test('F12: a process that dies while a call is parked: the retry is told what happened, the next call works', async () => {
  await inCell(M, serverOf('2025-06-18', 'stdio'), {}, async ({ server, url }) => {
    server.tools.set('ask', async tool => {
      await tool.ask('n', 'elicitation/create', FORM)
      return { content: [] }
    })
    const first = (await send(url, call(1))).json.result
    for (const socket of (server as Awaited<ReturnType<typeof pipeServer>>).processes) socket.destroy()
    const more = { requestState: first?.requestState, inputResponses: { q1: accept } }
    expect((await send(url, call(2, more))).json.error).toMatchObject({
      code: -32603,
      data: { reason: 'upstream_lost', upstream: 'server' },
    })
    expect(responsesOf(server)).toEqual([])
    const next = (await send(url, call(3))).json.result
    const answered = { requestState: next?.requestState, inputResponses: { q1: accept } }
    expect((await send(url, call(4, answered))).json.result?.resultType).toBe('complete')
    expect(server.of('tools/call').map(({ process }) => process)).toEqual([expect.any(Number), expect.any(Number)])
    expect(new Set(server.of('tools/call').map(({ process }) => process)).size).toBe(2)
  })
})

test('F12: a remote server that dies while a call is parked: the retry is told, the next call works', async () => {
  let isFirst = true
  const { url, server, close } = await byHand((say, id) => {
    if (isFirst) say({ id: 9, method: 'elicitation/create', params: FORM })
    else say({ id, result: { content: [] } })
  })
  const first = (await send(url, call(1))).json.result
  isFirst = false
  for (const socket of server.sockets) socket.destroy()
  await expect
    .poll(
      async () =>
        (await send(url, call(2, { requestState: first?.requestState, inputResponses: { q1: accept } }))).json.error
          ?.code,
    )
    .toBe(-32603)
  expect((await send(url, call(3))).json.result?.resultType).toBe('complete')
  await close()
})
