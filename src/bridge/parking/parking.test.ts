import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import type { Answer, Caller, Exchange, Frame, Upstream } from '../../protocol/exchange.ts'
import { Json, type Plain } from '../../wire/json/json.ts'
import { type Bridge, createBridge } from '../bridge.ts'

const TTL_MS = 60_000
let bridge: Bridge
let upstream: Upstream
let calls: Exchange[] // what reached the far side

beforeEach(() => {
  vi.useFakeTimers()
  calls = []
  bridge = createBridge({ questionTtlMs: TTL_MS, principalParkedCalls: 100 })
  upstream = bridge.wrap(
    {
      open: () =>
        Promise.resolve({ revision: '2026-07-28', asks: true, dispatch: exchange => void calls.push(exchange) }),
      close: () => Promise.resolve(),
    },
    'far',
  )
})
afterEach(() => {
  bridge.close()
  vi.useRealTimers()
})

const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

/** A modern client's request through the bridge, and what came back so far. */
const request = async (params: Record<string, Plain>, over: Partial<Caller> & { method?: string } = {}) => {
  const frames: Frame[] = []
  const abort = new Abort()
  const { method = 'tools/call', ...who } = over
  const caller: Caller = {
    workspace: 'w',
    principal: 'me',
    revision: '2026-07-28',
    capabilities: Json.of(ALL),
    headers: new Map(),
    ...who,
  }
  const peer = await upstream.open(caller)
  peer.dispatch({
    kind: 'request',
    method,
    params: Json.of({ name: 'ask', ...params }),
    caller,
    signal: abort,
    sink: frame => void frames.push(frame),
  })
  const last = () => frames.at(-1)
  const result = () => {
    const frame = last()
    return (frame?.kind === 'result' ? frame.result.toValue() : undefined) as
      | {
          resultType: string
          inputRequests: Record<string, { method: string; params: unknown }>
          requestState: string
          content?: unknown
        }
      | undefined
  }
  const code = () => {
    const frame = last()
    return frame?.kind === 'failure' ? frame.error.code : undefined
  }
  return { frames, abort, result, code, caller }
}

const FORM = { message: 'Name?', requestedSchema: { type: 'object', properties: {} } }

/** The far side asks; the answers it got so far. */
const ask = (
  exchange: Exchange | undefined,
  options: { key?: string; method?: string; params?: Plain; withdrawn?: Abort } = {},
) => {
  const answers: Answer[] = []
  const { key, method = 'elicitation/create', params = FORM, withdrawn = new Abort() } = options
  void exchange?.sink({
    kind: 'question',
    ...(key !== undefined && { key }),
    method,
    params: Json.of(params),
    withdrawn,
    answer: reply => answers.push(reply),
  })
  return answers
}
const gather = () => vi.advanceTimersByTimeAsync(30)
const accept = { action: 'accept', content: { name: 'Ann' } }
const finish = (exchange: Exchange | undefined) =>
  exchange?.sink({ kind: 'result', result: Json.of({ resultType: 'complete', content: [] }) })

test('a call that asks ends with input_required, is resumed by the retry, and ran once', async () => {
  const first = await request({})
  const answers = ask(calls[0], { key: 'user_name' })
  expect(first.frames).toEqual([])
  await gather()
  expect(first.result()).toEqual({
    resultType: 'input_required',
    inputRequests: { user_name: { method: 'elicitation/create', params: FORM } },
    requestState: expect.stringMatching(/^gw2\.[\w-]+\.[\w-]+$/),
  })
  const second = await request({
    requestState: first.result()?.requestState ?? '',
    inputResponses: { user_name: accept, extra: 1 },
  })
  expect(answers).toEqual([{ kind: 'result', result: expect.anything() }])
  expect(answers[0]?.kind === 'result' && answers[0].result.toValue()).toEqual(accept)
  finish(calls[0])
  expect(second.result()).toEqual({ resultType: 'complete', content: [] })
  expect(calls).toHaveLength(1)
  expect(first.frames).toHaveLength(1)
})

test('questions asked together are in one result; those without a key get one', async () => {
  const first = await request({})
  ask(calls[0])
  ask(calls[0], { method: 'roots/list', params: {} })
  ask(calls[0], {
    method: 'sampling/createMessage',
    params: { messages: [], maxTokens: 1, _meta: { progressToken: 4, keep: 1 } },
  })
  await gather()
  expect(Object.keys(first.result()?.inputRequests ?? {})).toEqual(['q1', 'q2', 'q3'])
  expect(first.result()?.inputRequests.q3?.params).toEqual({ messages: [], maxTokens: 1, _meta: { keep: 1 } })
})

