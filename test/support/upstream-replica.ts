import { onTestFinished } from 'vitest'
import type { RemoteServer } from '../../src/config/snapshot.ts'
import type { Caller } from '../../src/protocol/exchange.ts'
import type { MemoryCluster } from '../../src/stores/state/memory-state.ts'
import type { StateStore } from '../../src/stores/state/state-store.ts'
import { type Log, SILENT } from '../../src/telemetry/log.ts'
import { connectRemote, type RemoteOptions } from '../../src/upstreams/connect-remote.ts'
import { ServerSessionRecords } from '../../src/upstreams/session/server-session-records.ts'
import { callerOf, exchangeWith } from './scripted-server.ts'

export interface UpstreamReplicaOptions {
  readonly config?: Partial<RemoteServer>
  readonly options?: Partial<RemoteOptions>
  readonly batchMs?: number
  readonly log?: Log // of the records
  readonly changeStore?: (store: StateStore) => StateStore
}

/** A caller with a session of its own, as a 2025 client has. */
export const sessionCaller = (session = 'client-1', changes: Partial<Caller> = {}): Caller =>
  callerOf({ session, revision: '2025-11-25', ...changes })

/** The side of one replica toward the server at that URL, which is called "far"; it ends with the test. */
export const joinUpstream = (cluster: MemoryCluster, url: string, given: UpstreamReplicaOptions = {}) => {
  const store = cluster.join()
  const { batchMs = 1, log = SILENT, changeStore = own => own } = given
  const records = new ServerSessionRecords({ store: changeStore(store), log, batchMs })
  const server = { name: 'far', kind: 'remote', url, type: 'auto', headers: {}, era: 'auto', timeoutMs: 2000 } as const
  const upstream = connectRemote({ ...server, ...given.config }, { log: SILENT, records, ...given.options })
  const end = async (): Promise<void> => {
    await upstream.close()
    await records.close()
  }
  onTestFinished(end)
  return {
    records,
    upstream,
    call: async (caller = sessionCaller(), method = 'tools/call') =>
      exchangeWith(await upstream.open(caller), method, { caller }).result(),
    /** As a crash ends it: nothing is released. It holds nothing any more, so its close tells the server nothing. */
    kill: async (): Promise<void> => {
      await records.flush()
      cluster.kill(store.members.self)
      await end()
    },
    /** As a crash within a batch: what is not stored is lost. Its sockets stay until the test is over. */
    killWithinBatch: (): void => cluster.kill(store.members.self),
    /** As a planned stop ends it. */
    stop: async (): Promise<void> => {
      records.keepSessions()
      await end()
      await store.releaseAll()
      await store.close()
    },
  }
}
