import { expect, onTestFinished, test, vi } from 'vitest'
import { startPostgres, whyNoPostgres } from '../../../test/support/postgres.ts'
import { createSqlCluster } from '../../../test/support/sql-cluster.ts'
import { openPostgres } from '../postgres.ts'
import { listenOnPostgres } from './postgres-wake.ts'
import { preparePostgres } from './prepare-state.ts'

const NEVER = { expires: Number.POSITIVE_INFINITY }
const bytes = (text: string): Buffer => Buffer.from(text)
const isOwn = whyNoPostgres() === undefined && !process.env.DATABASE_URL

test.skipIf(!isOwn)('a PostgreSQL that is killed and started again costs no session and no lease', async () => {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const shared = await createSqlCluster({
    open: async () => openPostgres({ url: server.url, maxConnections: 4 }),
    prepare: preparePostgres,
    wake: database => listenOnPostgres(server.url, database),
  })
  const [one, other] = [await shared.join(), await shared.join()]
  onTestFinished(() => Promise.all([one, other].map(store => store.close())).then(() => shared.database.close()))
  const names = [one.members.self, other.members.self]
  const lost = vi.fn()
  for (const store of [one, other]) store.onLost(lost)
  const known = await one.create('session', 'known', bytes('1'), NEVER)
  await server.kill()
  expect(await one.write(known, bytes('2'), NEVER)).toBe(true)
  const created = await one.create('session', 'new', bytes('new'), NEVER)
  expect(one.health()).toMatchObject({ engine: 'postgres', state: 'away' })
  await expect(other.take('session', 'known')).rejects.toMatchObject({ reason: 'away' })
  await server.restart()
  for (const store of [one, other]) await vi.waitFor(() => expect(store.health().state).toBe('ok'), 15_000)
  await vi.waitFor(async () => expect((await other.read('session', 'new'))?.body.toString()).toBe('new'), 5000)
  expect((await other.read('session', 'known'))?.body.toString()).toBe('2')
  expect(await other.take('session', 'known')).toEqual({ kind: 'other', home: names[0] })
  expect(await one.write(created, bytes('newer'), NEVER)).toBe(true)
  expect([one.members.self, other.members.self]).toEqual(names)
  expect(lost).not.toHaveBeenCalled()
  const heard = vi.fn()
  other.shared.on('reload', heard)
  one.shared.notify('reload')
  await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 5000)
})
