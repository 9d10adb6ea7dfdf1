import { afterEach, expect, test, vi } from 'vitest'
import { startGateway } from '../../src/app/gateway.ts'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, defaultRules } from '../../src/config/snapshot.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import { modern, send } from '../support/raw.ts'
import { clientOf, gatewayBefore, inCell, serverOf } from './cells.ts'
import type { MatrixServer } from './server.ts'

const M = clientOf('2026-07-28')
const L = serverOf('2025-11-25')
const FORM = { mode: 'form', message: 'Name?', requestedSchema: { type: 'object', properties: {} } }
const accept = { action: 'accept', content: { name: 'Ann' } }
const INVALID = { code: -32602, data: { reason: 'invalid_request_state' } }
const MINUTE = 60_000

const call = (id: number, more: Record<string, unknown> = {}) =>
  modern(id, 'tools/call', { name: 'ask', ...more }, { capabilities: { elicitation: {} } })
const asksOnce = (server: MatrixServer): void => {
  server.tools.set('ask', async ({ ask }) => ({
    content: [{ type: 'text', text: JSON.stringify(await ask('n', 'elicitation/create', FORM)) }],
  }))
}
const asksTwo = (server: MatrixServer): void => {
  server.tools.set('ask', async ({ ask }) => {
    const both = ['a', 'b'].map(message => ask(message, 'elicitation/create', { ...FORM, message }))
    return { content: [{ type: 'text', text: JSON.stringify(await Promise.all(both)) }] }
  })
}
/** What the server was told since: the question’s answers, and cancels. */
const toldTo = (server: MatrixServer): unknown[] =>
  server.arrivals.flatMap(({ message }): unknown[] => {
    if (message.method === 'notifications/cancelled') return ['cancelled']
    return message.method === undefined && message.id !== undefined ? [message.result ?? message.error] : []
  })
const park = async (url: string, more: Record<string, unknown> = {}): Promise<string> =>
  String((await send(url, call(1, more))).json.result?.requestState)

afterEach(() => vi.useRealTimers())

test('B7: a state is good once; afterwards, and while its call still runs, it is refused', async () => {
  await inCell(M, L, {}, async ({ server, url }) => {
    let finish = () => {}
    server.tools.set('ask', async ({ ask }) => {
      const answer = await ask('n', 'elicitation/create', FORM)
      await new Promise<void>(resolve => {
        finish = resolve
      })
      return { content: [{ type: 'text', text: JSON.stringify(answer) }] }
    })
    const good = { requestState: await park(url), inputResponses: { q1: accept } }
    const answered = send(url, call(2, good))
    await expect.poll(() => toldTo(server)).toEqual([accept])
    expect((await send(url, call(3, good))).json.error).toMatchObject(INVALID)
    finish()
    expect((await answered).json.result).toMatchObject({ content: [{ text: JSON.stringify(accept) }] })
    expect((await send(url, call(4, good))).json.error).toMatchObject(INVALID)
    expect([toldTo(server), server.of('tools/call').length]).toEqual([[accept], 1])
  })
})

test('B7: a state that is tampered with, cut, moved or not one of ours at all says no more than that it is invalid', async () => {
  await inCell(M, L, {}, async ({ server, url }) => {
    asksOnce(server)
    const state = await park(url, { arguments: { a: 1 } })
    const at = (n: number) => `${state.slice(0, n)}${state[n] === 'A' ? 'B' : 'A'}${state.slice(n + 1)}`
    const states = [
      ...[4, 12, Math.floor(state.length / 2), state.length - 2].map(at),
      ...[4, 5, 20, state.length - 1].map(length => state.slice(0, length)),
      `${state}A`,
      'gw2.',
      'gw2.kid.',
      '',
      'st-1 é',
    ]
    const errors = []
    for (const requestState of states)
      errors.push((await send(url, call(2, { requestState, arguments: { a: 1 } }))).json.error)
    for (const more of [{ arguments: { a: 2 } }, { arguments: {} }, {}])
      errors.push((await send(url, call(2, { requestState: state, ...more }))).json.error)
    for (const requestState of [5, null, {}, [state]])
      errors.push((await send(url, call(2, { requestState, arguments: { a: 1 } }))).json.error)
    expect(errors).toEqual(errors.map(() => expect.objectContaining(INVALID)))
    expect(new Set(errors.map(error => JSON.stringify(error))).size).toBe(1)
    expect([toldTo(server), server.of('tools/call').length]).toEqual([[], 1])
    const good = { requestState: state, arguments: { a: 1 }, inputResponses: { q1: accept } }
    expect((await send(url, call(3, good))).json.result?.resultType).toBe('complete')
  })
})

test('a requestState 1 MiB long is refused, by itself and in the place of a good one', async () => {
  await inCell(M, L, {}, async ({ server, url }) => {
    asksOnce(server)
    const state = await park(url)
    for (const requestState of ['x', 'gw2.', `${state}.`, state].map(start => start.padEnd(2 ** 20, 'A')))
      expect((await send(url, call(2, { requestState, inputResponses: { q1: accept } }))).json.error).toMatchObject(
        INVALID,
      )
    expect(toldTo(server)).toEqual([])
    const good = { requestState: state, inputResponses: { q1: accept } }
    expect((await send(url, call(3, good))).json.result?.resultType).toBe('complete')
  })
})

