import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { SILENT } from '../../telemetry/log.ts'
import { type KnownTask, ReplicaTaskLists } from './replica-task-lists.ts'

const taskOf = (at: number): KnownTask => ({
  id: `task-${at}`,
  origin: { server: 'far', tool: 'ü'.repeat(100), workspace: 'default', principal: at % 2 ? 'ann' : undefined },
  state: {
    status: 'working',
    message: '😀'.repeat(500),
    createdAt: at,
    updatedAt: at,
    ttlMs: 1000,
    pollMs: 1000,
    hasToolFailed: at % 3 === 0,
  },
})

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const startTwo = () => {
  const cluster = new MemoryCluster()
  const stores = [cluster.join(), cluster.join()] as const
  let tasks: readonly KnownTask[] = []
  const lists = stores.map(store => new ReplicaTaskLists({ store, log: SILENT, own: () => tasks }))
  const [home, other] = lists as [ReplicaTaskLists, ReplicaTaskLists]
  const setTasks = async (next: readonly KnownTask[]): Promise<void> => {
    tasks = next
    home.changed()
    await vi.advanceTimersByTimeAsync(500)
  }
  return { home, other, setTasks, close: () => lists.forEach(list => void list.close()) }
}

test('the others see what a replica has, and what it no longer has', async () => {
  const { home, other, setTasks, close } = startTwo()
  await setTasks([taskOf(2), taskOf(1)])
  expect(await other.others()).toMatchObject([
    { id: 'task-2', origin: { server: 'far', principal: undefined }, state: { status: 'working', createdAt: 2 } },
    { id: 'task-1', origin: { principal: 'ann' } },
  ])
  expect(await home.others()).toEqual([])
  await setTasks([])
  expect(await other.others()).toEqual([])
  close()
})

test('of a thousand tasks with long texts, the newest are listed', async () => {
  const { other, setTasks, close } = startTwo()
  await setTasks(Array.from({ length: 1000 }, (_, at) => taskOf(1000 - at)))
  const seen = await other.others()
  expect(seen.length).toBeGreaterThan(30)
  expect(seen.length).toBeLessThan(1000)
  expect(seen[0]?.id).toBe('task-1000')
  close()
})

test('a list is kept while its tasks are, and ends with its replica', async () => {
  const { other, setTasks, close } = startTwo()
  await setTasks([taskOf(1)])
  await vi.advanceTimersByTimeAsync(60 * 60_000)
  expect(await other.others()).toHaveLength(1)
  close()
  await vi.advanceTimersByTimeAsync(60 * 60_000)
  expect(await other.others()).toEqual([])
})
