import { expect, test, vi } from 'vitest'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { SILENT } from '../../telemetry/log.ts'
import { ChannelDirectory } from './channel-directory.ts'

const start = () => {
  const cluster = new MemoryCluster()
  const stores = [cluster.join({ address: 'one', labels: [] }), cluster.join({ address: 'two', labels: [] })] as const
  const [here, there] = stores.map(store => new ChannelDirectory(store, SILENT)) as [ChannelDirectory, ChannelDirectory]
  return { cluster, stores, here, there, home: stores[0].members.self }
}

test('a channel that opens while the record of the former one is removed is found', async () => {
  const { cluster, stores, here, there, home } = start()
  here.opened('client', '1')
  await expect.poll(() => there.findHome('client')).toBe(home)
  const [{ remove }] = [stores[0]]
  let letRemove = (): void => {}
  const isLet = new Promise<void>(resolve => {
    letRemove = resolve
  })
  const removing = vi.fn(async (...args: Parameters<typeof remove>) => {
    await isLet
    await remove.apply(stores[0], args)
  })
  stores[0].remove = removing
  here.closed('client', '1')
  await expect.poll(() => removing.mock.calls.length).toBe(1)
  here.opened('client', '2')
  letRemove()
  await expect.poll(() => there.findHome('client')).toBe(home)
  here.closed('client', '2')
  await expect.poll(() => cluster.records.size).toBe(0)
})

test('a client with channels at several replicas has no only one', async () => {
  const { here, there, home } = start()
  here.opened('client', '1')
  await expect.poll(() => there.findHome('client')).toBe(home)
  there.opened('client', '2')
  there.opened('client', '3')
  expect(await there.findHome('client')).toBeUndefined()
})
