import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { capabilitiesOf, DEFAULT_SETTINGS } from '../../../src/console/mcp/client-settings.ts'
import type { McpClient, McpClientEvents, QuestionAnswer, ServerQuestion } from '../../../src/console/mcp/mcp-client.ts'
import { createMcpClient } from '../../../src/console/mcp/open-client.ts'
import { REVISIONS, type Revision } from '../../../src/protocol/revisions.ts'
import { startTestGateway } from '../../support/gateway.ts'

let gateway: Awaited<ReturnType<typeof startTestGateway>>
beforeAll(async () => {
  gateway = await startTestGateway()
})
afterAll(() => gateway.close())

const clients: McpClient[] = []
afterEach(() => {
  for (const client of clients.splice(0)) client.close()
})

const connect = (
  revision: Revision,
  heard: Partial<McpClientEvents> = {},
  token: () => Promise<string | undefined> = () => Promise.resolve(undefined),
  logLevel?: string,
): McpClient => {
  const endpoint = {
    url: `${gateway.url}/default`,
    version: '1',
    capabilities: capabilitiesOf(DEFAULT_SETTINGS),
    token,
    logLevel,
    onUnauthorized: () => {},
  }
  const events: McpClientEvents = {
    onListChanged: () => {},
    onResourceUpdated: () => {},
    onLog: () => {},
    onQuestion: () => Promise.resolve({ kind: 'refuse', message: 'outside of a call' }),
    onLive: () => {},
    ...heard,
  }
  const client = createMcpClient(revision, endpoint, events)
  clients.push(client)
  return client
}

const call = (name: string, args: object = {}) => ({ name, arguments: args })
const textOf = ({ result }: { readonly result: Readonly<Record<string, unknown>> }): unknown =>
  (result.content as { text: string }[])[0]?.text

const answer = ({ method, params }: ServerQuestion): Promise<QuestionAnswer> => {
  if (method === 'roots/list') return Promise.resolve({ kind: 'result', result: { roots: [{ uri: 'file:///r' }] } })
  if (method === 'sampling/createMessage')
    return Promise.resolve({
      kind: 'result',
      result: { role: 'assistant', model: 'm', content: { type: 'text', text: 'Hello,' } },
    })
  expect(params.message).toBe('What is your name?')
  return Promise.resolve({ kind: 'result', result: { action: 'accept', content: { name: 'Ann' } } })
}

