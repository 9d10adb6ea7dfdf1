import { expect, onTestFinished, test, vi } from 'vitest'
import { startPostgres, whyNoPostgres } from '../../../test/support/postgres.ts'
import { createSqlCluster } from '../../../test/support/sql-cluster.ts'
import { openPostgres } from '../postgres.ts'
import { listenOnPostgres } from './postgres-wake.ts'
import { preparePostgres } from './prepare-state.ts'
import { stateTables } from './state-schema.ts'

const NEVER = { expires: Number.POSITIVE_INFINITY }
const bytes = (text: string): Buffer => Buffer.from(text)
const isOwn = whyNoPostgres() === undefined && !process.env.DATABASE_URL

test.skipIf(!isOwn)('a PostgreSQL that answers too late delays a client once, and gets everything later', async () => {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const shared = await createSqlCluster({
    open: async () => openPostgres({ url: server.url, maxConnections: 4 }),
    prepare: preparePostgres,
    wake: database => listenOnPostgres(server.url, database),
  })
  const [one, other] = [await shared.join(), await shared.join()]
  onTestFinished(() => Promise.all([one, other].map(store => store.close())).then(() => shared.database.close()))
  const name = one.members.self
  const known = await one.create('session', 'known', bytes('1'), NEVER)
  let unlock = (): void => {}
  const isLocked = new Promise<void>(locked => {
    void shared.database.transaction(async sql => {
      await sql.exec(`LOCK TABLE ${stateTables(sql).record} IN ACCESS EXCLUSIVE MODE`)
      locked()
      await new Promise<void>(resolve => {
        unlock = resolve
      })
    })
  })
  await isLocked
  const started = performance.now()
  expect(await one.write(known, bytes('2'), NEVER)).toBe(true)
  const created = await one.create('session', 'new', bytes('new'), NEVER)
  one.journal.append(created, 'p1_1r31', 0, [bytes('event')])
  expect(performance.now() - started).toBeLessThan(10_000)
  unlock()
  for (const store of [one, other]) await vi.waitFor(() => expect(store.health().state).toBe('ok'), 15_000)
  await vi.waitFor(async () => expect((await other.read('session', 'new'))?.body.toString()).toBe('new'), 10_000)
  expect((await other.read('session', 'known'))?.body.toString()).toBe('2')
  await vi.waitFor(async () => expect(await other.journal.read(created, 'p1_1r31', -1, 9)).toHaveLength(1), 5000)
  expect(one.members.self).toBe(name)
})
