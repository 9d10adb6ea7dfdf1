import { afterEach, describe, expect, it } from 'vitest'
import { callerOf, exchangeWith } from '../../test/support/scripted-server.ts'
import { start as startV1 } from '../../test/support/servers/sdk-v1-server.ts'
import { start as startV2 } from '../../test/support/servers/sdk-v2-server.ts'
import type { Caller } from '../protocol/exchange.ts'
import { SILENT } from '../telemetry/log.ts'
import { Json, type Plain } from '../wire/json/json.ts'
import { connectRemote } from './connect-remote.ts'
import type { UpstreamLogins } from './login/upstream-logins.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const connect = async (start: typeof startV1, caller: Caller) => {
  const { url, journal, close } = await start()
  const config = { kind: 'remote', url, type: 'auto', headers: {}, era: 'auto', timeoutMs: 5000 } as const
  const upstream = connectRemote({ name: 'sdk', ...config }, { log: SILENT })
  closing.push(close, () => upstream.close())
  const peer = await upstream.open(caller)
  const send = (method: string, params: Plain = {}) => exchangeWith(peer, method, { caller, params })
  const call = (name: string, more: { [key: string]: Plain } = {}) =>
    send('tools/call', { name, arguments: {}, ...more })
  return { upstream, journal, peer, send, call }
}

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text

const capabilities = Json.of({ elicitation: {}, sampling: {}, roots: { listChanged: true } })

describe('a server on SDK v1', () => {
  const caller = callerOf({ revision: '2025-11-25', session: 'client', capabilities })

  it('is detected as legacy and returns its lists', async () => {
    const { peer, send } = await connect(startV1, caller)
    expect(peer).toMatchObject({ revision: '2025-11-25', asks: true })
    expect(await send('tools/list').result()).toMatchObject({
      tools: expect.arrayContaining([expect.objectContaining({ name: 'echo' })]),
    })
    expect(await send('server/discover').result()).toMatchObject({ capabilities: { tools: { listChanged: true } } })
  })

  it('reports progress and logs on the call', async () => {
    const { send, call } = await connect(startV1, caller)
    const progressing = call('test_tool_with_progress', { _meta: { progressToken: 'mine' } })
    await progressing.result()
    expect(
      progressing.frames.map(frame =>
        frame.kind === 'notice' ? frame.params.get('progress')?.asNumber() : frame.kind,
      ),
    ).toEqual([0, 50, 100, 'result'])
    await send('logging/setLevel', { level: 'debug' }).result()
    const logging = call('test_tool_with_logging')
    await logging.result()
    expect(
      logging.frames.filter(frame => frame.kind === 'notice' && frame.method === 'notifications/message'),
    ).toHaveLength(3)
  })

  it('asks, and is answered', async () => {
    const { call } = await connect(startV1, caller)
    const asking = call('test_elicitation', { arguments: { message: 'who?' } })
    const question = await asking.question()
    expect(question.params.get('message')?.asString()).toBe('who?')
    question.answer({ kind: 'result', result: Json.of({ action: 'accept', content: { username: 'a', email: 'b' } }) })
    expect(textOf(await asking.result())).toContain('"username":"a"')
  })

  it('closes its stream in the middle, and the gateway resumes it', async () => {
    const { call, journal } = await connect(startV1, caller)
    expect(textOf(await call('test_reconnection').result())).toBe('Answered after the stream was closed')
    expect(journal.entries.filter(({ kind }) => kind === 'called')).toHaveLength(1)
  })

  it('gets the cancellation', async () => {
    const { call, journal } = await connect(startV1, caller)
    const waiting = call('wait', { _meta: { progressToken: 1 } })
    await waiting.notice('notifications/progress')
    waiting.abort.abort({ kind: 'cancelled' })
    await journal.seen({ kind: 'cancelled', name: 'wait' })
    expect(waiting.finals()).toEqual([])
  })

  it('announces changes to the standing exchange, and the session ends with it', async () => {
    const { send, call, journal } = await connect(startV1, caller)
    const notifications = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
    const standing = send('subscriptions/listen', { notifications })
    await send('resources/subscribe', { uri: 'test://watched-resource' }).result()
    await call('test_trigger_tool_change').result()
    await call('change_watched_resource').result()
    await standing.notice('notifications/tools/list_changed')
    await standing.notice('notifications/resources/updated')
    standing.abort.abort({ kind: 'gone' })
    await journal.seen({ kind: 'ended' })
  })
})

