import { afterEach, expect, test } from 'vitest'
import { openChannel } from '../../../test/support/channel.ts'
import {
  answerEmpty,
  type Front,
  rpcInitialize,
  rpcNotification,
  rpcRequest,
  startFront,
} from '../../../test/support/front.ts'
import { openSession, send } from '../../../test/support/raw.ts'
import { NEVER } from '../../protocol/cancellation.ts'
import type { Answer } from '../../protocol/exchange.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
const start = async (...args: Parameters<typeof startFront>): Promise<void> => {
  front = await startFront(...args)
}

afterEach(() => front.close())

test.each([
  ['/messages/?session_id=', 202, 'Accepted', 'message'],
  ['/messages?session_id=', 202, 'Accepted', 'message'],
  ['/messages?sessionId=', 202, 'Accepted', 'message'],
  ['/message?session_id=', 200, '{"jsonrpc":"2.0","id":"a","result":{"content":[]}}', 'message'],
  ['/message?sessionId=', 200, '{"jsonrpc":"2.0","id":"a","result":{"content":[]}}', 'message'],
])('a request posted to %s… gets %i "%s", and its response is an event %s', async (path, status, text, event) => {
  await start({ 'tools/call': answerEmpty })
  const channel = await openChannel(`${front.origin}/sse`)
  const reply = await send(`${front.origin}${path}${channel.id}`, { body: rpcRequest('a') })
  expect([reply.status, reply.text]).toEqual([status, text])
  expect(await channel.next()).toEqual({ event, data: '{"jsonrpc":"2.0","id":"a","result":{"content":[]}}' })
})

test('the response to a request posted to /mcp with the channel’s session id is an event `response`', async () => {
  await start({ 'tools/call': answerEmpty })
  const channel = await openChannel(`${front.origin}/sse`)
  const reply = await send(front.url, { headers: { 'mcp-session-id': channel.id }, body: rpcRequest('a') })
  expect([reply.status, reply.text]).toEqual([202, ''])
  expect(await channel.next()).toEqual({
    event: 'response',
    data: '{"jsonrpc":"2.0","id":"a","result":{"content":[]}}',
  })
})

test.each([
  ['/messages/?session_id=', 'Accepted'],
  ['/message?session_id=', ''],
])('a notification posted to %s… gets 202 "%s"', async (path, text) => {
  await start()
  const channel = await openChannel(`${front.origin}/sse`)
  const reply = await send(`${front.origin}${path}${channel.id}`, { body: rpcNotification('acme/note') })
  expect([reply.status, reply.text]).toEqual([202, text])
  expect((await front.whenSeen('acme/note')).caller.session).toBe(channel.id)
})

test.each([
  ['2024-11-05', '2024-11-05'],
  ['2025-03-26', '2025-03-26'],
  ['2025-06-18', '2025-06-18'],
  ['2025-11-25', '2025-11-25'],
  ['2026-07-28', '2025-11-25'],
])('initialize with %s on a channel gets %s', async (wanted, given) => {
  await start({ 'tools/call': answerEmpty })
  const channel = await openChannel(`${front.origin}/sse`)
  expect((await channel.post(rpcInitialize(wanted, { capabilities: { roots: {} } }))).status).toBe(202)
  expect((await channel.message()).result).toEqual({
    protocolVersion: given,
    capabilities: { tools: {} },
    serverInfo: { name: 'far', version: '2' },
    instructions: 'Be kind',
  })
  await channel.post(rpcNotification('notifications/initialized'))
  expect((await front.whenSeen('subscriptions/listen')).caller.revision).toBe(given)
  await channel.post(rpcRequest(1))
  await channel.message()
  const { caller } = front.last('tools/call')
  expect([caller.revision, caller.capabilities.toValue(), caller.session]).toEqual([given, { roots: {} }, channel.id])
})

test('a second initialize is rejected at every endpoint', async () => {
  await start()
  const channel = await openChannel(`${front.origin}/mcp`)
  const headers = { 'mcp-session-id': channel.id }
  expect((await send(front.url, { headers, body: rpcInitialize('2024-11-05') })).status).toBe(202)
  expect((await channel.message('response')).result?.protocolVersion).toBe('2024-11-05')
  for (const again of [
    send(front.url, { headers, body: rpcInitialize('2024-11-05') }),
    channel.post(rpcInitialize('2024-11-05')),
  ]) {
    const reply = await again
    expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([400, -32600, 0])
  }
})

