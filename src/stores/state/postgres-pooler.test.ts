import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { startPooler, whyNoPooler } from '../../../test/support/pooler.ts'
import { createSqlCluster } from '../../../test/support/sql-cluster.ts'
import { describeStateStore } from '../../../test/support/state-contract.ts'
import { SILENT } from '../../telemetry/log.ts'
import { openPostgres } from '../postgres.ts'
import { openState } from './open-state.ts'
import { listenOnPostgres } from './postgres-wake.ts'
import { preparePostgres } from './prepare-state.ts'
import { stateTables } from './state-schema.ts'

const server = inject('postgresUrl')
const why = whyNoPooler()
const name = `pooled_${randomBytes(6).toString('hex')}`
let pooler: Awaited<ReturnType<typeof startPooler>>
const url = (): string => pooler.url.replace(/\/[^/?]+(?=\?|$)/, `/${name}`)

const onServer = async (statement: string): Promise<void> => {
  const database = openPostgres({ url: server ?? '' })
  await database.exec(statement).finally(() => database.close())
}

if (why && server) console.warn(`The tests behind a pooler are skipped: ${why}.`)

describe.skipIf(server === undefined || why !== undefined)('PostgreSQL behind a pooler in transaction mode', () => {
  beforeAll(async () => {
    await onServer(`CREATE DATABASE ${name}`)
    pooler = await startPooler(server ?? '')
  })
  afterAll(async () => {
    await pooler?.stop()
    await onServer(`DROP DATABASE ${name} WITH (FORCE)`)
  })

  describeStateStore('a pooler', async () => {
    const opened = await createSqlCluster({
      open: async () => openPostgres({ url: url(), maxConnections: 4 }),
      prepare: preparePostgres,
      wake: database => listenOnPostgres(url(), database),
    })
    const { record, event, inbox, member, rate, document } = stateTables(opened.database)
    await opened.database.exec(`TRUNCATE ${[record, event, inbox, member, rate, document].join(', ')}`)
    return opened
  })

  test('replicas that are opened by its address find each other and hear of changes', async () => {
    const database = openPostgres({ url: url() })
    await database.exec('DROP SCHEMA IF EXISTS dragoman_state CASCADE').finally(() => database.close())
    const open = async () => {
      const state = await openState({ kind: 'postgres', url: url(), secrets: undefined }, SILENT)
      onTestFinished(() => state.store.close())
      return state.store
    }
    const [one, other] = await Promise.all([open(), open()])
    await vi.waitFor(() => expect(other.members.at(one.members.self)).toBeDefined(), 10_000)
    const heard = vi.fn()
    other.shared.on('reload', heard)
    heard.mockClear()
    one.shared.notify('reload')
    await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 15_000)
  })
  test('limits of statements do not pass to others that get the same connection of the server', async () => {
    const database = openPostgres({ url: url() })
    onTestFinished(() => database.close())
    const limits = "SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock"
    for (let count = 0; count < 3; count++) expect(await database.get(limits)).toEqual({ statement: '0', lock: '0' })
  })
})
