import { expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { textOf } from '../support/client.ts'
import { connectV1 } from '../support/client-v1.ts'
import { startTestGateway } from '../support/gateway.ts'
import { openSession, openStream, send } from '../support/raw.ts'
import { recordHttp } from '../support/servers/recorded-http.ts'
import { start as startV2 } from '../support/servers/sdk-v2-server.ts'
import { clientOf, everyCell, inCell, SERVERS, serverOf } from './cells.ts'

const SAMPLE = { messages: [{ role: 'user', content: { type: 'text', text: 'Capital?' } }], maxTokens: 10 }
const REPLY = {
  role: 'assistant',
  content: { type: 'text', text: 'Paris' },
  model: 'm',
  stopReason: 'endTurn',
  acme: 1,
}
const FORM = { mode: 'form', message: 'Name?', requestedSchema: { type: 'object', properties: {} } }
const accept = { action: 'accept', content: { name: 'Ann' } }

everyCell(
  'B3: a legacy server samples in the midst of a call; the modern client’s reply is posted as it was given',
  async ({ client, server }) => {
    server.tools.set('sample', async call => ({
      content: [{ type: 'text', text: JSON.stringify(await call.ask('s', 'sampling/createMessage', SAMPLE)) }],
    }))
    const { asked, result } = await client.call('tools/call', { name: 'sample' }, { answer: () => REPLY })
    expect(asked).toEqual([{ key: expect.any(String), method: 'sampling/createMessage', params: SAMPLE }])
    expect(result).toMatchObject({ resultType: 'complete', content: [{ text: JSON.stringify(REPLY) }] })
    const rounds = client.received.filter(({ result }) => result?.resultType === 'input_required')
    expect(rounds.map(({ result }) => result)).toEqual([
      {
        resultType: 'input_required',
        inputRequests: { [asked[0]?.key ?? '']: { method: 'sampling/createMessage', params: SAMPLE } },
        requestState: expect.stringMatching(/^gw2\./),
      },
    ])
    expect(server.of('tools/call')).toHaveLength(1)
    const posted = server.arrivals.filter(({ message }) => message.method === undefined && message.id !== undefined)
    expect(posted.map(({ message }) => message)).toEqual([{ jsonrpc: '2.0', id: expect.anything(), result: REPLY }])
  },
  {
    capabilities: { sampling: {} },
    only: (client, server) => client === '2026-07-28' && server !== '2026-07-28',
  },
)

test('B11: a modern server’s round is a request on the stream of a 2025-11-25 call, and a retry at the server', async () => {
  await inCell(clientOf('2025-11-25'), serverOf('2026-07-28'), {}, async ({ server, url }) => {
    server.tools.set('ask', async call => ({
      content: [{ type: 'text', text: JSON.stringify(await call.ask('n', 'elicitation/create', FORM)) }],
    }))
    const { headers } = await openSession(url, '2025-11-25', { elicitation: {} })
    const body = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'ask', arguments: { a: 1 } } }
    const stream = await openStream(url, { headers, body })
    expect(stream.headers['content-type']).toContain('text/event-stream')
    const question = (await stream.next())?.json
    expect(question).toEqual({
      jsonrpc: '2.0',
      id: expect.stringMatching(/^gw-\d+$/),
      method: 'elicitation/create',
      params: FORM,
    })
    const answer = await send(url, { headers, body: { jsonrpc: '2.0', id: question?.id, result: accept } })
    expect([answer.status, answer.text]).toEqual([202, ''])
    expect((await stream.all()).map(({ json }) => json)).toEqual([
      { jsonrpc: '2.0', id: 5, result: { content: [{ type: 'text', text: JSON.stringify(accept) }] } },
    ])

    const [first, second, ...more] = server.of('tools/call').map(({ message }) => message)
    expect(more).toEqual([])
    expect(first?.id).not.toBe(second?.id)
    expect(first?.params).not.toHaveProperty('requestState')
    expect(first?.params).not.toHaveProperty('inputResponses')
    expect(second?.params).toEqual({ ...first?.params, requestState: 'st-1 é', inputResponses: { n: accept } })
    expect(second?.params?._meta).toMatchObject({ [META.protocolVersion]: '2026-07-28' })
  })
})

