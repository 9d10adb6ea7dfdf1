import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BREAK_AFTER, downError, type HealthEvent, type HealthState, isUp, nextProbeMs, step } from './state.ts'

const FAULT = { reason: 'upstream_unreachable', message: 'Server "x" did not answer' }
const NOW = 1_000_000
const MOMENT = { now: NOW, random: 1 }

const STATES = {
  connecting: { kind: 'connecting', since: 0 },
  untried: { kind: 'untried', since: 0, fault: FAULT, tries: 1 },
  ready: { kind: 'ready', since: 0, tries: 0 },
  degraded: { kind: 'degraded', since: 0, fault: FAULT, failures: 1, failedAt: 500, tries: 0 },
  failing: { kind: 'degraded', since: 0, fault: FAULT, failures: BREAK_AFTER - 1, failedAt: 500, tries: 0 },
  down: { kind: 'down', since: 0, fault: FAULT, tries: 1, retryAt: 900 },
  disabled: { kind: 'disabled', since: 0 },
  unavailable: { kind: 'unavailable', since: 0, fault: FAULT },
} as const satisfies Record<string, HealthState>

const EVENTS = {
  answered: { kind: 'answered' },
  failed: { kind: 'failed', fault: FAULT, begun: NOW - 1 },
  'failed with others': { kind: 'failed', fault: FAULT, begun: 499 },
  probeFailed: { kind: 'probeFailed', fault: FAULT },
  probeRejected: { kind: 'probeRejected', fault: FAULT },
  probeSlow: { kind: 'probeSlow', fault: FAULT },
  notProbed: { kind: 'notProbed', fault: FAULT },
} as const satisfies Record<string, HealthEvent>

/** The state after each event; a dash: the very same object. */
const TABLE: Record<keyof typeof STATES, Record<keyof typeof EVENTS, HealthState['kind'] | '-'>> = {
  connecting: {
    answered: 'ready',
    failed: '-',
    'failed with others': '-',
    probeFailed: 'down',
    probeRejected: 'degraded',
    probeSlow: 'connecting',
    notProbed: 'untried',
  },
  untried: {
    answered: 'ready',
    failed: 'degraded',
    'failed with others': 'degraded',
    probeFailed: 'down',
    probeRejected: 'degraded',
    probeSlow: '-',
    notProbed: '-',
  },
  ready: {
    answered: '-',
    failed: 'degraded',
    'failed with others': 'degraded',
    probeFailed: 'down',
    probeRejected: '-',
    probeSlow: '-',
    notProbed: '-',
  },
  degraded: {
    answered: 'ready',
    failed: 'degraded',
    'failed with others': '-',
    probeFailed: 'down',
    probeRejected: 'degraded',
    probeSlow: '-',
    notProbed: '-',
  },
  failing: {
    answered: 'ready',
    failed: 'down',
    'failed with others': '-',
    probeFailed: 'down',
    probeRejected: 'degraded',
    probeSlow: '-',
    notProbed: '-',
  },
  down: {
    answered: 'ready',
    failed: '-',
    'failed with others': '-',
    probeFailed: 'down',
    probeRejected: 'degraded',
    probeSlow: '-',
    notProbed: 'untried',
  },
  disabled: {
    answered: '-',
    failed: '-',
    'failed with others': '-',
    probeFailed: '-',
    probeRejected: '-',
    probeSlow: '-',
    notProbed: '-',
  },
  unavailable: {
    answered: '-',
    failed: '-',
    'failed with others': '-',
    probeFailed: '-',
    probeRejected: '-',
    probeSlow: '-',
    notProbed: '-',
  },
}