test('an invalid or failed initialize gets an error on the channel, and may be sent again', async () => {
  let isUp = false
  await start({
    'server/discover': exchange =>
      exchange.sink(
        isUp
          ? { kind: 'result', result: Json.of({ capabilities: {} }) }
          : { kind: 'failure', error: { code: -32603, message: 'down' } },
      ),
  })
  const channel = await openChannel(`${front.origin}/sse`)
  await channel.post(rpcInitialize(5))
  expect((await channel.message()).error?.code).toBe(-32602)
  await channel.post(rpcInitialize('2024-11-05'))
  expect((await channel.message()).error?.message).toBe('down')
  isUp = true
  await channel.post(rpcInitialize('2024-11-05'))
  expect((await channel.message()).result?.protocolVersion).toBe('2024-11-05')
})

test('requests before initialize are served as 2024-11-05 without capabilities; initialize replaces the caller', async () => {
  await start({ 'tools/call': answerEmpty })
  const channel = await openChannel(`${front.origin}/sse`)
  await channel.post(rpcRequest(1))
  await channel.message()
  const early = front.last('tools/call').caller
  expect([early.revision, early.capabilities.toValue()]).toEqual(['2024-11-05', {}])
  const standing = front.last('subscriptions/listen')
  await channel.post(rpcInitialize('2025-06-18', { capabilities: { sampling: {} } }))
  await channel.message()
  expect(standing.signal.reason).toEqual({ kind: 'gone' })
  await channel.post(rpcNotification('notifications/initialized'))
  const { caller } = await front.whenSeen('subscriptions/listen', 2)
  expect([caller.revision, caller.capabilities.toValue()]).toEqual(['2025-06-18', { sampling: {} }])
  expect(caller.session).not.toBe(early.session) // a server shapes a session by its client's capabilities
})

test('a client that reconnects with its revision is served without a handshake, and gets list changes', async () => {
  await start({ 'tools/call': answerEmpty })
  const channel = await openChannel(`${front.origin}/mcp`, { 'mcp-protocol-version': '2025-06-18' })
  expect((await front.whenSeen('subscriptions/listen')).caller.revision).toBe('2025-06-18')
  void front.last('subscriptions/listen').sink({
    kind: 'notice',
    method: 'notifications/tools/list_changed',
    params: Json.empty,
  })
  expect((await channel.message()).method).toBe('notifications/tools/list_changed')
})

test.each([
  ['message', 'only /messages', ['messages']],
  ['message', '/mcp and /messages', ['mcp', 'messages']],
  ['notification', 'only /mcp', ['mcp']],
])('messages outside a call are events `%s` if the client used %s', async (event, _name, endpoints) => {
  await start({ 'tools/call': answerEmpty })
  const channel = await openChannel(`${front.origin}/mcp`)
  for (const [id, endpoint] of endpoints.entries()) {
    if (endpoint === 'messages') await channel.post(rpcRequest(id))
    else await send(front.url, { headers: { 'mcp-session-id': channel.id }, body: rpcRequest(id) })
    await channel.message(endpoint === 'mcp' ? 'response' : 'message')
  }
  void front.last('subscriptions/listen').sink({
    kind: 'notice',
    method: 'notifications/tools/list_changed',
    params: Json.empty,
  })
  expect((await channel.next())?.event).toBe(event)
})

