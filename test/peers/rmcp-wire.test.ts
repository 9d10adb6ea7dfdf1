/** The requests of rmcp (Rust) as recorded from it: its build takes minutes, so `npm run peers` has the real one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { modern, openStream, type RawStream, send } from '../support/raw.ts'
import { type ClientWorkspace, type Gateway, startClientGateway } from './gateway.ts'

const WORKSPACES: readonly ClientWorkspace[] = ['legacy', 'modern'] // of one server each, with its names
const ACCEPT = { accept: 'text/event-stream, application/json' }
const FORM = { username: 'Ada', email: 'ada@example.com' }
const CAPABILITIES = { elicitation: {}, roots: {}, sampling: {} }

let gateway: Gateway
beforeAll(async () => {
  gateway = await startClientGateway()
}, 60_000)
afterAll(() => gateway.stop(), 30_000)

/** A session as rmcp opens it: id 0, and no revision in the headers before the server has named one. */
const openSession = async (url: string, protocolVersion: string) => {
  const params = { capabilities: CAPABILITIES, clientInfo: { name: 'rmcp', version: '1.0.0' }, protocolVersion }
  const opened = await send(url, {
    headers: ACCEPT,
    body: { jsonrpc: '2.0', id: 0, method: 'initialize', params },
  })
  const headers = {
    ...ACCEPT,
    'mcp-session-id': String(opened.headers['mcp-session-id']),
    'mcp-protocol-version': protocolVersion,
  }
  let id = 0
  await send(url, { headers, body: { jsonrpc: '2.0', method: 'notifications/initialized' } })
  return {
    headers,
    post: (body: object) => send(url, { headers, body: { jsonrpc: '2.0', ...body } }),
    /** rmcp puts a progress token into every request. */
    call: (name: string, given: object): Promise<RawStream> => {
      id += 1
      const params = { _meta: { progressToken: id - 1 }, arguments: given, name }
      return openStream(url, { headers, body: { jsonrpc: '2.0', id, method: 'tools/call', params } })
    },
    lastId: () => id,
  }
}

/** Answers the questions of a call until its result comes. */
const finish = async (
  session: Awaited<ReturnType<typeof openSession>>,
  stream: RawStream,
): Promise<{ asked: (string | undefined)[]; text: string }> => {
  const asked: (string | undefined)[] = []
  for (let event = await stream.next(); event; event = await stream.next()) {
    const { id, method, result } = event.json
    if (result || id === session.lastId()) return { asked, text: JSON.stringify(result ?? event.json) }
    if (method !== 'elicitation/create') continue
    asked.push(method)
    await session.post({ id, result: { action: 'accept', content: FORM } })
  }
  return { asked, text: 'the stream ended without a result' }
}

describe.each(WORKSPACES)('rmcp with %s servers', workspace => {
  test.each(['2025-03-26', '2025-06-18', '2025-11-25'])('of %s is asked what it declared', async revision => {
    const session = await openSession(gateway.url(workspace), revision)
    const stream = await session.call('test_elicitation', { message: 'Who are you?' })
    const { asked, text } = await finish(session, stream)
    expect(asked).toEqual(['elicitation/create'])
    expect(text).toContain('accept')
    expect(text).toContain('Ada')
  })

  test('calls before it opens its stream, and its session ends with DELETE', async () => {
    const url = gateway.url(workspace)
    const session = await openSession(url, '2025-11-25')
    expect((await session.call('example-echo', { message: 'hi' })).status).toBe(200)
    const listening = await openStream(url, { method: 'GET', headers: session.headers })
    expect(listening.status).toBe(200)
    const { 'mcp-session-id': id, 'mcp-protocol-version': revision } = session.headers
    const headers = { accept: '*/*', 'mcp-session-id': id, 'mcp-protocol-version': revision }
    expect((await send(url, { method: 'DELETE', headers })).status).toBeLessThan(300)
    expect(await listening.next()).toBeUndefined()
    expect((await session.post({ id: 9, method: 'ping' })).status).toBe(404)
  })

  test('cancels a call with a notification that carries no reason', async () => {
    const session = await openSession(gateway.url(workspace), '2025-11-25')
    const token = { token: `rmcp-${workspace}` }
    const waiting = await session.call('wait_for_cancel', token)
    expect((await waiting.next())?.json.method).toBe('notifications/progress') // the server has the call
    await session.post({ method: 'notifications/cancelled', params: { requestId: session.lastId() } })
    const params = { name: 'was_cancelled', arguments: token, _meta: { progressToken: 99 } }
    const body = { jsonrpc: '2.0', id: 99, method: 'tools/call', params }
    const result = await lastResult(gateway.url(workspace), session.headers, body)
    expect(result.content).toEqual([{ type: 'text', text: 'cancelled' }])
    waiting.close()
  })

  test('of 2026-07-28 answers in a second request', async () => {
    const url = gateway.url(workspace)
    const params = { arguments: { message: 'Who are you?' }, name: 'test_elicitation' }
    const ask = (id: number, more: object) => {
      const { headers, body } = modern(id, 'tools/call', { ...params, ...more }, { capabilities: CAPABILITIES })
      return lastResult(url, { ...headers, ...ACCEPT }, body)
    }
    const first = await ask(1, {})
    expect(first).toMatchObject({ resultType: 'input_required' })
    const [key] = Object.keys(first.inputRequests as object)
    const inputResponses = { [String(key)]: { action: 'accept', content: FORM } }
    const second = await ask(2, { inputResponses, requestState: first.requestState })
    expect(JSON.stringify(second)).toContain('Ada')
  })
})

test('rmcp of 2026-07-28 receives the elicitationId that the server sent', async () => {
  const capabilities = { elicitation: { form: {}, url: {} } }
  const { headers, body } = modern(1, 'tools/call', { name: 'ask_to_visit', arguments: {} }, { capabilities })
  const result = await lastResult(gateway.url('legacy'), { ...headers, ...ACCEPT }, body)
  const [question] = Object.values(result.inputRequests as Record<string, unknown>)
  expect(question).toMatchObject({ params: { mode: 'url', elicitationId: 'visit-1' } })
})

/** The result of a call, whether it is answered with one JSON body or with a stream. */
const lastResult = async (
  url: string,
  headers: Record<string, string>,
  body: object,
): Promise<Record<string, unknown>> => {
  const { text } = await send(url, { headers, body })
  const messages = text.startsWith('{') ? [text] : [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => data ?? '')
  const { result, error } = JSON.parse(messages.at(-1) ?? '{}')
  return result ?? { error }
}