test('B11: the retry carries the answers of its own round and no others', async () => {
  const options = { capabilities: { elicitation: {} } }
  await inCell(clientOf('2025-11-25'), serverOf('2026-07-28'), options, async ({ client, server }) => {
    server.tools.set('ask', async call => {
      const round = /^st-(\d)/.exec(String(call.params.requestState))?.[1] ?? '0'
      if (round !== '2') await call.ask(`round ${round}`, 'elicitation/create', FORM)
      return { content: [] }
    })
    await client.call('tools/call', { name: 'ask' }, { answer: () => accept })
    const calls = server.of('tools/call').map(({ message }) => message.params)
    expect(calls.map(params => [params?.requestState, params?.inputResponses])).toEqual([
      [undefined, undefined],
      ['st-1 é', { 'round 0': accept }],
      ['st-2 é', { 'round 1': accept }],
    ])
  })
})

test('B11: SDK v1 completes a tool of an SDK v2 server that refuses everything legacy', async () => {
  const server = await startV2()
  const recorded = await recordHttp(server.url)
  const gateway = await startTestGateway((recorded.entry as { url: string }).url)
  const client = await connectV1({ url: gateway.url, capabilities: { elicitation: {} } })
  expect(textOf(await client.call('test_input_required_result_elicitation'))).toContain('Ada')
  expect(client.asked.map(({ method }) => method)).toEqual(['elicitation/create'])
  const calls = recorded.sent('tools/call')
  expect(calls).toHaveLength(2)
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
  expect(calls[1]?.params).toMatchObject({ requestState: expect.any(String), inputResponses: expect.anything() })
  expect(recorded.sent('initialize')).toEqual([])
  await client.close()
  await gateway.close()
  await recorded.close()
  await server.close()
})

const CHOICES = {
  mode: 'form',
  message: 'Which?',
  requestedSchema: {
    type: 'object',
    properties: {
      size: {
        type: 'string',
        oneOf: [
          { const: 's', title: 'Small' },
          { const: 'l', title: 'Large' },
        ],
      },
      extras: {
        type: 'array',
        title: 'Extras',
        items: {
          anyOf: [
            { const: 'm', title: 'Milk' },
            { const: 'c', title: 'Cream' },
            { const: 'h', title: 'Honey' },
          ],
        },
      },
    },
    required: ['size'],
  },
}

test.each(
  SERVERS.filter(({ revision }) => revision === '2026-07-28').flatMap(server =>
    ['streamable', 'http-sse'].map(dialect => ({ name: `${dialect} → ${server.name}`, dialect, server })),
  ),
)(
  'B12: titled and multiple choices of a modern server in the words of 2025-06-18 ($name)',
  async ({ dialect, server: kind }) => {
    const options = { capabilities: { elicitation: {} } }
    await inCell(clientOf('2025-06-18', dialect), kind, options, async ({ client, server }) => {
      server.tools.set('ask', async call => {
        await call.ask('c', 'elicitation/create', CHOICES)
        return { content: [] }
      })
      const content = { size: 'l', 'extras — Milk': true, 'extras — Cream': false, 'extras — Honey': true }
      const { asked, error } = await client.call(
        'tools/call',
        { name: 'ask' },
        { answer: () => ({ action: 'accept', content }) },
      )
      expect(error).toBeUndefined()
      expect(asked.map(({ params }) => params)).toEqual([
        {
          mode: 'form',
          message: 'Which?',
          requestedSchema: {
            type: 'object',
            properties: {
              size: { type: 'string', enum: ['s', 'l'], enumNames: ['Small', 'Large'] },
              'extras — Milk': { type: 'boolean', title: 'Extras — Milk' },
              'extras — Cream': { type: 'boolean', title: 'Extras — Cream' },
              'extras — Honey': { type: 'boolean', title: 'Extras — Honey' },
            },
            required: ['size'],
          },
        },
      ])
      expect(server.of('tools/call')[1]?.message.params?.inputResponses).toEqual({
        c: { action: 'accept', content: { size: 'l', extras: ['m', 'h'] } },
      })
    })
  },
)
