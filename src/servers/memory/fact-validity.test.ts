import fc from 'fast-check'
import { expect, test } from 'vitest'
import { closeContradicted, type FactTimes, supersede } from './fact-validity.ts'

const NOW = 1_000
const span = (validAt?: number, invalidAt?: number, expiredAt?: number): FactTimes => ({
  validAt,
  invalidAt,
  expiredAt,
})

const CASES: readonly [
  name: string,
  fresh: FactTimes,
  old: readonly FactTimes[],
  fresher: FactTimes,
  closed: readonly FactTimes[],
][] = [
  ['an older open fact ends when the new one begins', span(20), [span(10)], span(20), [span(10, 20, NOW)]],
  ['an older fact that ended later is cut', span(20), [span(10, 30, 40)], span(20), [span(10, 20, 40)]],
  ['a fact that ended before is left alone', span(20), [span(5, 10, 12)], span(20), []],
  ['a fact that ended just then is left alone', span(20), [span(5, 20, 12)], span(20), []],
  ['a fact told late ends when the next began', span(10), [span(20)], span(10, 20, NOW), []],
  [
    'of several later ones the earliest counts',
    span(10),
    [span(40), span(20, 40, 50), span(30)],
    span(10, 20, NOW),
    [],
  ],
  [
    'one told late between two cuts the earlier',
    span(15),
    [span(10, 20, 25), span(20)],
    span(15, 20, NOW),
    [span(10, 15, 25)],
  ],
  ['a fact with an end is retired at once', span(10, 12), [span(20)], span(10, 12, NOW), []],
  ['a fact with an end still cuts an older one', span(10, 30), [span(5)], span(10, 30, NOW), [span(5, 10, NOW)]],
  ['a fact that ends later is not retired yet', span(10, NOW + 1), [], span(10, NOW + 1), []],
  ['the same beginning closes nothing', span(10), [span(10)], span(10), []],
  ['without its own beginning nothing is closed', span(), [span(10)], span(), []],
  ['an old fact without a beginning is left alone', span(10), [span()], span(10), []],
  ['nothing contradicted, nothing closed', span(10), [], span(10), []],
]

test.each(CASES)('%s', (_, fresh, old, fresher, closed) => {
  const result = closeContradicted(fresh, old, NOW)
  expect(result.fresh).toEqual(fresher)
  expect(result.closed.map(({ span }) => span)).toEqual(closed)
})

const instants = fc.option(fc.integer({ min: 0, max: 50 }), { nil: undefined })
const spans = fc.tuple(instants, instants, instants).map(([a, b, c]) => span(a, b, c))

test('a closed fact began before the new one and ends where the new one begins', () => {
  fc.assert(
    fc.property(spans, fc.array(spans), (fresh, old) => {
      for (const { old: before, span: after } of closeContradicted(fresh, old, NOW).closed) {
        expect(before.validAt).toBeLessThan(fresh.validAt as number)
        expect(after.invalidAt).toBe(fresh.validAt)
        expect(after.expiredAt).toBeDefined()
      }
    }),
  )
})

test('the order in which contradicted facts are found does not matter', () => {
  fc.assert(
    fc.property(spans, fc.array(spans), (fresh, old) => {
      const [one, other] = [closeContradicted(fresh, old, NOW), closeContradicted(fresh, old.toReversed(), NOW)]
      expect(other.fresh).toEqual(one.fresh)
      expect(new Set(other.closed.map(({ old }) => old))).toEqual(new Set(one.closed.map(({ old }) => old)))
    }),
  )
})

test.each<[string, FactTimes, FactTimes, FactTimes]>([
  ['ends it when the new one begins', span(10), span(20), span(10, 20, NOW)],
  ['of the same moment ends it at once', span(20), span(20), span(20, 20, NOW)],
  ['that began later does not end before it began', span(30), span(20), span(30, 30, NOW)],
  ['keeps an earlier end', span(10, 15, 16), span(20), span(10, 15, 16)],
  ['without dates ends it now', span(), span(), span(undefined, NOW, NOW)],
])('an explicit supersession %s', (_, old, fresh, expected) => {
  expect(supersede(old, fresh, NOW)).toEqual(expected)
})
