import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { callThrough, farSide, lossOf, PROCESS, REMOTE } from '../../test/support/health.ts'
import { createTestLog } from '../../test/support/log.ts'
import type { ServerConfig } from '../config/snapshot.ts'
import { NoAnswer, rpcError } from '../protocol/errors.ts'
import { MODERN } from '../protocol/revisions.ts'
import type { ServerStatus } from '../protocol/status.ts'
import { Json } from '../wire/json/json.ts'
import { createHealth } from './health.ts'

const REFUSED = lossOf('upstream_unreachable')

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const start = async (config: ServerConfig = REMOTE, prepare: (far: ReturnType<typeof farSide>) => void = () => {}) => {
  const far = farSide()
  prepare(far)
  const { log, lines } = createTestLog()
  const health = createHealth(Json.of({ name: 'test' }), log)
  const changes: ServerStatus[] = []
  health.onChange(status => changes.push(status))
  const guard = health.add(config, far.upstream)
  const tried = health.probeAll()
  await vi.advanceTimersByTimeAsync(0)
  return { far, health, guard, changes, lines, tried, state: () => health.statusOf('x') }
}

type Started = Awaited<ReturnType<typeof start>>

/** Fails calls until the server counts as down. */
const bringDown = async ({ far, guard, state }: Started): Promise<void> => {
  far.opening = far.answering = far.probing = REFUSED
  while (state().state !== 'down') {
    void callThrough(guard).sent
    await vi.advanceTimersByTimeAsync(600)
  }
}

