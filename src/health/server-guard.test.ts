import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { callerOf, callThrough, farSide, lossOf } from '../../test/support/health.ts'
import { Abort } from '../protocol/cancellation.ts'
import { deliver } from '../protocol/deliver.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import type { Exchange, Frame, Peer, Question } from '../protocol/exchange.ts'
import { NEWEST_LEGACY } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { createServerGuard } from './server-guard.ts'
import { createWaitQueue } from './wait-queue.ts'

const UNREACHABLE = lossOf('upstream_unreachable')
const RESULT = { kind: 'result', result: Json.empty } as const

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

/** A guard whose server never goes down, unless the test says so. */
const start = (slots?: number, { maxWaiting = 1000, canRetry = true } = {}) => {
  const far = farSide()
  const queue = slots === undefined ? undefined : createWaitQueue(slots, maxWaiting)
  const monitor = {
    rejection: undefined as RpcError | undefined,
    retries: 0,
    failures: 0,
    retryNow: () => Promise.resolve(),
    recordAnswer: () => {},
    recordFailure: () => void monitor.failures++,
    recordOpen: () => {},
    recordRetry: () => void monitor.retries++,
  }
  const guard = createServerGuard({ server: 'x', upstream: far.upstream, monitor, canRetry, queue })
  return { far, guard, monitor, queue }
}

