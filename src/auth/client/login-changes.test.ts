import { expect, test } from 'vitest'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import type { Shared } from '../../stores/state/state-store.ts'
import { SILENT } from '../../telemetry/log.ts'
import { type LoginChange, LoginChanges } from './login-changes.ts'

const follow = async (shared: Pick<Shared, 'document' | 'writeDocument' | 'on'>) => {
  const changes = new LoginChanges(shared, SILENT)
  const seen: (string | undefined)[] = []
  changes.onChange((change: LoginChange | undefined) => seen.push(change?.principal))
  await changes.follow()
  return { changes, seen }
}

test('two replicas that publish at the same moment learn of both changes', async () => {
  const cluster = new MemoryCluster()
  const [first, second] = [cluster.join().shared, cluster.join().shared]
  const ada = await follow(first)
  // The change of the other replica is stored, and announced, just before this one writes.
  let isFirst = true
  const ben = await follow({
    document: name => second.document(name),
    on: (topic, listener) => second.on(topic, listener),
    writeDocument: async (...args) => {
      if (isFirst) {
        isFirst = false
        await ada.changes.publish({ server: 's', principal: 'ada' })
        await expect.poll(() => ben.seen.length).toBe(2)
      }
      return second.writeDocument(...args)
    },
  })
  await ben.changes.publish({ server: 's', principal: 'ben' })
  expect(ben.seen).toEqual(['ben', 'ada'])
  await expect.poll(() => ada.seen).toEqual(['ada', 'ben'])
})
