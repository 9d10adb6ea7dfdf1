import { expect, test } from 'vitest'
import { type ScriptedServer, scriptedServer, sendJson } from '../../src/upstreams/scripted-server.fixture.ts'
import { startTestGateway } from '../support/gateway.ts'
import { modern, send } from '../support/raw.ts'
import { clientOf, inCell, serverOf } from './cells.ts'
import type { sessionServer } from './session-server.ts'

const M = clientOf('2026-07-28')
const L = serverOf('2025-11-25')
const FORM = { message: 'Name?', requestedSchema: { type: 'object', properties: {} } }
const accept = { action: 'accept', content: {} }
const call = (id: number, more: Record<string, unknown> = {}) =>
  modern(id, 'tools/call', { name: 'ask', ...more }, { capabilities: { elicitation: {} } })

test('a server that asks a hundred things at once gets a hundred answers in one round', async () => {
  await inCell(M, L, { capabilities: { elicitation: {} } }, async ({ client, server }) => {
    server.tools.set('ask', async tool => {
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, n) => tool.ask('', 'elicitation/create', { ...FORM, message: String(n) })),
      )
      return { content: [{ type: 'text', text: String(answers.filter(({ content }) => content).length) }] }
    })
    const { result, asked } = await client.call(
      'tools/call',
      { name: 'ask' },
      { answer: ({ params }) => ({ action: 'accept', content: { n: params.message } }) },
    )
    expect(result?.content).toEqual([{ type: 'text', text: '100' }])
    expect(new Set(asked.map(({ key }) => key)).size).toBe(100)
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

test('a question the server withdraws is void: its answer goes nowhere, the retry gets the result', async () => {
  const { url, server, close } = await byHand((say, id) => {
    say({ id: 9, method: 'elicitation/create', params: FORM })
    setTimeout(() => {
      say({ method: 'notifications/cancelled', params: { requestId: 9 } })
      say({ id, result: { content: [{ type: 'text', text: 'without you' }] } })
    }, 150)
  })
  const first = (await send(url, call(1))).json.result
  await new Promise(resolve => setTimeout(resolve, 300))
  const second = (await send(url, call(2, { requestState: first?.requestState, inputResponses: { q1: accept } }))).json
    .result
  expect(second).toMatchObject({ resultType: 'complete', content: [{ text: 'without you' }] })
  expect(server.arrivals.filter(({ body }) => body.id === 9)).toEqual([])
  await close()
})

test('F12: a server that dies while a call is parked: the retry is told, the next call works', async () => {
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