test.each([
  ['missing', {}],
  ['null', null],
  ['of the wrong shape', { q1: 'Ann', q2: accept }],
])('answers that are %s are asked for again, with a new state', async (_name, inputResponses) => {
  const first = await request({})
  const one = ask(calls[0])
  const two = ask(calls[0])
  await gather()
  const state = first.result()?.requestState ?? ''
  const second = await request({ requestState: state, inputResponses })
  expect(second.result()?.resultType).toBe('input_required')
  expect(second.result()?.requestState).not.toBe(state)
  expect(one).toEqual([])
  const isHalf = inputResponses !== null && 'q2' in inputResponses
  expect(two).toHaveLength(isHalf ? 1 : 0)
  expect(Object.keys(second.result()?.inputRequests ?? {})).toEqual(isHalf ? ['q1'] : ['q1', 'q2'])
})

test('a state is valid once, for its own request, principal and workspace, and until it expires', async () => {
  const first = await request({ arguments: { a: 1, b: 2 } })
  const answers = ask(calls[0])
  await gather()
  const requestState = first.result()?.requestState ?? ''
  const good = { requestState, inputResponses: { q1: accept }, arguments: { b: 2, a: 1 } }
  const tampered = `${requestState.slice(0, -2)}${requestState.endsWith('AA') ? 'BB' : 'AA'}`
  const codes = [
    (await request({ ...good, requestState: tampered })).code(),
    (await request({ ...good, requestState: `${requestState}-TAMPERED` })).code(),
    (await request({ ...good, requestState: 'foreign' })).code(),
    (await request({ ...good, requestState: 5 })).code(),
    (await request({ ...good, arguments: { a: 2 } })).code(),
    (await request({ ...good, name: 'other' })).code(),
    (await request(good, { method: 'prompts/get' })).code(),
    (await request(good, { principal: 'mallory' })).code(),
    (await request(good, { workspace: 'elsewhere' })).code(),
  ]
  expect(codes).toEqual(codes.map(() => -32602))
  expect(answers).toEqual([])
  const second = await request(good)
  expect(answers).toHaveLength(1)
  expect((await request(good)).code()).toBe(-32602)
  finish(calls[0])
  expect(second.result()?.resultType).toBe('complete')
  expect((await request(good)).code()).toBe(-32602)
  expect(calls).toHaveLength(1)
})

test('without a retry in time the questions are cancelled, then the call', async () => {
  const first = await request({})
  const form = ask(calls[0])
  const roots = ask(calls[0], { method: 'roots/list', params: {} })
  await gather()
  await vi.advanceTimersByTimeAsync(TTL_MS)
  expect(form[0]?.kind === 'result' && form[0].result.toValue()).toEqual({ action: 'cancel' })
  expect(roots[0]).toMatchObject({ kind: 'error', error: { code: -32603 } })
  expect(calls[0]?.signal.reason).toBeUndefined()
  await vi.advanceTimersByTimeAsync(2000)
  expect(calls[0]?.signal.reason).toEqual({ kind: 'expired' })
  expect((await request({ requestState: first.result()?.requestState ?? '' })).code()).toBe(-32602)
})

test('notifications of a parked call are delivered to the retry, with its own progress token', async () => {
  const first = await request({ _meta: { progressToken: 'one' } })
  const progress = (n: number) =>
    calls[0]?.sink({
      kind: 'notice',
      method: 'notifications/progress',
      params: Json.of({ progressToken: 'one', progress: n }),
    })
  void progress(1)
  ask(calls[0])
  await gather()
  void progress(2)
  void progress(3)
  const second = await request({
    requestState: first.result()?.requestState ?? '',
    inputResponses: { q1: accept },
    _meta: { progressToken: 2 },
  })
  void progress(3)
  void progress(4)
  finish(calls[0])
  const told = second.frames.map(frame => (frame.kind === 'notice' ? frame.params.toValue() : frame.kind))
  expect(told).toEqual([{ progressToken: 2, progress: 3 }, { progressToken: 2, progress: 4 }, 'result'])
})

test('a call that finished while parked gives its result to the retry', async () => {
  const first = await request({})
  const withdrawn = new Abort()
  ask(calls[0], { withdrawn })
  await gather()
  withdrawn.abort({ kind: 'expired' })
  finish(calls[0])
  const second = await request({ requestState: first.result()?.requestState ?? '' })
  expect(second.result()?.resultType).toBe('complete')
})

test('a question withdrawn in time is not asked', async () => {
  const first = await request({})
  const withdrawn = new Abort()
  ask(calls[0], { withdrawn })
  withdrawn.abort({ kind: 'expired' })
  await gather()
  expect(first.frames).toEqual([])
  finish(calls[0])
  expect(first.result()?.resultType).toBe('complete')
})