test('progress and questions of a call are sent on the channel, answers by POST', async () => {
  const answers: Answer[] = []
  await start({
    'tools/call': exchange => {
      void exchange.sink({
        kind: 'notice',
        method: 'notifications/progress',
        params: Json.of({ progressToken: 1, progress: 1 }),
      })
      void exchange.sink({
        kind: 'question',
        method: 'sampling/createMessage',
        params: Json.of({ maxTokens: 5 }),
        withdrawn: NEVER,
        answer: reply => {
          answers.push(reply)
          void answerEmpty(exchange)
        },
      })
    },
  })
  const channel = await openChannel(`${front.origin}/sse`)
  await channel.post(rpcInitialize('2025-06-18', { capabilities: { sampling: {} } }))
  await channel.message()
  await channel.post(rpcRequest(7))
  expect((await channel.message()).method).toBe('notifications/progress')
  const asked = await channel.message()
  expect(asked).toMatchObject({ id: 'gw-1', method: 'sampling/createMessage', params: { maxTokens: 5 } })
  expect((await channel.post({ jsonrpc: '2.0', id: 'gw-1', result: { model: 'm' } })).status).toBe(202)
  expect((await channel.message()).id).toBe(7)
  expect(answers.map(({ kind }) => kind)).toEqual(['result'])
})

test('a closed channel cancels its calls, and its id is unknown', async () => {
  await start({ 'tools/call': () => {} })
  const channel = await openChannel(`${front.origin}/sse`)
  await channel.post(rpcRequest(1))
  const call = await front.whenSeen('tools/call')
  channel.close()
  await expect.poll(() => call.signal.reason).toEqual({ kind: 'gone' })
  expect(front.last('subscriptions/listen').signal.reason).toEqual({ kind: 'gone' })
  expect([front.channels.size, front.context.activeCalls.size]).toEqual([0, 0])
  for (const path of ['messages/', 'message']) {
    const reply = await send(`${front.origin}/${path}?session_id=${channel.id}`, { body: rpcRequest(2) })
    expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([404, -32600, 2])
  }
  expect((await send(front.url, { headers: { 'mcp-session-id': channel.id }, body: rpcRequest(2) })).status).toBe(404)
  expect(front.seen.filter(({ method }) => method === 'tools/call')).toHaveLength(1)
})

test('a POST that waits for a response gets an error when its channel closes', async () => {
  await start({ 'tools/call': () => {} })
  const channel = await openChannel(`${front.origin}/sse`)
  const waiting = send(`${front.origin}/message?session_id=${channel.id}`, { body: rpcRequest(1) })
  await front.whenSeen('tools/call')
  channel.close()
  expect((await waiting).json).toMatchObject({ id: 1, error: { code: -32603 } })
})

