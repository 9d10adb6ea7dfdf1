import { expect, test } from 'vitest'
import type { Replica } from '../../stores/state/state-store.ts'
import { findSuccessor } from './successor.ts'

const membersOf = (...replicas: (readonly [name: string, address: string])[]) => ({
  self: 'self',
  all: (): Replica[] => replicas.map(([replica, address]) => ({ replica, address, labels: [], version: 1 })),
})

test('is another replica that can be reached, and none if there is none', () => {
  expect(findSuccessor(membersOf(['self', 'http://a'], ['b', ''], ['c', 'http://c']), 'session')).toBe('c')
  expect(findSuccessor(membersOf(['self', 'http://a'], ['b', '']), 'session')).toBeUndefined()
  expect(findSuccessor(membersOf())).toBeUndefined()
})

test('is the same one for one session in any order, and every one for many', () => {
  const [some, turned] = [
    membersOf(['b', 'http://b'], ['c', 'http://c'], ['d', 'http://d']),
    membersOf(['d', 'http://d'], ['c', 'http://c'], ['b', 'http://b']),
  ]
  const found = Array.from({ length: 100 }, (_, i) => findSuccessor(some, `session-${i}`))
  expect(found).toEqual(Array.from({ length: 100 }, (_, i) => findSuccessor(turned, `session-${i}`)))
  expect(new Set(found).size).toBe(3)
  expect(new Set(Array.from({ length: 200 }, () => findSuccessor(some))).size).toBe(3)
})