describe('a limited server', () => {
  test('runs a limited number of calls; the next is sent when one is answered, fails or is cancelled', async () => {
    const { far, guard, queue } = start(2)
    far.answering = 'silent'
    const calls = Array.from({ length: 6 }, () => callThrough(guard))
    await Promise.all(calls.map(({ sent }) => sent))
    expect([far.calls.length, queue?.running, queue?.waiting]).toEqual([2, 2, 4])
    void far.calls[0]?.sink(RESULT)
    expect(far.calls.length).toBe(3)
    void far.calls[1]?.sink({ kind: 'failure', error: rpcError('internal') })
    expect(far.calls.length).toBe(4)
    calls[2]?.abort.abort({ kind: 'cancelled' })
    await Promise.resolve()
    expect(far.calls.length).toBe(5)
    expect(queue?.running).toBe(2)
  })

  test('releases a slot once, however often a call ends', async () => {
    const { far, guard, queue } = start(1)
    far.answering = 'silent'
    const call = callThrough(guard)
    await call.sent
    const [sent] = far.calls
    void sent?.sink(RESULT)
    call.abort.abort({ kind: 'gone' })
    void sent?.sink(RESULT)
    await Promise.resolve()
    expect(queue?.running).toBe(0)
  })

  test('a call that is cancelled while it waits is never sent', async () => {
    const { far, guard, queue } = start(1)
    far.answering = 'silent'
    const [, second] = [callThrough(guard), callThrough(guard)]
    await second.sent
    second.abort.abort({ kind: 'gone' })
    void far.calls[0]?.sink(RESULT)
    await Promise.resolve()
    expect([far.calls.length, queue?.running, queue?.waiting, second.frames]).toEqual([1, 0, 0, []])
  })

  test('answers server/discover from the session at once, however many calls wait', async () => {
    const { far, guard, queue } = start(1)
    far.answering = 'silent'
    await callThrough(guard).sent
    far.answering = 'well'
    const discovery = callThrough(guard, 'server/discover')
    await discovery.sent
    expect(discovery.frames).toMatchObject([{ kind: 'result' }])
    expect(queue?.running).toBe(1)
  })

  test('rejects a call when too many wait', async () => {
    const { far, guard } = start(1, { maxWaiting: 1 })
    far.answering = 'silent'
    const calls = Array.from({ length: 3 }, () => callThrough(guard))
    await Promise.all(calls.map(({ sent }) => sent))
    const error = await calls[2]?.error()
    expect(error).toMatchObject({ code: -32603, message: expect.stringContaining('Server "x" is busy: 1 calls wait') })
    expect(error?.data?.toValue()).toEqual({ reason: 'upstream_busy', upstream: 'x' })
  })

  test('neither subscriptions/listen nor a notification takes a slot', async () => {
    const { far, guard, queue } = start(1)
    far.answering = 'silent'
    for (let i = 0; i < 3; i++) await callThrough(guard, 'subscriptions/listen').sent
    const peer = await guard.open(callerOf())
    peer.dispatch({ ...exchangeOf('notifications/x'), kind: 'notification' })
    expect([far.calls.length, queue?.running]).toEqual([4, 0])
  })

  test('principals take turns', async () => {
    const { far, guard } = start(1)
    far.answering = 'silent'
    for (const who of ['a', 'a', 'a', 'a', 'b', 'c']) await callThrough(guard, 'tools/call', who).sent
    for (let i = 0; i < 5; i++) void far.calls[i]?.sink(RESULT)
    expect(far.calls.map(({ caller }) => caller.principal)).toEqual(['a', 'a', 'b', 'c', 'a', 'a'])
  })

  test('a call that asks a question releases its slot, and takes it again with the answer', async () => {
    const { far, guard, queue } = start(1)
    far.answering = 'silent'
    const [asking] = [callThrough(guard), callThrough(guard)]
    await vi.advanceTimersByTimeAsync(0)
    expect(far.calls.length).toBe(1)
    const answers: unknown[] = []
    const ask = (withdrawn: Abort): Question => ({
      kind: 'question',
      method: 'elicitation/create',
      params: Json.empty,
      withdrawn,
      answer: reply => answers.push(reply.kind),
    })
    const withdrawn = new Abort()
    void far.calls[0]?.sink(ask(new Abort()))
    void far.calls[0]?.sink(ask(withdrawn))
    expect([far.calls.length, queue?.running]).toEqual([2, 1])
    const [first] = asking.frames as Question[]
    first?.answer({ kind: 'progress', params: Json.empty })
    first?.answer({ kind: 'result', result: Json.empty })
    expect(queue?.running).toBe(1)
    withdrawn.abort({ kind: 'gone' })
    expect([answers, queue?.running]).toEqual([['progress', 'result'], 2])
    void far.calls[0]?.sink(RESULT)
    void far.calls[1]?.sink(RESULT)
    expect(queue?.running).toBe(0)
  })

  test('a call that ends while it asks releases no slot twice', async () => {
    const { far, guard, queue } = start(1)
    far.answering = 'silent'
    const call = callThrough(guard)
    await call.sent
    const asked = {
      kind: 'question',
      method: 'm',
      params: Json.empty,
      withdrawn: new Abort(),
      answer: () => {},
    } as const
    void far.calls[0]?.sink(asked)
    void far.calls[0]?.sink(RESULT)
    asked.withdrawn.abort({ kind: 'gone' })
    expect([queue?.running, call.frames.length]).toEqual([0, 2])
  })
})

const exchangeOf = (method: string): Exchange => ({
  kind: 'request',
  method,
  params: Json.empty,
  caller: callerOf(),
  signal: new Abort(),
  sink: () => {},
})