test('a requestState of another node, which has another key, is refused like any foreign one', async () => {
  await inCell(M, L, {}, async ({ server, url }) => {
    asksOnce(server)
    const other = await gatewayBefore(server.config)
    const state = await park(other.url())
    const good = { requestState: state, inputResponses: { q1: accept } }
    expect((await send(url, call(2, good))).json.error).toMatchObject(INVALID)
    expect([toldTo(server), server.of('tools/call').length]).toEqual([[], 1])
    expect((await send(other.url(), call(3, good))).json.result?.resultType).toBe('complete')
    await other.close()
  })
})

test.each<[string, unknown, string[]]>([
  ['none at all', undefined, ['q1', 'q2']],
  ['none in an empty object', {}, ['q1', 'q2']],
  ['null', null, ['q1', 'q2']],
  ['an array', [accept, accept], ['q1', 'q2']],
  ['of extra keys only', JSON.parse('{"q3":{"action":"cancel"},"__proto__":{"q1":{"action":"cancel"}}}'), ['q1', 'q2']],
  ['one good, one a word', { q1: accept, q2: 'Ann' }, ['q2']],
  ['one good, one without an action', { q1: { content: {} }, q2: accept }, ['q1']],
  ['one good, one of an unknown action', { q1: { action: 'maybe' }, q2: accept }, ['q1']],
  ['one good, one with content that is no object', { q1: accept, q2: { action: 'accept', content: [1] } }, ['q2']],
  ['one good with extra keys beside it', { q1: accept, q9: accept }, ['q2']],
])('answers with the wrong shape, %s, are asked for again', async (_name, inputResponses, missing) => {
  await inCell(M, L, {}, async ({ server, url }) => {
    asksTwo(server)
    const state = await park(url)
    const again = (await send(url, call(2, { requestState: state, inputResponses }))).json.result
    expect(again?.resultType).toBe('input_required')
    expect(Object.keys(again?.inputRequests as object)).toEqual(missing)
    expect(again?.requestState).not.toBe(state)
    const rest = Object.fromEntries(missing.map(key => [key, accept]))
    const last = await send(url, call(3, { requestState: again?.requestState, inputResponses: rest }))
    expect(last.json.result).toMatchObject({ content: [{ text: JSON.stringify([accept, accept]) }] })
    expect([toldTo(server), server.of('tools/call').length]).toEqual([[accept, accept], 1])
  })
})

test('a user who answers after 14 minutes is in time; one who answers after 20 minutes is told to start again', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const pass = (minutes: number) => vi.setSystemTime(Date.now() + minutes * MINUTE)
  await inCell(M, L, {}, async ({ server, url }) => {
    asksOnce(server)
    const early = { requestState: await park(url), inputResponses: { q1: accept } }
    pass(14)
    expect((await send(url, call(2, early))).json.result?.resultType).toBe('complete')
    expect(toldTo(server)).toEqual([accept])

    const late = { requestState: await park(url), inputResponses: { q1: accept } }
    pass(20)
    expect((await send(url, call(3, late))).json.error).toMatchObject({
      ...INVALID,
      message: expect.stringContaining('send the request again'),
    })
    expect(toldTo(server)).toEqual([accept])
    expect(server.of('tools/call')).toHaveLength(2)
  })
})

test('a requestState is refused at another server that has the same tool, and in another workspace', async () => {
  const [near, far] = [await L.start(), await L.start()]
  for (const server of [near, far]) asksOnce(server)
  const servers = ['near', 'far']
  const gateway = await startGateway(
    {
      listen: { ...DEFAULT_LISTEN, port: 0 },
      limits: { ...DEFAULT_LIMITS, shutdownMs: 200 },
      servers: new Map([near, far].map(({ config }, i) => [servers[i] ?? '', { ...config, name: servers[i] ?? '' }])),
      workspaces: new Map(['default', 'other'].map(name => [name, { name, servers, ...defaultRules(2) }])),
      warnings: [],
    },
    { log: SILENT },
  )
  const [state, inputResponses] = [await park(gateway.url(), { name: 'near__ask' }), { q1: accept }]
  const retry = async (workspace: string, name: string) =>
    (await send(gateway.url(workspace), call(2, { name, requestState: state, inputResponses }))).json
  expect((await retry('default', 'far__ask')).error).toMatchObject(INVALID)
  expect((await retry('other', 'near__ask')).error).toMatchObject(INVALID)
  expect([toldTo(near), toldTo(far), far.of('tools/call').length]).toEqual([[], [], 0])
  expect((await retry('default', 'near__ask')).result?.resultType).toBe('complete')
  await gateway.close()
  for (const server of [near, far]) await server.close()
})