describe('a server on SDK v2', () => {
  const caller = callerOf({ capabilities })

  it('is detected as modern and returns its lists', async () => {
    const { peer, send } = await connect(startV2, caller)
    expect(peer).toMatchObject({ revision: '2026-07-28', asks: false })
    expect(await send('tools/list').result()).toMatchObject({ resultType: 'complete', tools: expect.any(Array) })
    expect(await send('server/discover').result()).toMatchObject({ supportedVersions: ['2026-07-28'] })
  })

  it('reports progress, and logs to callers with a log level', async () => {
    const { peer, call } = await connect(startV2, caller)
    const progressing = call('test_tool_with_progress', { _meta: { progressToken: 'mine' } })
    await progressing.result()
    expect(progressing.frames.map(({ kind }) => kind)).toEqual(['notice', 'notice', 'notice', 'result'])
    const params = { name: 'test_tool_with_logging', arguments: {} }
    const logging = exchangeWith(peer, 'tools/call', { params, caller: { ...caller, logLevel: 'debug' } })
    await logging.result()
    expect(logging.frames).toHaveLength(4)
  })

  it('asks with an input_required result', async () => {
    const { call } = await connect(startV2, caller)
    const params = { arguments: { message: 'who?' } }
    const first = (await call('test_elicitation', params).result()) as {
      resultType: string
      requestState?: string
      inputRequests: Record<string, { method: string }>
    }
    expect(first).toMatchObject({ resultType: 'input_required' })
    const [key = ''] = Object.keys(first.inputRequests)
    const inputResponses = { [key]: { action: 'accept', content: { username: 'a', email: 'b' } } }
    const state = first.requestState === undefined ? {} : { requestState: first.requestState }
    expect(textOf(await call('test_elicitation', { ...params, inputResponses, ...state }).result())).toContain(
      '"username":"a"',
    )
  })

  it('is cancelled by closing the request', async () => {
    const { call, journal } = await connect(startV2, caller)
    const waiting = call('wait', { _meta: { progressToken: 1 } })
    await waiting.notice('notifications/progress')
    waiting.abort.abort({ kind: 'cancelled' })
    await journal.seen({ kind: 'cancelled', name: 'wait' })
  })

  it('announces changes to listeners', async () => {
    const { send, call } = await connect(startV2, caller)
    const listen = send('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await listen.notice('notifications/subscriptions/acknowledged')
    await call('test_trigger_tool_change').result()
    await listen.notice('notifications/tools/list_changed')
    expect(listen.frames[0]).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
  })

  it('rejects an unknown method with its own error', async () => {
    const { send, call } = await connect(startV2, caller)
    expect(await send('acme/unknown').failure()).toMatchObject({ code: -32601 })
    expect(await call('no-such-tool').failure()).toMatchObject({ code: -32602 })
  })
})

describe('a peer that is open', () => {
  const logins: UpstreamLogins = {
    credentials: {
      bearerOf: () => undefined,
      rejected: async () => ({ kind: 'unsupported' }),
      onChanged: () => () => {},
    },
    isPersonal: true,
    demand: { isKnown: false, record: () => {} },
  }
  it.each([
    ['of a modern server', startV2, callerOf()],
    ['of the session of a client', startV1, callerOf({ revision: '2025-11-25', session: 'client', capabilities })],
    ['of a session that modern callers share', startV1, callerOf({ principal: 'ann', capabilities })],
  ])('%s is known without a promise, also where users may log in', async (_, start, caller) => {
    const { url, close } = await start()
    closing.push(close)
    for (const options of [{ log: SILENT }, { log: SILENT, logins }]) {
      const config = { kind: 'remote', url, type: 'auto', headers: {}, era: 'auto', timeoutMs: 5000 } as const
      const upstream = connectRemote({ name: 'sdk', ...config }, options)
      closing.push(() => upstream.close())
      expect(upstream.knownPeer?.(caller)).toBeUndefined()
      const peer = await upstream.open(caller)
      expect(upstream.knownPeer?.(caller)).toBe(peer)
      await upstream.close()
      expect(upstream.knownPeer?.(caller)).toBeUndefined()
    }
  })
})
