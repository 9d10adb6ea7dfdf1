import { expect, test } from 'vitest'
import { createProcessReader, mergeFamilies, type ProcessMetrics } from './merge-metrics.ts'
import type { MetricFamily, MetricSample } from './metrics-reader.ts'

const family = (name: string, ...samples: readonly MetricSample[]): MetricFamily => ({
  name,
  type: 'counter',
  description: name,
  samples,
})

test('values with the same labels are summed, whatever the order of the labels', () => {
  const own = [family('requests_total', { value: 2, labels: { method: 'a', outcome: 'ok' } })]
  const other = [
    family(
      'requests_total',
      { value: 3, labels: { outcome: 'ok', method: 'a' } },
      { value: 1, labels: { method: 'b', outcome: 'ok' } },
    ),
  ]
  expect(mergeFamilies(own, [other])[0]?.samples).toEqual([
    { value: 5, labels: { method: 'a', outcome: 'ok' } },
    { value: 1, labels: { method: 'b', outcome: 'ok' } },
  ])
})

test('buckets of a histogram stay apart from its sum', () => {
  const samples = [
    { value: 1, labels: { le: 1 }, suffix: '_bucket' },
    { value: 2, labels: {}, suffix: '_sum' },
  ]
  const merged = mergeFamilies(
    [family('request_duration_seconds', ...samples)],
    [[family('request_duration_seconds', ...samples)]],
  )
  expect(merged[0]?.samples.map(({ value, suffix }) => [value, suffix])).toEqual([
    [2, '_bucket'],
    [4, '_sum'],
  ])
})

test('what is the same in every process is not summed', () => {
  const one = [family('replicas', { value: 2, labels: {} }), family('sessions', { value: 2, labels: {} })]
  expect(mergeFamilies(one, [one]).map(({ samples }) => samples[0]?.value)).toEqual([2, 4])
})

test('counters do not fall when a process does not answer, or has ended', async () => {
  const metricsOf = (value: number): ProcessMetrics => {
    const gauge: MetricFamily = { ...family('sessions', { value, labels: {} }), type: 'gauge' }
    return { families: [family('requests_total', { value, labels: {} }), gauge], process: [] }
  }
  const answers = new Map<number, ProcessMetrics>()
  const running = new Set<number>()
  const read = createProcessReader({ ask: async () => answers, pids: () => running })
  const totals = async () => {
    const own = [family('requests_total', { value: 1, labels: {} }), family('sessions', { value: 1, labels: {} })]
    const others = (await read()).map(({ families }) => families)
    return mergeFamilies(own, others).map(({ samples }) => samples[0]?.value)
  }
  for (const pid of [7, 8]) {
    running.add(pid)
    answers.set(pid, metricsOf(5))
  }
  expect(await totals()).toEqual([11, 11])
  answers.delete(7) // too slow
  expect(await totals()).toEqual([11, 11])
  running.delete(7)
  expect(await totals()).toEqual([11, 6])
  running.delete(8)
  answers.clear()
  expect(await totals()).toEqual([11, 1])
})