test('a POST to /message that disconnects does not cancel its call: the response is sent on the channel', async () => {
  await start({ 'tools/call': () => {} })
  const channel = await openChannel(`${front.origin}/sse`)
  const leaving = new AbortController()
  const left = fetch(`${front.origin}/message?session_id=${channel.id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rpcRequest(1)),
    signal: leaving.signal,
  }).catch(() => 'left')
  const call = await front.whenSeen('tools/call')
  leaving.abort()
  await left
  expect(call.signal.reason).toBeUndefined()
  void answerEmpty(call)
  expect((await channel.message()).id).toBe(1)
})

test('an unknown id is not found; nor is that of another principal, which is logged without the id', async () => {
  const lines: [object, string][] = []
  const log = { ...SILENT, warn: (fields: object, message: string) => lines.push([fields, message]) }
  await start({ 'tools/call': answerEmpty }, { identify: header => header ?? 'anonymous', log })
  const channel = await openChannel(`${front.origin}/sse`, { authorization: 'ada' })
  const unknown = await send(`${front.origin}/messages/?session_id=unknown`, { body: rpcRequest(1) })
  expect([unknown.status, unknown.json.error?.code, unknown.json.id, lines.length]).toEqual([404, -32600, 1, 0])
  const mallory = { authorization: 'mallory' }
  const byMessages = await send(`${front.origin}${channel.endpoint}`, { headers: mallory, body: rpcRequest(1) })
  const byMcp = await send(front.url, { headers: { ...mallory, 'mcp-session-id': channel.id }, body: rpcRequest(1) })
  const byDelete = await send(front.url, { method: 'DELETE', headers: { ...mallory, 'mcp-session-id': channel.id } })
  expect([byMessages.status, byMcp.status, byDelete.status]).toEqual([404, 404, 404])
  expect(byMessages.text).toBe(unknown.text)
  expect(lines).toHaveLength(3)
  expect(lines[0]).toEqual([
    { security: true, principal: 'mallory', owner: 'ada', workspace: 'default' },
    'session id of another principal rejected',
  ])
  expect(JSON.stringify(lines)).not.toContain(channel.id)
  await channel.post(rpcRequest(2))
  expect((await channel.message()).id).toBe(2)
})

test('the same line is logged for a Streamable HTTP session', async () => {
  const lines: object[] = []
  const log = { ...SILENT, warn: (fields: object) => lines.push(fields) }
  await start({}, { identify: header => header ?? 'anonymous', log })
  const { headers } = await openSession(front.url)
  await send(front.url, { headers: { ...headers, authorization: 'mallory' }, body: rpcRequest(1) })
  expect(lines).toEqual([{ security: true, principal: 'mallory', owner: 'anonymous', workspace: 'default' }])
})

test('a channel is not found in another workspace', async () => {
  await start({ 'tools/call': answerEmpty })
  const channel = await openChannel(`${front.origin}/sse`)
  const reply = await send(`${front.url}/other`, { headers: { 'mcp-session-id': channel.id }, body: rpcRequest(1) })
  expect(reply.status).toBe(404)
})

test('a request with an internal error fails alone', async () => {
  await start({
    'tools/list': () => {
      throw new Error('oops')
    },
    'tools/call': answerEmpty,
  })
  const channel = await openChannel(`${front.origin}/sse`)
  await channel.post(rpcRequest(1, 'tools/list'))
  expect((await channel.message()).error).toEqual({ code: -32603, message: 'Internal error' })
  await channel.post(rpcRequest(2))
  expect((await channel.message()).id).toBe(2)
})

test('the responses to a batch are sent one by one, at /message also as an array', async () => {
  await start({ 'tools/call': answerEmpty })
  const channel = await openChannel(`${front.origin}/sse`)
  const batch = [rpcRequest(1), rpcNotification('acme/note'), 5, rpcRequest(2, 'ping')]
  expect((await channel.post(batch)).text).toBe('Accepted')
  const ids = [await channel.message(), await channel.message(), await channel.message()].map(({ id }) => id)
  expect(ids.sort()).toEqual([1, 2, null])
  const direct = await send(`${front.origin}/message?session_id=${channel.id}`, { body: batch })
  expect(JSON.parse(direct.text).map(({ id }: { id: unknown }) => id)).toEqual([1, null, 2])
  await Promise.all([channel.message(), channel.message(), channel.message()])
  for (const bad of [
    [],
    [rpcRequest(1), rpcInitialize('2024-11-05')],
    [rpcRequest(1), { jsonrpc: '2.0', id: 5, result: {} }],
  ])
    expect((await channel.post(bad)).status).toBe(400)
})

test.each([
  ['no JSON', '{"jsonrpc":', 400, -32700, null],
  ['no message', '{"id":3}', 400, -32600, 3],
  ['an id that is null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600, null],
])('%s posted to a channel is rejected in the response to the POST', async (_name, body, status, code, id) => {
  await start()
  const channel = await openChannel(`${front.origin}/sse`)
  for (const path of ['messages/', 'message']) {
    const reply = await send(`${front.origin}/${path}?session_id=${channel.id}`, { body })
    expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([status, code, id])
  }
})

test('an id in use is rejected on the channel; a cancelled call gets no response', async () => {
  await start({ 'tools/call': () => {} })
  const channel = await openChannel(`${front.origin}/sse`)
  await channel.post(rpcRequest(1))
  await channel.post(rpcRequest(1))
  expect((await channel.message()).error?.code).toBe(-32600)
  await channel.post(rpcNotification('notifications/cancelled', { requestId: 1, reason: 'enough' }))
  expect(front.last('tools/call').signal.reason).toEqual({ kind: 'cancelled', text: 'enough' })
  const direct = send(`${front.origin}/message?session_id=${channel.id}`, { body: rpcRequest(2) })
  await front.whenSeen('tools/call', 2)
  await channel.post(rpcNotification('notifications/cancelled', { requestId: 2 }))
  expect([(await direct).status, (await direct).text]).toEqual([202, ''])
  await channel.post(rpcRequest(3, 'ping'))
  expect((await channel.message()).id).toBe(3)
})