describe('a request that never arrived', () => {
  const READS = ['tools/list', 'prompts/list', 'resources/list', 'resources/read', 'completion/complete', 'ping']

  test.each(READS)('%s is sent once more, after a pause', async method => {
    const { far, guard, monitor } = start()
    far.answering = UNREACHABLE
    const call = callThrough(guard, method)
    await call.sent
    expect(call.frames).toEqual([])
    far.answering = 'well'
    await vi.advanceTimersByTimeAsync(500)
    expect(call.frames).toMatchObject([{ kind: 'result' }])
    expect(monitor.retries).toBe(1)
  })

  test('is retried once only', async () => {
    const { far, guard, monitor } = start()
    far.answering = UNREACHABLE
    const call = callThrough(guard, 'tools/list')
    await vi.advanceTimersByTimeAsync(5000)
    expect(call.frames).toEqual([{ kind: 'failure', error: UNREACHABLE }])
    expect([monitor.retries, monitor.failures]).toEqual([1, 2])
  })

  test.each([
    ['a tool', 'tools/call', UNREACHABLE],
    ['a request of an extension', 'made/up', UNREACHABLE],
    ['a read that may have arrived', 'tools/list', lossOf('upstream_timeout')],
    ['a read the server refused', 'tools/list', rpcError('internal')],
  ])('%s is never sent again', async (_what, method, error) => {
    const { far, guard, monitor } = start()
    far.answering = error
    const call = callThrough(guard, method)
    await call.sent
    expect(call.frames).toEqual([{ kind: 'failure', error }])
    expect(monitor.retries).toBe(0)
  })

  test('is not retried after a cancellation, or once the server is down', async () => {
    const { far, guard, monitor } = start()
    far.answering = UNREACHABLE
    const [left, late] = [callThrough(guard, 'tools/list'), callThrough(guard, 'tools/list')]
    await Promise.all([left.sent, late.sent])
    left.abort.abort({ kind: 'gone' })
    monitor.rejection = rpcError('internal', 'down')
    await vi.advanceTimersByTimeAsync(1000)
    expect([left.frames, late.frames.length, monitor.retries]).toEqual([[], 1, 0])
  })

  test('a failed connection is retried once, for any call', async () => {
    const { far, guard, monitor } = start()
    far.opening = UNREACHABLE
    const call = callThrough(guard)
    await vi.advanceTimersByTimeAsync(0)
    far.opening = 'well'
    await vi.advanceTimersByTimeAsync(500)
    expect(await call.error()).toBeUndefined()
    expect([far.opens, monitor.retries]).toEqual([2, 1])
  })

  test('a process is not retried: its supervisor restarts it', async () => {
    const { far, guard } = start(undefined, { canRetry: false })
    far.opening = UNREACHABLE
    expect(await callThrough(guard).error()).toBe(UNREACHABLE)
    expect(far.opens).toBe(1)
  })
})

test('the same peer has the same guard, and its members are read on each access', async () => {
  const peer = { revision: NEWEST_LEGACY, asks: true, correlates: true, dispatch: () => {}, hold: () => () => {} }
  const { monitor } = start()
  const upstream = { open: () => Promise.resolve<Peer>(peer), close: () => Promise.resolve() }
  const guard = createServerGuard({ server: 'x', upstream, monitor, canRetry: true, queue: undefined })
  const [one, two] = [await guard.open(callerOf()), await guard.open(callerOf())]
  expect(one).toBe(two)
  expect([one.correlates, one.asks, one.revision, typeof one.hold]).toEqual([true, true, NEWEST_LEGACY, 'function'])
  peer.correlates = false
  expect(one.correlates).toBe(false)
})

test('a server that rejects a further session of a caller stays healthy', async () => {
  const { far, guard, monitor } = start()
  far.opening = UNREACHABLE
  const opening = expect(guard.open(callerOf('me'), 1)).rejects.toThrow('upstream_unreachable')
  await vi.advanceTimersByTimeAsync(1000)
  await opening
  expect([far.opens, monitor.failures, monitor.retries]).toEqual([1, 0, 0])
})

test('a call whose sink throws on the result is counted once', async () => {
  const far = farSide()
  far.answering = 'silent'
  const counted: (string | undefined)[] = []
  const { monitor } = start()
  const count = (_tool: string | undefined, error: string | undefined) => void counted.push(error)
  const guard = createServerGuard({
    server: 'x',
    upstream: far.upstream,
    monitor,
    canRetry: true,
    queue: undefined,
    count,
  })
  const peer = await guard.open(callerOf())
  const sink = ({ kind }: Frame): void => {
    if (kind === 'result') throw new Error('cannot be converted')
  }
  const call = { kind: 'request', method: 'ping', params: Json.empty, caller: callerOf(), signal: new Abort() } as const
  peer.dispatch({ ...call, sink })
  for (const sent of far.calls) void deliver(sent.sink, RESULT)
  expect(counted).toEqual([undefined])
})
