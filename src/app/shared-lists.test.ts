import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { scriptedMember, toolsOf } from '../../test/support/scripted-member.ts'
import { toolsIn, workspaceOf } from '../../test/support/workspace.ts'
import { MemoryCluster } from '../stores/state/memory-state.ts'
import { SILENT } from '../telemetry/log.ts'
import { createSharedLists } from './shared-lists.ts'

const closing: (() => void)[] = []
beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  for (const close of closing.splice(0)) close()
  vi.useRealTimers()
})

/** Two replicas, each with a workspace of the same two servers; the first server's tools may change. */
const open = async () => {
  const cluster = new MemoryCluster()
  const names = ['x']
  const replica = () => {
    const lists = createSharedLists(cluster.join().shared, SILENT)
    const member = scriptedMember('a', { answers: { 'tools/list': () => ({ tools: toolsOf(...names) }) } })
    const other = scriptedMember('b', { answers: { 'tools/list': () => ({ tools: toolsOf('y') }) } })
    const workspace = workspaceOf([member, other], {}, { listChanges: lists })
    closing.push(workspace.close, lists.close)
    return { member, other, list: async () => toolsIn(await workspace.ask('tools/list')), workspace }
  }
  const replicas = [replica(), replica(), replica()] as const
  await vi.advanceTimersByTimeAsync(0)
  for (const { list } of replicas) expect(await list()).toEqual(['a__x', 'b__y'])
  return { names, replicas }
}
const fetches = ({ member, other }: Awaited<ReturnType<typeof open>>['replicas'][number]) =>
  [member, other].map(each => each.count('tools/list'))

test('a list that a server announced as changed is fetched at every replica before it is answered', async () => {
  const { names, replicas } = await open()
  const [first, second, third] = replicas
  first.workspace.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
  await vi.advanceTimersByTimeAsync(1000)
  names.push('new')
  first.member.say('notifications/tools/list_changed')
  await vi.advanceTimersByTimeAsync(1000)
  for (const { list } of [second, third]) expect(await list()).toEqual(['a__x', 'a__new', 'b__y'])
  expect([fetches(second), fetches(third)]).toEqual([
    [2, 1],
    [2, 1],
  ])
})

test('a change that one replica finds by itself is known to all, and is fetched once by each', async () => {
  const { names, replicas } = await open()
  const [first, second, third] = replicas
  names.push('new')
  await vi.advanceTimersByTimeAsync(10_000)
  await first.list() // the old list, while the new one is fetched
  await vi.advanceTimersByTimeAsync(1000)
  for (const { list } of replicas) expect(await list()).toEqual(['a__x', 'a__new', 'b__y'])
  await vi.advanceTimersByTimeAsync(3000)
  for (const { list } of replicas) await list()
  expect([fetches(second)[0], fetches(third)[0]]).toEqual([2, 2])
})

test('a server that does not answer delays the list only for a while', async () => {
  const { replicas } = await open()
  const [first, second] = replicas
  second.member.turn('down')
  first.workspace.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
  await vi.advanceTimersByTimeAsync(1000)
  first.member.say('notifications/tools/list_changed')
  await vi.advanceTimersByTimeAsync(1000)
  expect(await second.list()).toContain('b__y')
})