describe('the state of a server', () => {
  for (const [from, row] of Object.entries(TABLE))
    for (const [event, to] of Object.entries(row))
      test(`${from}, ${event} → ${to === '-' ? 'the same' : to}`, () => {
        const before = STATES[from as keyof typeof STATES]
        const after = step(before, EVENTS[event as keyof typeof EVENTS], MOMENT)
        if (to === '-') expect(after).toBe(before)
        else expect([after.kind, after === before]).toEqual([to, false])
      })

  test('keeps its start through failures and probes', () => {
    expect(step(STATES.degraded, EVENTS.failed, MOMENT)).toMatchObject({ since: 0, failures: 2, failedAt: NOW })
    expect(step(STATES.down, EVENTS.probeFailed, MOMENT)).toMatchObject({ since: 0, tries: 2, retryAt: NOW + 2000 })
    expect(step(STATES.failing, EVENTS.failed, MOMENT)).toMatchObject({ since: NOW, tries: 1, retryAt: NOW + 1000 })
    expect(step(STATES.down, EVENTS.answered, MOMENT)).toMatchObject({ since: NOW })
  })

  test('an outage soon after the last one continues its backoff; one after a steady minute starts afresh', () => {
    const back = step(STATES.down, EVENTS.answered, MOMENT)
    expect(step(back, EVENTS.probeFailed, { now: NOW + 59_999, random: 1 })).toMatchObject({ tries: 2 })
    expect(step(back, EVENTS.probeFailed, { now: NOW + 60_000, random: 1 })).toMatchObject({ tries: 1 })
  })

  test('after any events, calls are rejected exactly while the server is down, and a disabled one stays disabled', () => {
    const events = fc.array(fc.constantFrom(...Object.values<HealthEvent>(EVENTS)), { maxLength: 40 })
    const states = fc.constantFrom(...Object.values<HealthState>(STATES))
    fc.assert(
      fc.property(states, events, (first, happened) => {
        let now = NOW
        const last = happened.reduce((state, event) => step(state, event, { now: now++, random: 0.5 }), first)
        expect(isUp(last)).toBe(!['down', 'disabled', 'unavailable'].includes(last.kind))
        if (first.kind === 'disabled' || first.kind === 'unavailable') expect(last).toBe(first)
        if (last.kind === 'degraded') expect(last.failures).toBeLessThan(BREAK_AFTER)
        if (last.kind === 'down' && last !== first) expect(last.retryAt).toBeGreaterThan(NOW)
      }),
    )
  })
})

describe('probes', () => {
  test('the delay before a retry doubles each time, up to a minute, with a jitter of its upper half', () => {
    const delayMs = (tries: number, random: number): number => {
      const state = step({ ...STATES.down, tries: tries - 1 }, EVENTS.probeFailed, { now: NOW, random })
      return state.kind === 'down' ? state.retryAt - NOW : Number.NaN
    }
    expect([1, 2, 3, 6, 7, 8, 99].map(tries => delayMs(tries, 1) / 1000)).toEqual([1, 2, 4, 32, 60, 60, 60])
    expect([delayMs(1, 0), delayMs(99, 0)]).toEqual([500, 30_000])
  })

  test('a ready server is probed rarely, a degraded one soon, one that is down at its retry time', () => {
    expect(nextProbeMs(STATES.ready, NOW, 0.5)).toBe(30_000)
    expect([0, 1].map(random => nextProbeMs(STATES.ready, NOW, random))).toEqual([22_500, 37_500])
    expect(nextProbeMs(STATES.degraded, NOW, 0.5)).toBe(1000)
    expect(nextProbeMs({ ...STATES.degraded, failures: 0 }, NOW, 0.5)).toBe(60_000)
    expect(nextProbeMs(STATES.down, 800, 0.5)).toBe(100)
    expect(nextProbeMs(STATES.down, NOW, 0.5)).toBe(0)
  })

  test('no probe is scheduled for a server that is disabled, unavailable, connecting or untried', () => {
    for (const state of [STATES.disabled, STATES.unavailable, STATES.connecting, STATES.untried])
      expect(nextProbeMs(state, NOW, 0.5)).toBeUndefined()
  })
})

test('the error of a server that is down has the cause, the start and the retry time', () => {
  const outage = { fault: FAULT, since: Date.UTC(2030, 0, 1), retryAt: Date.UTC(2030, 0, 1, 0, 0, 12) }
  const error = downError('x', outage, Date.UTC(2030, 0, 1, 0, 0, 1))
  expect(error).toMatchObject({
    code: -32603,
    message: 'Server "x" did not answer. It has been down since 2030-01-01T00:00:00.000Z and is tried again in 11 s',
  })
  expect(error.data?.toValue()).toEqual({ reason: 'upstream_unreachable', upstream: 'x', retryAfterMs: 11_000 })
  expect(downError('x', outage, outage.retryAt).message).toContain('is being tried again now')
})

test('a server that only lacks a replica is looked for each second, and calls may be sent meanwhile', () => {
  const fault = { reason: 'no_replica', message: 'Server "x" runs on no replica' }
  let state: HealthState = STATES.connecting
  for (let i = 0; i < 10; i++) state = step(state, { kind: 'probeFailed', fault }, MOMENT)
  expect(state).toMatchObject({ kind: 'down', retryAt: NOW + 1000 })
  expect(isUp(state)).toBe(true)
  expect(isUp(STATES.down)).toBe(false)
})