test('a client that leaves during its retry cancels the call for good', async () => {
  const first = await request({})
  ask(calls[0])
  await gather()
  const good = { requestState: first.result()?.requestState ?? '', inputResponses: { q1: accept } }
  const second = await request(good)
  second.abort.abort({ kind: 'gone' })
  expect(calls[0]?.signal.reason).toEqual({ kind: 'gone' })
  expect((await request(good)).code()).toBe(-32602)
})

test('the end of the first request is not a cancel', async () => {
  const first = await request({})
  ask(calls[0])
  await gather()
  first.abort.abort({ kind: 'gone' })
  expect(calls[0]?.signal.reason).toBeUndefined()
})

test.each([
  ['elicitation', {}, 'elicitation/create', FORM, -32601],
  ['a form', { elicitation: { url: {} } }, 'elicitation/create', FORM, -32602],
  ['a link', { elicitation: {} }, 'elicitation/create', { mode: 'url', url: 'x' }, -32602],
  ['sampling', { roots: {} }, 'sampling/createMessage', {}, -32601],
  ['sampling with tools', { sampling: {} }, 'sampling/createMessage', { tools: [] }, -32602],
  ['roots', {}, 'roots/list', {}, -32601],
])('%s that the client did not declare is refused to the asker', async (_name, capabilities, method, params, code) => {
  const first = await request({}, { capabilities: Json.of(capabilities) })
  const answers = ask(calls[0], { method, params })
  await gather()
  expect(answers).toMatchObject([{ kind: 'error', error: { code } }])
  expect(first.frames).toEqual([])
})

test('a method that cannot carry questions refuses them', async () => {
  await request({}, { method: 'completion/complete' })
  const answers = ask(calls[0])
  expect(answers).toMatchObject([{ kind: 'error', error: { code: -32601 } }])
})

test('answers without a state go to the server as they are', async () => {
  await request({ inputResponses: { user_name: accept } })
  expect(calls[0]?.params.get('inputResponses')?.toValue()).toEqual({ user_name: accept })
})

test('too many parked calls evict the oldest', async () => {
  const first = await request({})
  ask(calls[0])
  await gather()
  for (let i = 0; i < 100; i++) {
    await request({})
    ask(calls.at(-1))
  }
  await gather()
  expect(
    (await request({ requestState: first.result()?.requestState ?? '', inputResponses: { q1: accept } })).code(),
  ).toBe(-32602)
})

test('parked calls of one principal never evict those of another', async () => {
  const other = await request({}, { principal: 'other' })
  ask(calls[0])
  await gather()
  for (let i = 0; i < 500; i++) {
    await request({})
    ask(calls.at(-1))
  }
  await gather()
  const retry = { requestState: other.result()?.requestState ?? '', inputResponses: { q1: accept } }
  const again = await request(retry, { principal: 'other' })
  finish(calls[0])
  expect(again.result()).toMatchObject({ resultType: 'complete' })
})

test('parked calls are bounded by the bytes they keep alive; the oldest of the same principal goes first', async () => {
  const large = () => Json.parse(Buffer.from(JSON.stringify({ name: 'ask', pad: 'x'.repeat(24 << 20) })))
  const other = await request({}, { principal: 'other' })
  ask(calls[0])
  await gather()
  const peer = await upstream.open(other.caller)
  for (let i = 0; i < 3; i++) {
    const frames: Frame[] = []
    peer.dispatch({
      kind: 'request',
      method: 'tools/call',
      params: large(),
      caller: { ...other.caller, principal: 'large' },
      signal: new Abort(),
      sink: frame => void frames.push(frame),
    })
    ask(calls.at(-1))
    await gather()
    expect(frames).toHaveLength(1)
  }
  await vi.advanceTimersByTimeAsync(5000) // grace for the asker
  expect(calls.map(({ signal }) => signal.reason?.kind)).toEqual([undefined, 'expired', undefined, undefined])
})

test('the buffer of a parked call is bounded, and its result is not lost', async () => {
  const first = await request({})
  ask(calls[0])
  await gather()
  const text = 'x'.repeat(300 * 1024)
  for (let i = 0; i < 50; i++)
    void calls[0]?.sink({ kind: 'notice', method: 'notifications/message', params: Json.of({ level: 'info', text }) })
  finish(calls[0])
  const again = await request({ requestState: first.result()?.requestState ?? '', inputResponses: { q1: accept } })
  expect(again.frames.map(({ kind }) => kind)).toEqual(['notice', 'notice', 'notice', 'result'])
})
