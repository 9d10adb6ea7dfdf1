import { expect, test } from 'vitest'
import { neighbourhoodOf } from './ranking.ts'

const graph = (edges: readonly (readonly [number, number])[]) => ({
  neighbours: async (ids: readonly number[]) =>
    edges.flatMap(([a, b], factId) => [
      ...(ids.includes(a) ? [{ from: a, to: b, factId }] : []),
      ...(ids.includes(b) ? [{ from: b, to: a, factId }] : []),
    ]),
})

test('the distance is that of the shortest path, in both directions, through cycles', async () => {
  const store = graph([
    [1, 2],
    [2, 3],
    [3, 1],
    [4, 3],
    [4, 5],
    [5, 5],
  ])
  expect((await neighbourhoodOf(store, [1], 9)).distances).toEqual(
    new Map([
      [1, 0],
      [2, 1],
      [3, 1],
      [4, 2],
      [5, 3],
    ]),
  )
})

test('the walk stops after the given hops', async () => {
  const store = graph([
    [1, 2],
    [2, 3],
  ])
  expect([...(await neighbourhoodOf(store, [1], 1)).distances.keys()]).toEqual([1, 2])
  expect([...(await neighbourhoodOf(store, [], 3)).distances.keys()]).toEqual([])
})
