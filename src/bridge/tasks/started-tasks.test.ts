import { expect, onTestFinished, test } from 'vitest'
import { callerOf } from '../../../test/support/scripted-server.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { StateError, type StateStore } from '../../stores/state/state-store.ts'
import { SILENT } from '../../telemetry/log.ts'
import { StartedTasks } from './started-tasks.ts'

const ANN = callerOf({ principal: 'ann', revision: '2025-11-25' })

const open = (store: StateStore): StartedTasks => {
  const started = new StartedTasks(store, SILENT)
  onTestFinished(() => started.close())
  return started
}

/** A process that starts later. */
const later = async (cluster: MemoryCluster): Promise<StartedTasks> => {
  const started = open(cluster.join())
  await started.load('s', ANN)
  return started
}

test('two processes that add at once lose nothing of each other', async () => {
  const cluster = new MemoryCluster()
  const [one, two] = [open(cluster.join()), open(cluster.join())]
  const ids = Array.from({ length: 40 }, (_, at) => `t${at}`)
  for (const [at, id] of ids.entries()) (at % 2 ? one : two).add('s', ANN, id)
  await expect
    .poll(async () => {
      const known = await later(cluster)
      return ids.filter(id => !known.has('s', ANN, id))
    })
    .toEqual([])
})

test('what is stored belongs to a user, a workspace and a server', async () => {
  const cluster = new MemoryCluster()
  open(cluster.join()).add('s', ANN, 't')
  await expect.poll(async () => (await later(cluster)).has('s', ANN, 't')).toBe(true)
  const known = open(cluster.join())
  const others = [
    ['s', { ...ANN, principal: 'ben' }],
    ['s', { ...ANN, workspace: 'other' }],
    ['s', { ...ANN, principal: undefined, session: 'x' }],
    ['other', ANN],
  ] as const
  for (const [server, caller] of others) {
    await known.load(server, caller)
    expect(known.has(server, caller, 't')).toBe(false)
  }
})

test('of very many tasks the newest are kept, within the size of a record', async () => {
  const cluster = new MemoryCluster()
  const started = open(cluster.join())
  const ids = Array.from({ length: 3000 }, (_, at) => `${String(at).padStart(6, '0')}${'x'.repeat(100)}`)
  for (const id of ids) started.add('s', ANN, id)
  const last = ids.at(-1) ?? ''
  await expect.poll(async () => (await later(cluster)).has('s', ANN, last)).toBe(true)
  const known = await later(cluster)
  const kept = ids.filter(id => known.has('s', ANN, id))
  expect(kept.length).toBeGreaterThan(100)
  expect(kept.length).toBeLessThan(1000)
  expect(kept).toEqual(ids.slice(-kept.length))
})

test('without its store a process knows what it has started itself', async () => {
  const away = async (): Promise<never> => {
    throw new StateError('away', 'no store')
  }
  const started = open(Object.assign(Object.create(new MemoryCluster().join()), { take: away, read: away }))
  started.add('s', ANN, 't')
  await started.load('s', ANN)
  expect([started.has('s', ANN, 't'), started.has('s', ANN, 'u')]).toEqual([true, false])
})
