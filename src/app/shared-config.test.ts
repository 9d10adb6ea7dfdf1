import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { loadConfig } from '../config/load.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { MemoryCluster } from '../stores/state/memory-state.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import { SILENT } from '../telemetry/log.ts'
import { createSharedConfig, type SharedConfig } from './shared-config.ts'

interface TestReplica {
  readonly store: StateStore
  readonly config: SharedConfig
  readonly reload: ReturnType<typeof vi.fn>
}

let cluster: MemoryCluster
let replicas: TestReplica[]
let snapshot: Snapshot
let other: Snapshot

const join = (): TestReplica => {
  const store = cluster.join()
  const reload = vi.fn()
  const config = createSharedConfig({ store, key: Buffer.alloc(32, 3), onReload: reload, log: SILENT })
  return { store, config, reload }
}
const load = (port: number, servers: object): Promise<Snapshot> =>
  loadConfig({ value: { mcpServers: servers, listen: { port } }, env: {} })

beforeEach(async () => {
  cluster = new MemoryCluster()
  snapshot = await load(1, { a: { url: 'http://127.0.0.1:9' } })
  other = await load(1, { a: { url: 'http://127.0.0.1:9', headers: { authorization: 'secret' } } })
  replicas = [join(), join(), join()]
})
afterEach(() => {
  for (const { config } of replicas) config.close()
})
const names = (indexes: readonly number[]): string[] => indexes.map(at => replicas[at]?.store.members.self ?? '').sort()
const differing = (): string[][] => replicas.map(({ config }) => [...config.differing()].sort())

test('replicas know whose configuration differs, wherever each listens', async () => {
  const elsewhere = await load(2, { a: { url: 'http://127.0.0.1:9' } })
  replicas[0]?.config.publish(snapshot)
  replicas[1]?.config.publish(elsewhere)
  replicas[2]?.config.publish(other)
  await vi.waitFor(() => expect(differing()).toEqual([names([2]), names([2]), names([0, 1])]))
  replicas[2]?.config.publish(snapshot)
  await vi.waitFor(() => expect(differing()).toEqual([[], [], []]))
  const document = await replicas[0]?.store.shared.document('configuration')
  expect(document?.body.toString()).not.toContain('secret')
})

test('a reload is announced to the others once, and not to those that join later', async () => {
  for (const { config } of replicas) config.publish(snapshot)
  await vi.waitFor(() => expect(differing()).toEqual([[], [], []]))
  replicas[1]?.config.announceReload()
  await vi.waitFor(() => expect(replicas.map(({ reload }) => reload.mock.calls.length)).toEqual([1, 0, 1]))
  const late = join()
  replicas.push(late)
  late.config.publish(snapshot)
  cluster.topics.callAll()
  await vi.waitFor(() => expect(late.config.differing()).toEqual([]))
  expect(replicas.map(({ reload }) => reload.mock.calls.length)).toEqual([1, 0, 1, 0])
})

test('a replica that is gone or has a new name does not count as one that differs', async () => {
  replicas[0]?.config.publish(snapshot)
  replicas[1]?.config.publish(other)
  await vi.waitFor(() => expect(differing()[0]).toEqual(names([1])))
  cluster.lapse(names([1])[0] ?? '')
  cluster.topics.callAll() // as every few seconds
  await vi.waitFor(() => expect(differing()[0]).toEqual(names([1])))
  cluster.kill(names([1])[0] ?? '')
  expect(differing()[0]).toEqual([])
})

test('a store that is away for a while changes nothing', async () => {
  const { store, config, reload } = replicas[0] as TestReplica
  config.publish(snapshot)
  replicas[1]?.config.publish(other)
  await vi.waitFor(() => expect(config.differing()).toHaveLength(1))
  const read = vi.spyOn(store.shared, 'document').mockRejectedValue(new Error('away'))
  replicas[1]?.config.announceReload()
  await vi.waitFor(() => expect(read).toHaveBeenCalled())
  expect(config.differing()).toHaveLength(1)
  read.mockRestore()
  cluster.topics.callAll()
  await vi.waitFor(() => expect(reload).toHaveBeenCalledTimes(1))
})