describe('a process per user', () => {
  test.each([
    ['ends or hangs is not the server going down', undefined, 'upstream_lost', 'ready'],
    ['cannot start is', undefined, 'upstream_unreachable', 'down'],
    ['is shared by everyone and ends is', 'everyone', 'upstream_lost', 'down'],
  ] as const)('that %s', async (_, share, reason, expected) => {
    const { far, guard, state } = await start({ ...PROCESS, share })
    far.answering = lossOf(reason)
    for (let i = 0; i < 4; i++) {
      await callThrough(guard, 'tools/call', 'alice').sent
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(state().state).toBe(expected)
  })
})

test('a server that the gateway disconnects from, as after a logout, is not going down', async () => {
  const { far, guard, state } = await start()
  const { code, message, data } = lossOf('upstream_lost')
  far.answering = new NoAnswer({ code, message, data }, { isClosing: true })
  for (let i = 0; i < 4; i++) {
    await callThrough(guard, 'tools/call', 'alice').sent
    await vi.advanceTimersByTimeAsync(10)
  }
  expect(state().state).toBe('ready')
})

describe('a server is', () => {
  test('ready once it has answered, with its revision and its number of tools', async () => {
    const { state, tried } = await start()
    await tried
    expect(state()).toMatchObject({ name: 'x', state: 'ready', tools: 1, since: Date.now() })
  })

  test.each([
    ['as soon as its lists are read', 0, [Json.of({ name: 't' })]],
    ['after five seconds if its lists are not', 1, undefined],
  ])('ready %s', async (_, waitMs, tools) => {
    const health = createHealth(Json.of({ name: 'test' }))
    let read: (tools: readonly Json[]) => void = () => {}
    health.add(REMOTE, farSide().upstream, { readLists: () => new Promise(resolve => (read = resolve)) })
    void health.probeAll()
    await vi.advanceTimersByTimeAsync(4999)
    expect(health.statusOf('x')).toMatchObject({ state: 'connecting', reason: undefined })
    if (tools) read(tools)
    await vi.advanceTimersByTimeAsync(waitMs)
    expect(health.statusOf('x')).toMatchObject({ state: 'ready', tools: tools?.length })
    health.close()
  })

  test('degraded with the reason when it fails the handshake of a caller, until it accepts one', async () => {
    const { far, guard, state } = await start()
    far.opening = lossOf('upstream_protocol')
    await callThrough(guard).sent
    expect(state()).toMatchObject({ state: 'degraded', reason: far.opening.message })
    far.opening = 'well'
    await callThrough(guard).sent
    expect(state()).toMatchObject({ state: 'ready', reason: undefined })
  })

  test('down when the first probe fails, and ready when a later probe succeeds', async () => {
    const { far, state, changes, health } = await start(REMOTE, far => {
      far.opening = REFUSED
    })
    expect(state()).toMatchObject({ state: 'down', reason: REFUSED.message, retryAt: expect.any(Number) })
    expect(health.isUp('x')).toBe(false)
    await vi.advanceTimersByTimeAsync(30_000)
    expect(far.opens).toBeGreaterThanOrEqual(4)
    expect(far.opens).toBeLessThan(9)
    far.opening = 'well'
    await vi.advanceTimersByTimeAsync(60_000)
    expect(state()).toMatchObject({ state: 'ready', tools: 1 })
    expect(changes.map(({ state }) => state)).toEqual(['down', 'ready'])
  })

  test('down when it does not answer the first probe within ten seconds', async () => {
    const { tried, state } = await start(REMOTE, far => {
      far.opening = 'silent'
    })
    await vi.advanceTimersByTimeAsync(10_000)
    await tried
    expect(state()).toMatchObject({ state: 'down', reason: 'Server "x" gave no answer within 10 s' })
  })

  test('still connecting while its process takes long to start, and calls wait for it', async () => {
    const { far, tried, state, health } = await start(PROCESS, far => {
      far.opening = 'silent'
    })
    await vi.advanceTimersByTimeAsync(10_000)
    await tried
    expect(state()).toMatchObject({ state: 'connecting', reason: expect.stringContaining('10 s so far') })
    expect([health.isUp('x'), far.opens]).toEqual([true, 1])
    await vi.advanceTimersByTimeAsync(80_000)
    expect(state().state).toBe('down')
  })

  test('degraded, but still called, when it rejects the credentials of the gateway or answers with errors', async () => {
    for (const error of [lossOf('upstream_auth'), rpcError('invalidRequest', 'go away')]) {
      const { far, guard, state } = await start(REMOTE, far => {
        far.answering = error
      })
      expect(state()).toMatchObject({ state: 'degraded', reason: error.message })
      far.answering = 'well'
      expect(await callThrough(guard).error()).toBeUndefined()
      expect(state().state).toBe('ready')
    }
  })

  test('untried, but still called, when only callers have credentials for it', async () => {
    const { far, guard, health, state, lines } = await start(REMOTE, far => {
      far.opening = lossOf('no_credentials')
    })
    expect(state()).toMatchObject({ state: 'untried', reason: 'credentials are per caller' })
    expect(health.isUp('x')).toBe(true)
    await vi.advanceTimersByTimeAsync(600_000)
    expect([far.opens, far.probes, state().state]).toEqual([1, 0, 'untried'])
    far.opening = 'well'
    expect(await callThrough(guard).error()).toBeUndefined()
    expect(state()).toMatchObject({ state: 'ready', reason: undefined })
    expect(lines.map(({ level }) => level)).toEqual(['debug', 'debug'])
  })

  test('down when callers could not reach it, and tried again by the next call', async () => {
    const started = await start()
    const { far, guard, state } = started
    await bringDown(started)
    far.opening = lossOf('no_credentials')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(state().state).toBe('untried')
    far.opening = far.answering = 'well'
    expect(await callThrough(guard).error()).toBeUndefined()
    expect(state().state).toBe('ready')
  })

  test('never probed when it is disabled or cannot be served', async () => {
    const unservable = { name: 'x', disabled: false, kind: 'unavailable', reason: 'KEY is not set' } as const
    for (const config of [{ ...REMOTE, disabled: true }, unservable]) {
      const { far, health, state } = await start(config)
      await vi.advanceTimersByTimeAsync(600_000)
      expect([far.opens, far.probes, health.isUp('x'), vi.getTimerCount()]).toEqual([0, 0, false, 0])
      expect(state().state).toBe(config.disabled ? 'disabled' : 'unavailable')
    }
  })
})

describe('while a server is down', () => {
  test('calls fail at once with its name, what happened, since when, and when it is tried again', async () => {
    const started = await start()
    await bringDown(started)
    const since = new Date(started.state().since as number).toISOString()
    const error = await callThrough(started.guard).error()
    expect(error?.code).toBe(-32603)
    expect(error?.message).toMatch(
      /^Server "x" upstream_unreachable\. It has been down since 2.* and is tried again in/,
    )
    expect(error?.message).toContain(since)
    expect(error?.data?.toValue()).toMatchObject({ reason: 'upstream_unreachable', upstream: 'x' })
    expect(started.state().figures).toMatchObject({ openings: 1 })
  })

  test('a call on a peer opened before fails at once, too', async () => {
    const started = await start()
    const peer = await started.guard.open({ ...CALLER })
    await bringDown(started)
    const before = started.far.calls.length
    const frames: unknown[] = []
    peer.dispatch({ ...REQUEST, sink: frame => void frames.push(frame) })
    expect(frames).toMatchObject([{ kind: 'failure', error: { message: expect.stringContaining('has been down') } }])
    expect(started.far.calls.length).toBe(before)
  })

  test('many calls share one probe at a time, and at most one per second', async () => {
    const started = await start()
    await bringDown(started)
    await vi.advanceTimersByTimeAsync(1000)
    const before = started.far.opens
    for (let i = 0; i < 100; i++) {
      await Promise.all(Array.from({ length: 10 }, () => callThrough(started.guard).error()))
      await vi.advanceTimersByTimeAsync(50)
    }
    expect(started.far.opens - before).toBeLessThanOrEqual(6)
  })

  test('a caller is served as soon as the server is back, without waiting for the next scheduled probe', async () => {
    const started = await start()
    await bringDown(started)
    await vi.advanceTimersByTimeAsync(40_000)
    started.far.opening = started.far.answering = 'well'
    await vi.advanceTimersByTimeAsync(1000)
    expect(await callThrough(started.guard).error()).toBeUndefined()
    expect(started.state().state).toBe('ready')
  })

  test('a caller waits at most a second for a slow probe', async () => {
    const started = await start()
    await bringDown(started)
    started.far.opening = 'silent'
    await vi.advanceTimersByTimeAsync(1000)
    const call = callThrough(started.guard)
    await vi.advanceTimersByTimeAsync(1000)
    expect((await call.error())?.message).toContain('has been down')
    expect((await callThrough(started.guard).error())?.message).toContain('has been down')
  })

  test('queued calls fail at once', async () => {
    const started = await start({ ...REMOTE, concurrency: 1 })
    const { far, guard, state } = started
    far.answering = 'silent'
    const [running, waiting] = [callThrough(guard), callThrough(guard)]
    await Promise.all([running.sent, waiting.sent])
    expect(state().figures).toMatchObject({ running: 1, waiting: 1 })
    far.probing = REFUSED
    await vi.advanceTimersByTimeAsync(1)
    void far.calls[0]?.sink({ kind: 'failure', error: lossOf('upstream_timeout') })
    expect(state().figures).toMatchObject({ running: 1, waiting: 0 })
    const third = callThrough(guard)
    await third.sent
    await vi.advanceTimersByTimeAsync(10_000)
    expect((await third.error())?.message).toContain('has been down')
  })
})

const CALLER = {
  workspace: 'w',
  principal: 'p',
  revision: MODERN,
  capabilities: Json.empty,
  headers: new Map<string, string>(),
}
const REQUEST = {
  kind: 'request',
  method: 'tools/call',
  params: Json.empty,
  caller: CALLER,
  signal: { reason: undefined, onAbort: () => () => {} },
} as const

describe('what counts as a failure', () => {
  test('errors of the server, of a tool, or about one caller never bring it down', async () => {
    const { far, guard, state } = await start()
    for (const error of [rpcError('internal', 'boom'), rpcError('invalidParams'), lossOf('upstream_auth')]) {
      far.answering = error
      for (let i = 0; i < 20; i++) expect(await callThrough(guard).error()).toBe(error)
      expect(state().state).toBe('ready')
    }
  })

  test('an error of the server that claims an outage does not open the circuit', async () => {
    const { far, guard, state } = await start()
    far.answering = rpcError('internal', 'x', Json.of({ reason: 'upstream_unreachable', upstream: 'x' }))
    for (let i = 0; i < 20; i++) await callThrough(guard).sent
    expect(state().state).toBe('ready')
  })

  test('a hundred calls that fail together are one failure, and a liveness check finds the server healthy', async () => {
    const { far, guard, state, changes } = await start()
    far.answering = 'silent'
    await Promise.all(Array.from({ length: 100 }, () => callThrough(guard).sent))
    await vi.advanceTimersByTimeAsync(1)
    for (const call of far.calls) void call.sink({ kind: 'failure', error: lossOf('upstream_stream_lost') })
    expect(state()).toMatchObject({ state: 'degraded', reason: 'Server "x" upstream_stream_lost' })
    await vi.advanceTimersByTimeAsync(2000)
    expect(changes.map(({ state }) => state)).toEqual(['ready', 'degraded', 'ready'])
    expect(far.probes).toBe(1)
  })

  test('the failure of a process that belongs to one caller does not affect other callers', async () => {
    const { far, guard, state } = await start({ ...PROCESS, personal: { values: {} } }, far => {
      far.opening = REFUSED
    })
    expect(state()).toMatchObject({ state: 'degraded', reason: REFUSED.message })
    far.opening = 'well'
    expect(await callThrough(guard, 'tools/call', 'other').error()).toBeUndefined()
    far.opening = REFUSED
    for (let i = 0; i < 10; i++) {
      expect(await callThrough(guard, 'tools/call', 'unlucky').error()).toBe(REFUSED)
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(state().state).toBe('ready')
  })

  test('an answer from the memory of a legacy session is no sign of health', async () => {
    const { far, guard, state } = await start()
    far.answering = lossOf('upstream_timeout')
    await callThrough(guard).sent
    far.answering = 'well'
    await callThrough(guard, 'server/discover').sent
    expect(state().state).toBe('degraded')
    await callThrough(guard, 'tools/list').sent
    expect(state().state).toBe('ready')
  })

  test('any notification is a sign of life', async () => {
    const started = await start()
    const listen = callThrough(started.guard, 'subscriptions/listen')
    await listen.sent
    await bringDown(started)
    const standing = started.far.calls.find(({ method }) => method === 'subscriptions/listen')
    void standing?.sink({ kind: 'notice', method: 'notifications/tools/list_changed', params: Json.empty })
    expect(started.state().state).toBe('ready')
    expect(listen.frames).toHaveLength(1)
  })
})

describe('liveness checks', () => {
  test('run about every half minute, unless calls were answered meanwhile', async () => {
    const { far, guard } = await start()
    await vi.advanceTimersByTimeAsync(300_000)
    expect(far.probes).toBeGreaterThanOrEqual(7)
    expect(far.probes).toBeLessThanOrEqual(13)
    const before = far.probes
    for (let i = 0; i < 30; i++) {
      await callThrough(guard).sent
      await vi.advanceTimersByTimeAsync(10_000)
    }
    expect(far.probes).toBe(before)
    expect(far.opens).toBe(31)
  })

  test('detect that a server is gone, and that it is back', async () => {
    const { far, state, changes } = await start()
    far.opening = far.probing = REFUSED
    await vi.advanceTimersByTimeAsync(45_000)
    expect(state()).toMatchObject({ state: 'down', reason: REFUSED.message })
    far.opening = far.probing = 'well'
    await vi.advanceTimersByTimeAsync(60_000)
    expect(changes.map(({ state }) => state)).toEqual(['ready', 'degraded', 'down', 'ready'])
  })

  test('start no process', async () => {
    const { far, state } = await start(PROCESS, far => {
      far.probing = 'nothing'
    })
    await vi.advanceTimersByTimeAsync(600_000)
    expect([far.opens, state().state]).toEqual([1, 'ready'])
    expect(far.probes).toBeGreaterThan(10)
  })

  test('without an answer count as failures', async () => {
    const { far, state } = await start()
    far.probing = far.opening = 'silent'
    await vi.advanceTimersByTimeAsync(38_000 + 3 * 12_000)
    expect(state()).toMatchObject({ state: 'down', reason: 'Server "x" gave no answer within 10 s' })
  })

  test('stop when the server is closed: no timer is left', async () => {
    const started = await start()
    await bringDown(started)
    await started.guard.close()
    expect(started.far.closes).toBe(1)
    const before = [started.far.opens, started.far.probes]
    await vi.advanceTimersByTimeAsync(600_000)
    expect([started.far.opens, started.far.probes]).toEqual(before)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('the log', () => {
  test('has one line for each change, with server, from, to and reason', async () => {
    const started = await start()
    await bringDown(started)
    started.far.opening = started.far.answering = started.far.probing = 'well'
    await vi.advanceTimersByTimeAsync(300_000)
    const said = started.lines.map(({ level, fields: { server, from, to } }) => [level, server, from, to])
    expect(said).toEqual([
      ['debug', 'x', 'connecting', 'ready'],
      ['warn', 'x', 'ready', 'degraded'],
      ['warn', 'x', 'degraded', 'down'],
      ['info', 'x', 'down', 'ready'],
    ])
    expect(started.lines[2]?.fields.reason).toBe(REFUSED.message)
  })

  test('is not flooded by a server that keeps changing, and ends with its last state', async () => {
    const { far, guard, lines, state } = await start()
    for (let i = 0; i < 600; i++) {
      far.answering = i % 2 === 0 ? lossOf('upstream_stream_lost') : 'well'
      await callThrough(guard).sent
      await vi.advanceTimersByTimeAsync(100)
    }
    expect(lines.length).toBeLessThan(12)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(lines.at(-1)?.fields.to).toBe(state().state)
  })
})

test('a server that replaces another starts afresh, and changes of the old one are not reported', async () => {
  const { far, health, guard, changes, state } = await start()
  const other = farSide()
  health.add(REMOTE, other.upstream)
  await health.probeAll()
  expect(state().state).toBe('ready')
  changes.length = 0
  far.answering = REFUSED
  for (let i = 0; i < 5; i++) {
    await callThrough(guard).sent
    await vi.advanceTimersByTimeAsync(1)
  }
  expect([changes, state().state]).toEqual([[], 'ready'])
  health.remove('x')
  expect([health.statusOf('x').state, health.isUp('x')]).toEqual(['unavailable', false])
})
