import { expect, test } from 'vitest'
import type { Caller, Upstream } from '../../protocol/exchange.ts'
import { MODERN, NEWEST_LEGACY } from '../../protocol/revisions.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { connectLabel } from './label-upstream.ts'
import { PoolHomes, poolId } from './pool-homes.ts'
import { withPoolHomes } from './pooled-upstream.ts'
import type { ReplicaClient } from './replica-client.ts'

const NO_REPLICAS = {} as ReplicaClient // nothing is sent

const callerOf = (given: Partial<Caller>): Caller => ({
  workspace: 'main',
  principal: 'ann',
  revision: MODERN,
  capabilities: Json.empty,
  headers: new Map(),
  ...given,
})

// The bridge joins the listens of callers that have the same peer and principal.
test('sessions that each have a process at another replica have peers of their own', async () => {
  const cluster = new MemoryCluster()
  cluster.join({ address: 'http://127.0.0.1:1', labels: ['gpu'] })
  const { members } = cluster.join()
  const connect = (isPerSession: boolean): Upstream =>
    connectLabel({ server: 'render', label: 'gpu', isPerSession, members, replicas: NO_REPLICAS })
  const [one, other] = ['a', 'b'].map(session => callerOf({ session, revision: NEWEST_LEGACY })) as [Caller, Caller]
  const own = connect(true)
  expect(await own.open(one)).toBe(await own.open(one))
  expect(await own.open(one)).not.toBe(await own.open(other))
  const shared = connect(false)
  expect(await shared.open(one)).toBe(await shared.open(other))
  expect(await shared.open(one)).not.toBe(await shared.open({ ...other, principal: 'bob' }))
  expect(await shared.open(one)).not.toBe(await shared.open({ ...other, workspace: 'second' }))
})

test('callers that share a session at another replica have the same peer', async () => {
  const cluster = new MemoryCluster()
  const [far, near] = [cluster.join({ address: 'http://127.0.0.1:1', labels: [] }), cluster.join()]
  const [homes, own] = [far, near].map(store => new PoolHomes({ store, log: SILENT })) as [PoolHomes, PoolHomes]
  for (const key of ['ann', 'bob']) await homes.locate(poolId('files', key))
  const upstream: Upstream = { open: () => Promise.reject(new Error('not here')), close: async () => {} }
  const keyOf = ({ principal }: Caller) => principal
  const pooled = withPoolHomes({
    ...{ server: 'files', upstream, keyOf, homes: own, replicas: NO_REPLICAS },
    dispatch: () => {},
  })
  const peer = await pooled.open(callerOf({}))
  expect(await pooled.open(callerOf({}))).toBe(peer)
  expect(await pooled.open(callerOf({ principal: 'bob' }))).not.toBe(peer)
  for (const each of [homes, own]) each.close()
})
