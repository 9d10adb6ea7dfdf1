import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalWake, createSqlCluster } from '../../../test/support/sql-cluster.ts'
import { describeStateStore } from '../../../test/support/state-contract.ts'
import { openSqlite } from '../sqlite.ts'
import { prepareSqlite } from './prepare-state.ts'

describeStateStore('SQLite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-state-'))
  const open = () => openSqlite(join(folder, 'state.db'))
  const cluster = await createSqlCluster({ open, prepare: prepareSqlite, wake: createLocalWake() })
  const close = async (): Promise<void> => {
    await cluster.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { ...cluster, close }
})
