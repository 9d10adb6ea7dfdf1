import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { StateError, type StateStore } from '../../stores/state/state-store.ts'
import { SILENT } from '../../telemetry/log.ts'
import { PoolHomes, poolId } from './pool-homes.ts'

let cluster: MemoryCluster
let replicas: { readonly store: StateStore; readonly homes: PoolHomes; readonly name: string }[]
const HOUR = 60 * 60_000
const ID = poolId('far', 'key')

const join = () => {
  const store = cluster.join({ address: 'http://127.0.0.1:1', labels: [] })
  return { store, homes: new PoolHomes({ store, log: SILENT }), name: store.members.self }
}
beforeEach(() => {
  vi.useFakeTimers()
  cluster = new MemoryCluster()
  replicas = [join(), join(), join()]
})
afterEach(() => {
  for (const { homes } of replicas) homes.close()
  vi.useRealTimers()
})
const at = (index: number) => replicas[index] as (typeof replicas)[number]

test('the first replica that needs a session is its home; the others remember it', async () => {
  expect(await at(1).homes.locate(ID)).toBe('here')
  const take = vi.spyOn(at(0).store, 'take')
  expect(await at(0).homes.locate(ID)).toEqual({ replica: at(1).name })
  expect(at(0).homes.locate(ID)).toEqual({ replica: at(1).name })
  expect(at(1).homes.locate(ID)).toBe('here')
  expect(take).toHaveBeenCalledTimes(1)
  expect([at(0).homes.holds(ID), at(1).homes.holds(ID)]).toEqual([false, true])
})

test('several replicas that need it at the same time agree', async () => {
  const found = await Promise.all(replicas.map(({ homes }) => homes.locate(ID)))
  const here = found.indexOf('here')
  expect(found.filter(home => home === 'here')).toHaveLength(1)
  expect(found.filter(home => home !== 'here')).toEqual([{ replica: at(here).name }, { replica: at(here).name }])
})

test('when the home is gone, the next replica that needs it takes over', async () => {
  await at(0).homes.locate(ID)
  await at(1).homes.locate(ID)
  cluster.kill(at(0).name)
  expect(await at(1).homes.locate(ID)).toBe('here')
  expect(await at(2).homes.locate(ID)).toEqual({ replica: at(1).name })
})

test('a home that missed its lease is none any more', async () => {
  await at(0).homes.locate(ID)
  cluster.lapse(at(0).name)
  expect(await at(1).homes.locate(ID)).toBe('here')
  expect(at(0).homes.holds(ID)).toBe(false)
  expect(await at(0).homes.locate(ID)).toEqual({ replica: at(1).name })
})

test('a home keeps what is used, and gives up what is not', async () => {
  const other = poolId('far', 'other')
  await at(0).homes.locate(ID)
  await at(0).homes.locate(other)
  for (let hour = 0; hour < 60; hour++) {
    at(0).homes.locate(ID)
    await vi.advanceTimersByTimeAsync(HOUR)
  }
  expect(await at(1).homes.locate(ID)).toEqual({ replica: at(0).name })
  expect(await at(1).homes.locate(other)).toBe('here')
})

test('while the store is away, sessions are opened here, without waiting for it each time', async () => {
  const take = vi.spyOn(at(0).store, 'take').mockRejectedValue(new StateError('away', 'The store is away.'))
  expect(await at(0).homes.locate(ID)).toBe('here')
  expect(at(0).homes.locate(ID)).toBe('here')
  expect(take).toHaveBeenCalledTimes(1)
  take.mockRestore()
  await vi.advanceTimersByTimeAsync(2000)
  await at(1).homes.locate(ID)
  expect(await at(0).homes.locate(ID)).toEqual({ replica: at(1).name })
})

test('ids of other servers and keys differ, and tell nothing', () => {
  const ids = [ID, poolId('far', 'key2'), poolId('farkey', ''), poolId('far"', 'key')]
  expect(new Set(ids).size).toBe(4)
  for (const id of ids) expect(id).toMatch(/^[\w-]{43}$/)
})
