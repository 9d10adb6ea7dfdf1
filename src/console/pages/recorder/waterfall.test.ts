import { describe, expect, test } from 'vitest'
import type { Recording } from '../../../admin/api/recorder.ts'
import { readRecordedMessages } from './align.ts'
import { parkedRecording, recordedMessage, recordingOf, retryRecording } from './recording.fixture.ts'
import { ticksOf, type Waterfall, waterfallOf } from './waterfall.ts'

const of = (recording: Recording): Waterfall =>
  waterfallOf(recording, readRecordedMessages(recording.all, recording.method))

/** Rounded to a tenth of a millisecond. */
const shown = ({ rows }: Waterfall): string[] =>
  rows.map(
    ({ label, fromMs, toMs, bars, marks, isOpen }) =>
      `${label} ${fromMs}–${toMs}${isOpen ? '…' : ''}: ${bars.map(bar => `${bar.who} ${bar.fromMs}–${bar.toMs}`).join(', ')}${marks.join(' ')}`,
  )

describe('waterfallOf', () => {
  test('a parked call: the time after the question is the gateway’s', () => {
    const found = of(parkedRecording())
    expect(shown(found)).toEqual([
      'tools/call 0–79.3: gateway 0–1.4, server 1.4–48.5, gateway 48.5–79.3',
      'tools/call 1.4–79.3…: server 1.4–48.5, gateway 48.5–79.3',
      'elicitation/create 48.5–79.3…: gateway 48.5–79.3',
      'notifications/progress 22–22: 22',
    ])
    expect(found.sums.server).toBeCloseTo(47.1)
    expect(found.sums.gateway).toBeCloseTo(32.2)
    expect(found.sums.client).toBe(0)
  })

  test('its retry: the server works from the answer to the result', () => {
    const found = of(retryRecording())
    expect(shown(found)).toEqual([
      'tools/call 0–13.1: gateway 0–0.8, server 0.8–12.4, gateway 12.4–13.1',
      'answer 0.8–12.4: server 0.8–12.4',
    ])
    const { gateway, server, client } = found.sums
    expect(gateway + server + client).toBeCloseTo(found.totalMs)
  })

  test('a result that is written a moment later does not lengthen the exchange', () => {
    const found = of(
      recordingOf({ ...parkedRecording(), durationMs: 1.84 }, [
        recordedMessage(0, { side: 'client', direction: 'in', kind: 'request', method: 'tools/call' }, { id: 1 }),
        recordedMessage(1.92, { side: 'client', direction: 'out', kind: 'result' }, { id: 1, result: {} }),
      ]),
    )
    expect(found.totalMs).toBe(1.84)
    expect(shown(found)).toEqual(['tools/call 0–1.84: gateway 0–1.84'])
  })

  test('a legacy client is waited for while it answers', () => {
    const recording = recordingOf({ ...parkedRecording(), durationMs: 60 }, [
      recordedMessage(0, { side: 'client', direction: 'in', kind: 'request', method: 'tools/call' }, { id: 1 }),
      recordedMessage(5, { side: 'server', direction: 'out', kind: 'request', method: 'tools/call' }, { id: 1 }),
      recordedMessage(
        15,
        { side: 'server', direction: 'in', kind: 'result' },
        { id: 1, result: { resultType: 'input_required' } },
      ),
      recordedMessage(16, { side: 'client', direction: 'out', kind: 'question', method: 'roots/list' }, { id: 'gw-1' }),
      recordedMessage(40, { side: 'client', direction: 'in', kind: 'answer' }, { id: 'gw-1', result: {} }),
      recordedMessage(41, { side: 'server', direction: 'out', kind: 'request', method: 'tools/call' }, { id: 2 }),
      recordedMessage(58, { side: 'server', direction: 'in', kind: 'result' }, { id: 2, result: {} }),
      recordedMessage(60, { side: 'client', direction: 'out', kind: 'result' }, { id: 1, result: {} }),
    ])
    const found = of(recording)
    expect(found.sums).toEqual({ gateway: 9, server: 27, client: 24 })
    expect(found.rows.map(({ label }) => label)).toEqual(['tools/call', 'tools/call', 'roots/list', 'tools/call'])
  })

  test('an answer of the gateway alone, and a call that runs', () => {
    const request = recordedMessage(
      0,
      { side: 'client', direction: 'in', kind: 'request', method: 'tools/list' },
      { id: 1 },
    )
    const cached = recordingOf({ ...parkedRecording(), method: 'tools/list', outcome: 'ok', durationMs: 0.4 }, [
      request,
    ])
    expect(of(cached).sums).toEqual({ gateway: 0.4, server: 0, client: 0 })
    const running = recordingOf({ ...parkedRecording(), outcome: 'running', durationMs: undefined }, [
      request,
      recordedMessage(3, { side: 'server', direction: 'out', kind: 'request', method: 'tools/call' }, { id: 1 }),
    ])
    expect(shown(of(running))).toEqual(['tools/call 0–3…: gateway 0–3', 'tools/call 3–3…: '])
  })
})

test.each([
  [0, [0]],
  [0.4, [0, 0.1, 0.2, 0.3, 0.4]],
  [79.3, [0, 20, 40, 60]],
  [1000, [0, 200, 400, 600, 800, 1000]],
])('ticks of %d ms', (total, ticks) => {
  expect(ticksOf(total)).toEqual(ticks)
})
