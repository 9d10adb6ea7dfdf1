import { describe, expect, it } from 'vitest'
import { createSampler } from './sampling.ts'
import { parseTraceparent, RandomIds, writeTraceparent } from './trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const context = (isSampled: boolean) => ({ traceId: TRACE, spanId: SPAN, isSampled })

describe('a traceparent', () => {
  it.each([
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    [`00-${TRACE}-${SPAN}-03`, true],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-brings`, true],
  ])('%s is read', (text, isSampled) => {
    expect(parseTraceparent(text)).toEqual(context(isSampled))
  })

  it.each([
    undefined,
    '',
    'nonsense',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}-1`,
    ` 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01`.repeat(10_000),
  ])('%s is none', text => {
    expect(parseTraceparent(text)).toBeUndefined()
  })

  it('is written as it was read', () => {
    for (const flags of ['00', '01']) {
      const text = `00-${TRACE}-${SPAN}-${flags}`
      const read = parseTraceparent(text)
      expect(read && writeTraceparent(read)).toBe(text)
    }
  })
})

it('ids are hex digits, and each is another', () => {
  const ids = new RandomIds()
  const traces = Array.from({ length: 1000 }, () => ids.trace())
  expect(traces.every(id => /^[0-9a-f]{32}$/.test(id))).toBe(true)
  expect(new Set(traces).size).toBe(1000)
  expect(ids.span()).toMatch(/^[0-9a-f]{16}$/)
})

describe('a sampler', () => {
  const ids = new RandomIds()
  const shareOf = (name: Parameters<typeof createSampler>[0], ratio: number, parent?: ReturnType<typeof context>) => {
    const sample = createSampler(name, ratio)
    const taken = Array.from({ length: 20_000 }, () => sample(parent, ids.trace())).filter(isTaken => isTaken)
    return taken.length / 20_000
  }

  it('takes its share of new traces', () => {
    expect(shareOf('parentbased_traceidratio', 0.25)).toBeCloseTo(0.25, 1)
    expect(shareOf('traceidratio', 0.01)).toBeLessThan(0.02)
    expect(shareOf('parentbased_traceidratio', 0)).toBe(0)
    expect(shareOf('parentbased_traceidratio', 1)).toBe(1)
    expect(shareOf('parentbased_always_on', 0)).toBe(1)
    expect(shareOf('always_off', 1)).toBe(0)
  })

  it('decides as the parent did, unless it is told not to', () => {
    expect(shareOf('parentbased_traceidratio', 0, context(true))).toBe(1)
    expect(shareOf('parentbased_always_on', 1, context(false))).toBe(0)
    expect(shareOf('traceidratio', 0, context(true))).toBe(0)
    expect(shareOf('always_on', 0, context(false))).toBe(1)
  })

  it('compares the last 14 digits of the id, as a number, with the ratio', () => {
    for (let i = 0; i < 2000; i++) {
      const [id, ratio] = [ids.trace(), Math.random() ** 4]
      const number = BigInt(`0x${id.slice(-14)}`)
      expect(createSampler('traceidratio', ratio)(undefined, id)).toBe(number < BigInt(Math.ceil(ratio * 16 ** 14)))
    }
    const half = createSampler('traceidratio', 0.5)
    expect(half(undefined, `${'f'.repeat(18)}7${'f'.repeat(13)}`)).toBe(true)
    expect(half(undefined, `${'0'.repeat(18)}8${'0'.repeat(13)}`)).toBe(false)
  })

  it('decides the same for the same trace', () => {
    const sample = createSampler('traceidratio', 0.5)
    for (let i = 0; i < 100; i++) {
      const id = ids.trace()
      expect(sample(undefined, id)).toBe(sample(context(true), id))
    }
  })
})
