import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Quota } from './quota.ts'

interface Thing {
  readonly name: string
  rank?: number
}
const thing = (name: string, rank = 0): Thing => ({ name, rank })
const names = (things: readonly Thing[]) => things.map(({ name }) => name)

test('an owner beyond its share loses its own oldest, and others lose nothing', () => {
  const quota = new Quota<Thing>({ perOwner: 2, total: 100 })
  quota.add('ben', thing('b'))
  const evicted = ['1', '2', '3', '4'].flatMap(name => quota.add('ana', thing(name)))
  expect(names(evicted)).toEqual(['1', '2'])
  expect(quota.size).toBe(3)
})

test('a share is bounded by bytes too; the newest stays, however large', () => {
  const quota = new Quota<Thing>({ perOwner: 10, bytesPerOwner: 100, total: 100 })
  quota.add('ben', thing('b'), 100)
  expect(names(['1', '2'].flatMap(name => quota.add('ana', thing(name), 50)))).toEqual([])
  expect(names(quota.add('ana', thing('3'), 1))).toEqual(['1'])
  expect(names(quota.add('ana', thing('4'), 1000))).toEqual(['2', '3'])
})

test('with too many in all, the owner with the most gives way', () => {
  const quota = new Quota<Thing>({ perOwner: 3, total: 4 })
  for (const name of ['1', '2', '3']) quota.add('ana', thing(name))
  quota.add('ben', thing('b'))
  expect(names(quota.add('eve', thing('e')))).toEqual(['1'])
})

test('the total holds for any number of owners with one item each: the oldest item goes, or the one of the lowest rank', () => {
  const quota = new Quota<Thing>({ perOwner: 5, total: 100 })
  const evicted = Array.from({ length: 1000 }, (_, at) => quota.add(`owner ${at}`, thing(String(at)))).flat()
  expect(quota.size).toBe(100)
  expect(names(evicted)).toEqual(Array.from({ length: 900 }, (_, at) => String(at)))
  const ranked = new Quota<Thing>({ perOwner: 5, total: 2 }, ({ rank }) => rank ?? 0)
  ranked.add('ana', thing('busy', 5))
  ranked.add('ben', thing('idle', 1))
  expect(names(ranked.add('eve', thing('new', 0)))).toEqual(['idle'])
})

test('the lowest rank goes first', () => {
  const quota = new Quota<Thing>({ perOwner: 2, total: 9 }, ({ rank }) => rank ?? 0)
  quota.add('ana', thing('busy', 5))
  quota.add('ana', thing('idle', 1))
  expect(names(quota.add('ana', thing('new', 0)))).toEqual(['idle'])
})

test('an owner within its part of the total never loses anything to the others', () => {
  const step = fc.record({ owner: fc.nat({ max: 5 }), bytes: fc.nat({ max: 10 }), leaves: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), steps => {
      const quota = new Quota<Thing>({ perOwner: 5, bytesPerOwner: 30, total: 12 })
      const held = new Map<number, Thing[]>()
      for (const [at, { owner, bytes, leaves }] of steps.entries()) {
        const mine = held.get(owner) ?? []
        held.set(owner, mine)
        const first = leaves ? mine.shift() : undefined
        if (first) quota.delete(first)
        const item = thing(String(at))
        mine.push(item)
        for (const evicted of quota.add(String(owner), item, bytes)) {
          expect(evicted).not.toBe(item)
          for (const [other, items] of held) {
            if (!items.includes(evicted)) continue
            if (other !== owner) expect(items.length).toBeGreaterThan(12 / 6)
            items.splice(items.indexOf(evicted), 1)
          }
        }
        expect(quota.size).toBe([...held.values()].reduce((sum, items) => sum + items.length, 0))
        expect(quota.size).toBeLessThanOrEqual(12)
        expect(mine.length).toBeLessThanOrEqual(5)
      }
    }),
  )
})
