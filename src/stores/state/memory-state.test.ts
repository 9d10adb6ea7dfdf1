import { expect, test } from 'vitest'
import { describeStateStore } from '../../../test/support/state-contract.ts'
import { MemoryCluster } from './memory-state.ts'

describeStateStore('memory', async () => {
  const shared = new MemoryCluster()
  return {
    join: async about => shared.join(about),
    kill: async replica => shared.kill(replica),
    lapse: async replica => shared.lapse(replica),
    close: async () => {},
  }
})

test('the journal in memory is bounded: the oldest events go first', async () => {
  const store = new MemoryCluster({ journalBytes: 10 }).join()
  const claim = await store.create('session', 'a', Buffer.from('x'), { expires: Number.POSITIVE_INFINITY })
  for (const [at, stream] of ['first', 'second', 'third'].entries())
    store.journal.append(claim, stream, at, [Buffer.alloc(4)])
  expect(await store.journal.read(claim, 'first', -1, 9)).toEqual([])
  expect(await store.journal.read(claim, 'third', -1, 9)).toHaveLength(1)
  expect(store.health().journalBytes).toBe(8)
})