describe.each(REVISIONS)('the client of the console as %s', revision => {
  test('learns about the server, lists and calls, with progress and log messages', async () => {
    const client = connect(revision)
    const about = await client.connect()
    expect(about.serverInfo).toMatchObject({ name: 'demo' })
    expect(about.instructions).toContain('example-ping')
    const { result } = await client.request('tools/list', {})
    expect((result.tools as unknown[]).length).toBeGreaterThan(20)
    const [onProgress, onLog, onWire] = [vi.fn(), vi.fn(), vi.fn()]
    const done = await client.request('tools/call', call('test_tool_with_progress'), { onProgress, onWire })
    expect(textOf(done)).toBe('Tool with progress executed successfully')
    expect(onProgress.mock.calls.at(-1)?.[0]).toMatchObject({ progress: 100, total: 100 })
    expect(onWire.mock.calls.length).toBeGreaterThan(2)
    await client.request('tools/call', call('test_tool_with_logging'), { onLog })
    expect(onLog.mock.calls.map(([{ data }]) => data)).toContain('Tool processing data')
  })

  test('answers all three kinds of questions', async () => {
    const name = 'test_input_required_result_multiple_inputs'
    const done = await connect(revision).request('tools/call', call(name), { onQuestion: answer })
    expect(textOf(done)).toBe('Hello, Ann has 1 roots')
  })

  test('a refused question ends the call with its reason', async () => {
    const onQuestion = () => Promise.resolve({ kind: 'refuse', message: 'Not today' } as const)
    const asked = connect(revision).request('tools/call', call('test_sampling', { prompt: 'x' }), { onQuestion })
    expect(await asked.then(textOf, String)).toContain('Not today')
  })

  test('cancels on the wire', async () => {
    const client = connect(revision)
    const abort = new AbortController()
    const lines: string[] = []
    const running = client.request('tools/call', call('test_elicitation', { message: 'x' }), {
      signal: abort.signal,
      onQuestion: () => {
        abort.abort()
        return new Promise(() => {})
      },
      onWire: ({ text, note }) => lines.push(note ?? text),
    })
    await expect(running).rejects.toMatchObject({ reason: 'cancelled' })
    expect(lines.at(-1)).toMatch(/notifications\/cancelled|stream was closed/)
    expect(textOf(await client.request('tools/call', call('example-ping')))).toBe('pong')
  })

  test('hears of a watched resource and of changed lists', async () => {
    const [onResourceUpdated, onListChanged, onLive] = [vi.fn(), vi.fn(), vi.fn()]
    const client = connect(revision, { onResourceUpdated, onListChanged, onLive })
    await client.connect()
    await vi.waitFor(() => expect(onLive).toHaveBeenCalledWith(true))
    await client.watch('test://watched-resource', true)
    await client.request('tools/call', call('test_trigger_resource_update'))
    await client.request('tools/call', call('test_trigger_tool_change'))
    await vi.waitFor(() => expect(onResourceUpdated).toHaveBeenCalledWith('test://watched-resource'))
    await vi.waitFor(() => expect(onListChanged).toHaveBeenCalledWith('tools'))
    await client.request('tools/call', call('test_trigger_tool_change'))
  })

  test('gets the answer of a call whose stream the gateway closes meanwhile', async () => {
    const done = await connect(revision).request('tools/call', call('test_reconnection'))
    expect(textOf(done)).toBe('Reconnection test completed successfully')
  })

  test('a request that was cancelled before is not sent', async () => {
    const onWire = vi.fn()
    const asked = connect(revision).request('tools/list', {}, { signal: AbortSignal.abort(), onWire })
    await expect(asked).rejects.toMatchObject({ reason: 'cancelled' })
    expect(onWire).not.toHaveBeenCalled()
  })

  test('cancels while it still connects', async () => {
    const abort = new AbortController()
    const onWire = vi.fn()
    const asked = connect(revision, {}, () => new Promise(() => {})).request(
      'tools/list',
      {},
      { signal: abort.signal, onWire },
    )
    abort.abort()
    await expect(asked).rejects.toMatchObject({ reason: 'cancelled' })
    expect(onWire).not.toHaveBeenCalled()
  })

  test('chooses which log messages it gets, and tells sessions of changed roots', async () => {
    const client = connect(revision, {}, undefined, 'error')
    const onLog = vi.fn()
    await client.request('tools/call', call('test_tool_with_logging'), { onLog })
    expect(onLog).not.toHaveBeenCalled() // they are of level info
    const told = client.notify('notifications/roots/list_changed')
    if (revision === '2026-07-28') await expect(told).rejects.toMatchObject({ reason: 'invalid' })
    else await told
  })

  test('an error of the server keeps its code', async () => {
    await expect(connect(revision).request('resources/read', { uri: 'test://none' })).rejects.toMatchObject({
      reason: 'rpc',
      message: expect.stringContaining('test://none'),
    })
  })
})

test('as 2026-07-28, annotated arguments travel in headers, too', async () => {
  const client = connect('2026-07-28')
  const { result } = await client.request('tools/list', {})
  const tools = result.tools as { name: string; inputSchema: unknown }[]
  const inputSchema = tools.find(({ name }) => name === 'test_x_mcp_header')?.inputSchema
  const params = call('test_x_mcp_header', { region: 'Zürich', level: 3 })
  expect(textOf(await client.request('tools/call', params, { inputSchema }))).toBe('Region Zürich, level 3')
})

test('a session that the gateway has ended is replaced without an error, for requests and notifications', async () => {
  const client = connect('2025-11-25')
  await client.connect()
  const before = globalThis.fetch
  const sessions: string[] = []
  vi.spyOn(globalThis, 'fetch').mockImplementation((url, init) => {
    const id = new Headers(init?.headers).get('mcp-session-id')
    if (id !== null && !sessions.includes(id)) sessions.push(id)
    return before(url, init)
  })
  const endSession = async (): Promise<void> => {
    const headers = { 'mcp-session-id': sessions.at(-1) ?? '' }
    await before(`${gateway.url}/default`, { method: 'DELETE', headers })
  }
  await client.request('tools/list', {})
  await endSession()
  expect(textOf(await client.request('tools/call', call('example-ping')))).toBe('pong')
  expect(sessions).toHaveLength(2)
  await endSession()
  await client.notify('notifications/roots/list_changed')
  expect(sessions).toHaveLength(3)
  vi.restoreAllMocks()
})
