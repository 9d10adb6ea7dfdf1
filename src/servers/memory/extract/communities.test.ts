import fc from 'fast-check'
import { expect, test } from 'vitest'
import { communitiesOf } from './communities.ts'

const clique = (...ids: number[]) => ids.flatMap((from, at) => ids.slice(at + 1).map(to => ({ from, to })))

test('two circles of friends with one acquaintance between them are two communities', () => {
  expect(communitiesOf([...clique(1, 2, 3, 4), ...clique(5, 6, 7, 8), { from: 4, to: 5 }])).toEqual([
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ])
})

test('a fact about oneself makes no community, and no facts make none', () => {
  expect(communitiesOf([{ from: 1, to: 1 }])).toEqual([])
  expect(communitiesOf([])).toEqual([])
})

test('two entities that are linked only to each other are one community', () => {
  expect(communitiesOf([{ from: 9, to: 3 }])).toEqual([[3, 9]])
})

test('the order of the facts does not matter, and no entity is in two communities', () => {
  const link = fc.record({ from: fc.nat(30), to: fc.nat(30) })
  fc.assert(
    fc.property(fc.array(link, { maxLength: 80 }), links => {
      const found = communitiesOf(links)
      expect(communitiesOf(links.toReversed())).toEqual(found)
      const ids = found.flat()
      expect(new Set(ids).size).toBe(ids.length)
    }),
  )
})
