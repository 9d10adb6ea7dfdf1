import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { callThrough, farSide, lossOf, PROCESS, REMOTE } from '../../test/support/health.ts'
import { createTestLog } from '../../test/support/log.ts'
import type { ServerConfig } from '../config/snapshot.ts'
import { rpcError } from '../protocol/errors.ts'
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
  const gate = health.add(config, far.upstream)
  const tried = health.probeAll()
  await vi.advanceTimersByTimeAsync(0)
  return { far, health, gate, changes, lines, tried, state: () => health.statusOf('x') }
}

type Started = Awaited<ReturnType<typeof start>>

/** Fails calls until the server counts as down. */
const bringDown = async ({ far, gate, state }: Started): Promise<void> => {
  far.opening = far.answering = far.looking = REFUSED
  while (state().state !== 'down') {
    void callThrough(gate).sent
    await vi.advanceTimersByTimeAsync(600)
  }
}

describe('a process per user', () => {
  test.each([
    ['ends or hangs is not the server going down', undefined, 'upstream_lost', 'ready'],
    ['cannot start is', undefined, 'upstream_unreachable', 'down'],
    ['is shared by everyone and ends is', 'everyone', 'upstream_lost', 'down'],
  ] as const)('that %s', async (_, share, reason, expected) => {
    const { far, gate, state } = await start({ ...PROCESS, share })
    far.answering = lossOf(reason)
    for (let i = 0; i < 4; i++) {
      await callThrough(gate, 'tools/call', 'alice').sent
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(state().state).toBe(expected)
  })
})

describe('a server is', () => {
  test('ready once it answered, with what it said of itself', async () => {
    const { state, tried } = await start()
    await tried
    expect(state()).toMatchObject({ name: 'x', state: 'ready', tools: 1, since: Date.now() })
  })

  test('degraded with the reason when it refuses the handshake of a caller, until it lets one in', async () => {
    const { far, gate, state } = await start()
    far.opening = lossOf('upstream_protocol')
    await callThrough(gate).sent
    expect(state()).toMatchObject({ state: 'degraded', reason: far.opening.message })
    far.opening = 'well'
    await callThrough(gate).sent
    expect(state()).toMatchObject({ state: 'ready', reason: undefined })
  })

  test('down when the first try found nobody, and ready by itself when a later one does', async () => {
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

  test('down when it is silent for ten seconds at first', async () => {
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

  test('degraded, and asked all the same, when it refuses our credentials or answers with errors', async () => {
    for (const error of [lossOf('upstream_auth'), rpcError('invalidRequest', 'go away')]) {
      const { far, gate, state } = await start(REMOTE, far => {
        far.answering = error
      })
      expect(state()).toMatchObject({ state: 'degraded', reason: error.message })
      far.answering = 'well'
      expect(await callThrough(gate).error()).toBeUndefined()
      expect(state().state).toBe('ready')
    }
  })

  test('untried, and asked all the same, when only callers have credentials for it', async () => {
    const { far, gate, health, state, lines } = await start(REMOTE, far => {
      far.opening = lossOf('no_credentials')
    })
    expect(state()).toMatchObject({ state: 'untried', reason: 'credentials are per caller' })
    expect(health.isUp('x')).toBe(true)
    await vi.advanceTimersByTimeAsync(600_000)
    expect([far.opens, far.looks, state().state]).toEqual([1, 0, 'untried'])
    far.opening = 'well'
    expect(await callThrough(gate).error()).toBeUndefined()
    expect(state()).toMatchObject({ state: 'ready', reason: undefined })
    expect(lines.map(({ level }) => level)).toEqual(['debug', 'debug'])
  })

  test('down for callers who could not reach it, and theirs to try again', async () => {
    const started = await start()
    const { far, gate, state } = started
    await bringDown(started)
    far.opening = lossOf('no_credentials')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(state().state).toBe('untried')
    far.opening = far.answering = 'well'
    expect(await callThrough(gate).error()).toBeUndefined()
    expect(state().state).toBe('ready')
  })

  test('neither tried nor looked at when it is disabled or cannot be served', async () => {
    const unservable = { name: 'x', disabled: false, kind: 'unavailable', reason: 'KEY is not set' } as const
    for (const config of [{ ...REMOTE, disabled: true }, unservable]) {
      const { far, health, state } = await start(config)
      await vi.advanceTimersByTimeAsync(600_000)
      expect([far.opens, far.looks, health.isUp('x'), vi.getTimerCount()]).toEqual([0, 0, false, 0])
      expect(state().state).toBe(config.disabled ? 'disabled' : 'unavailable')
    }
  })
})

describe('while a server is down', () => {
  test('calls fail at once with its name, what happened, since when, and when it is tried again', async () => {
    const started = await start()
    await bringDown(started)
    const since = new Date(started.state().since as number).toISOString()
    const error = await callThrough(started.gate).error()
    expect(error?.code).toBe(-32603)
    expect(error?.message).toMatch(
      /^Server "x" upstream_unreachable\. It has been down since 2.* and is tried again in/,
    )
    expect(error?.message).toContain(since)
    expect(error?.data?.toValue()).toMatchObject({ reason: 'upstream_unreachable', upstream: 'x' })
    expect(started.state().figures).toMatchObject({ openings: 1 })
  })

  test('a call on a conversation from before fails at once too', async () => {
    const started = await start()
    const peer = await started.gate.open({ ...CALLER })
    await bringDown(started)
    const before = started.far.calls.length
    const frames: unknown[] = []
    peer.dispatch({ ...REQUEST, sink: frame => void frames.push(frame) })
    expect(frames).toMatchObject([{ kind: 'failure', error: { message: expect.stringContaining('has been down') } }])
    expect(started.far.calls.length).toBe(before)
  })

  test('however many call, there is one try at a time and at most one in a second', async () => {
    const started = await start()
    await bringDown(started)
    await vi.advanceTimersByTimeAsync(1000)
    const before = started.far.opens
    for (let i = 0; i < 100; i++) {
      await Promise.all(Array.from({ length: 10 }, () => callThrough(started.gate).error()))
      await vi.advanceTimersByTimeAsync(50)
    }
    expect(started.far.opens - before).toBeLessThanOrEqual(6)
  })

  test('a caller who comes when it is back again is served, without waiting for the next try', async () => {
    const started = await start()
    await bringDown(started)
    await vi.advanceTimersByTimeAsync(40_000)
    started.far.opening = started.far.answering = 'well'
    await vi.advanceTimersByTimeAsync(1000)
    expect(await callThrough(started.gate).error()).toBeUndefined()
    expect(started.state().state).toBe('ready')
  })

  test('a caller waits no longer than a second for a try that lasts', async () => {
    const started = await start()
    await bringDown(started)
    started.far.opening = 'silent'
    await vi.advanceTimersByTimeAsync(1000)
    const call = callThrough(started.gate)
    await vi.advanceTimersByTimeAsync(1000)
    expect((await call.error())?.message).toContain('has been down')
    expect((await callThrough(started.gate).error())?.message).toContain('has been down')
  })

  test('those who wait for their turn are told at once', async () => {
    const started = await start({ ...REMOTE, concurrency: 1 })
    const { far, gate, state } = started
    far.answering = 'silent'
    const [running, waiting] = [callThrough(gate), callThrough(gate)]
    await Promise.all([running.sent, waiting.sent])
    expect(state().figures).toMatchObject({ running: 1, waiting: 1 })
    far.looking = REFUSED
    await vi.advanceTimersByTimeAsync(1)
    void far.calls[0]?.sink({ kind: 'failure', error: lossOf('upstream_timeout') })
    expect(state().figures).toMatchObject({ running: 1, waiting: 0 })
    const third = callThrough(gate)
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
    const { far, gate, state } = await start()
    for (const error of [rpcError('internal', 'boom'), rpcError('invalidParams'), lossOf('upstream_auth')]) {
      far.answering = error
      for (let i = 0; i < 20; i++) expect(await callThrough(gate).error()).toBe(error)
      expect(state().state).toBe('ready')
    }
  })

  test('a server cannot take itself down by claiming to be', async () => {
    const { far, gate, state } = await start()
    far.answering = rpcError('internal', 'x', Json.of({ reason: 'upstream_unreachable', upstream: 'x' }))
    for (let i = 0; i < 20; i++) await callThrough(gate).sent
    expect(state().state).toBe('ready')
  })

  test('a hundred calls that fail together are one failure, and a look finds the server well', async () => {
    const { far, gate, state, changes } = await start()
    far.answering = 'silent'
    await Promise.all(Array.from({ length: 100 }, () => callThrough(gate).sent))
    await vi.advanceTimersByTimeAsync(1)
    for (const call of far.calls) void call.sink({ kind: 'failure', error: lossOf('upstream_stream_lost') })
    expect(state()).toMatchObject({ state: 'degraded', reason: 'Server "x" upstream_stream_lost' })
    await vi.advanceTimersByTimeAsync(2000)
    expect(changes.map(({ state }) => state)).toEqual(['ready', 'degraded', 'ready'])
    expect(far.looks).toBe(1)
  })

  test("a process that one caller alone has, started in that caller's name, says nothing about those of others", async () => {
    const { far, gate, state } = await start({ ...PROCESS, personal: { values: {} } }, far => {
      far.opening = REFUSED
    })
    expect(state()).toMatchObject({ state: 'degraded', reason: REFUSED.message })
    far.opening = 'well'
    expect(await callThrough(gate, 'tools/call', 'somebody').error()).toBeUndefined()
    far.opening = REFUSED
    for (let i = 0; i < 10; i++) {
      expect(await callThrough(gate, 'tools/call', 'unlucky').error()).toBe(REFUSED)
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(state().state).toBe('ready')
  })

  test('what an old session remembers says nothing about its server', async () => {
    const { far, gate, state } = await start()
    far.answering = lossOf('upstream_timeout')
    await callThrough(gate).sent
    far.answering = 'well'
    await callThrough(gate, 'server/discover').sent
    expect(state().state).toBe('degraded')
    await callThrough(gate, 'tools/list').sent
    expect(state().state).toBe('ready')
  })

  test('whatever it says unasked is a sign of life', async () => {
    const started = await start()
    const listen = callThrough(started.gate, 'subscriptions/listen')
    await listen.sent
    await bringDown(started)
    const standing = started.far.calls.find(({ method }) => method === 'subscriptions/listen')
    void standing?.sink({ kind: 'notice', method: 'notifications/tools/list_changed', params: Json.empty })
    expect(started.state().state).toBe('ready')
    expect(listen.frames).toHaveLength(1)
  })
})

describe('looks', () => {
  test('come every half minute or so, and not where calls were answered meanwhile', async () => {
    const { far, gate } = await start()
    await vi.advanceTimersByTimeAsync(300_000)
    expect(far.looks).toBeGreaterThanOrEqual(7)
    expect(far.looks).toBeLessThanOrEqual(13)
    const before = far.looks
    for (let i = 0; i < 30; i++) {
      await callThrough(gate).sent
      await vi.advanceTimersByTimeAsync(10_000)
    }
    expect(far.looks).toBe(before)
    expect(far.opens).toBe(31)
  })

  test('find out by themselves that a server went away, and that it is back', async () => {
    const { far, state, changes } = await start()
    far.opening = far.looking = REFUSED
    await vi.advanceTimersByTimeAsync(45_000)
    expect(state()).toMatchObject({ state: 'down', reason: REFUSED.message })
    far.opening = far.looking = 'well'
    await vi.advanceTimersByTimeAsync(60_000)
    expect(changes.map(({ state }) => state)).toEqual(['ready', 'degraded', 'down', 'ready'])
  })

  test('start nothing where there is no process to be asked', async () => {
    const { far, state } = await start(PROCESS, far => {
      far.looking = 'nothing'
    })
    await vi.advanceTimersByTimeAsync(600_000)
    expect([far.opens, state().state]).toEqual([1, 'ready'])
    expect(far.looks).toBeGreaterThan(10)
  })

  test('that get no answer count as failures', async () => {
    const { far, state } = await start()
    far.looking = far.opening = 'silent'
    await vi.advanceTimersByTimeAsync(38_000 + 3 * 12_000)
    expect(state()).toMatchObject({ state: 'down', reason: 'Server "x" gave no answer within 10 s' })
  })

  test('end with the server: nothing is left running', async () => {
    const started = await start()
    await bringDown(started)
    await started.gate.close()
    expect(started.far.closes).toBe(1)
    const before = [started.far.opens, started.far.looks]
    await vi.advanceTimersByTimeAsync(600_000)
    expect([started.far.opens, started.far.looks]).toEqual(before)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('the log', () => {
  test('has one line for each change, with server, from, to and reason', async () => {
    const started = await start()
    await bringDown(started)
    started.far.opening = started.far.answering = started.far.looking = 'well'
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

  test('is not flooded by a server that keeps changing, and ends with how it is', async () => {
    const { far, gate, lines, state } = await start()
    for (let i = 0; i < 600; i++) {
      far.answering = i % 2 === 0 ? lossOf('upstream_stream_lost') : 'well'
      await callThrough(gate).sent
      await vi.advanceTimersByTimeAsync(100)
    }
    expect(lines.length).toBeLessThan(12)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(lines.at(-1)?.fields.to).toBe(state().state)
  })
})

test('a server in the place of another starts anew, and what the old one does is not told any more', async () => {
  const { far, health, gate, changes, state } = await start()
  const other = farSide()
  health.add(REMOTE, other.upstream)
  await health.probeAll()
  expect(state().state).toBe('ready')
  changes.length = 0
  far.answering = REFUSED
  for (let i = 0; i < 5; i++) {
    await callThrough(gate).sent
    await vi.advanceTimersByTimeAsync(1)
  }
  expect([changes, state().state]).toEqual([[], 'ready'])
  health.remove('x')
  expect([health.statusOf('x').state, health.isUp('x')]).toEqual(['unavailable', false])
})
