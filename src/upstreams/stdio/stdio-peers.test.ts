import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { closeAll, connectSmall, eventually } from '../../../test/support/processes.ts'
import { callerOf, exchangeWith } from '../../../test/support/scripted-server.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { Json, type Plain } from '../../wire/json/json.ts'

afterEach(closeAll)

const TSX = import.meta.resolve('tsx')
const fixture = (name: string): string[] => [
  '--import',
  TSX,
  fileURLToPath(new URL(`../../../test/support/servers/${name}.ts`, import.meta.url)),
]
const { resolve } = createRequire(import.meta.url)
const everything = join(dirname(resolve('@modelcontextprotocol/server-everything/package.json')), 'dist/index.js')

const connect = async (args: string[], caller: Caller) => {
  const { upstream, open } = connectSmall({}, { server: { args, timeoutMs: 10_000 } })
  const peer = await open(caller)
  const send = (method: string, params: Plain = {}) => exchangeWith(peer, method, { caller, params })
  const call = (name: string, more: { [key: string]: Plain } = {}) =>
    send('tools/call', { name, arguments: {}, ...more })
  const journal = () => upstream.status().processes[0]?.stderr
  return { upstream, peer, send, call, journal }
}

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text
const capabilities = Json.of({ elicitation: {}, sampling: {}, roots: { listChanged: true } })
const legacy = callerOf({ revision: '2025-11-25', session: 'client', capabilities })
const modern = callerOf({ capabilities })

describe('a server on SDK v1 over stdio', () => {
  it('lists, calls, reports progress, logs and asks', async () => {
    const { peer, send, call } = await connect(fixture('sdk-v1-stdio'), legacy)
    expect(peer).toMatchObject({ revision: '2025-11-25', asks: true })
    expect(await send('server/discover').result()).toMatchObject({ capabilities: { tools: { listChanged: true } } })
    expect(await send('tools/list').result()).toMatchObject({
      tools: expect.arrayContaining([expect.objectContaining({ name: 'echo' })]),
    })
    const progressing = call('test_tool_with_progress', { _meta: { progressToken: 'mine' } })
    await progressing.result()
    expect(
      progressing.frames.map(frame =>
        frame.kind === 'notice' ? frame.params.get('progress')?.asNumber() : frame.kind,
      ),
    ).toEqual([0, 50, 100, 'result'])
    const logging = call('test_tool_with_logging')
    await logging.result()
    expect(logging.frames.map(({ kind }) => kind)).toEqual(['notice', 'notice', 'notice', 'result'])
    const asking = call('test_elicitation', { arguments: { message: 'who?' } })
    const question = await asking.question()
    question.answer({ kind: 'result', result: Json.of({ action: 'accept', content: { username: 'a', email: 'b' } }) })
    expect(textOf(await asking.result())).toContain('"username":"a"')
  })

  it('gets cancellations and sends changes', async () => {
    const { send, call, journal } = await connect(fixture('sdk-v1-stdio'), legacy)
    const listen = send('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await send('resources/subscribe', { uri: 'test://watched-resource' }).result()
    await call('test_trigger_tool_change').result()
    await call('change_watched_resource').result()
    await listen.notice('notifications/tools/list_changed')
    await listen.notice('notifications/resources/updated')
    const waiting = call('wait', { _meta: { progressToken: 1 } })
    await waiting.notice('notifications/progress')
    waiting.abort.abort({ kind: 'cancelled' })
    await eventually(journal).toContain('{"kind":"cancelled","name":"wait"}')
    expect(waiting.finals()).toEqual([])
  })
})

describe('a server on SDK v2 over stdio', () => {
  it('lists, calls, reports progress, logs to callers that want logs, and asks by its result', async () => {
    const { peer, send, call } = await connect(fixture('sdk-v2-stdio'), modern)
    expect(peer).toMatchObject({ revision: '2026-07-28', asks: false })
    expect(await send('server/discover').result()).toMatchObject({ supportedVersions: ['2026-07-28'] })
    expect(await send('tools/list').result()).toMatchObject({ resultType: 'complete', tools: expect.any(Array) })
    const progressing = call('test_tool_with_progress', { _meta: { progressToken: 'mine' } })
    await progressing.result()
    expect(progressing.frames.map(({ kind }) => kind)).toEqual(['notice', 'notice', 'notice', 'result'])
    const params = { name: 'test_tool_with_logging', arguments: {} }
    const logging = exchangeWith(peer, 'tools/call', { params, caller: { ...modern, logLevel: 'debug' } })
    await logging.result()
    expect(logging.frames).toHaveLength(4)
    expect(await call('test_elicitation', { arguments: { message: 'who?' } }).result()).toMatchObject({
      resultType: 'input_required',
    })
    expect(await call('no-such-tool').failure()).toMatchObject({ code: -32602 })
  })

  it('gets cancellations and sends changes to listeners', async () => {
    const { send, call, journal } = await connect(fixture('sdk-v2-stdio'), modern)
    const listen = send('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await listen.notice('notifications/subscriptions/acknowledged')
    await call('test_trigger_tool_change').result()
    await listen.notice('notifications/tools/list_changed')
    const waiting = call('wait', { _meta: { progressToken: 1 } })
    await waiting.notice('notifications/progress')
    waiting.abort.abort({ kind: 'cancelled' })
    await eventually(journal).toContain('{"kind":"cancelled","name":"wait"}')
  })
})

describe('the everything server of the protocol itself', () => {
  it('answers, asks for roots outside any call, and shapes its tools by what the client can', async () => {
    const { peer, send, call } = await connect([everything, 'stdio'], legacy)
    const listen = send('subscriptions/listen', { notifications: { toolsListChanged: true } })
    expect(peer.asks).toBe(true)
    expect(textOf(await call('echo', { arguments: { message: 'hello' } }).result())).toBe('Echo: hello')
    const roots = await listen.question()
    expect(roots.method).toBe('roots/list')
    roots.answer({ kind: 'result', result: Json.of({ roots: [{ uri: 'file:///here', name: 'here' }] }) })
    const tools = async (): Promise<string[]> => {
      const { tools } = (await send('tools/list').result()) as { tools: { name: string }[] }
      return tools.map(({ name }) => name)
    }
    await eventually(tools).toContain('get-roots-list')
    expect(JSON.stringify(await call('get-roots-list').result())).toContain('file:///here')
  })
})
