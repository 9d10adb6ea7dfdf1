import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { startPostgres, type TestPostgres, whyNoPostgres } from '../../../test/support/postgres.ts'
import { startSilentNetwork } from '../../../test/support/silent-network.ts'
import { createSqlCluster, type SqlCluster } from '../../../test/support/sql-cluster.ts'
import { openPostgres } from '../postgres.ts'
import { listenOnPostgres } from './postgres-wake.ts'
import { preparePostgres } from './prepare-state.ts'
import type { SqlState } from './sql-state.ts'
import { stateTables } from './state-schema.ts'

const NEVER = { expires: Number.POSITIVE_INFINITY }
const bytes = (text: string): Buffer => Buffer.from(text)
const isOwn = whyNoPostgres() === undefined && !process.env.DATABASE_URL

/** Two replicas on a server of their own, which a test may stop or delay. */
const startTwo = async (): Promise<{ server: TestPostgres; shared: SqlCluster; one: SqlState; other: SqlState }> => {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const shared = await createSqlCluster({
    open: async () => openPostgres({ url: server.url, maxConnections: 4 }),
    prepare: preparePostgres,
    wake: database => listenOnPostgres(server.url, database),
  })
  onTestFinished(() => shared.close())
  return { server, shared, one: await shared.join(), other: await shared.join() }
}

test.skipIf(!isOwn)('a PostgreSQL that answers too late delays a client once, and gets everything later', async () => {
  const { shared, one, other } = await startTwo()
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

test.skipIf(!isOwn)('a PostgreSQL that is killed and started again costs no session and no lease', async () => {
  const { server, one, other } = await startTwo()
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

/** A PostgreSQL behind a network that can lose its connections without a word. */
const startSilent = async () => {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const network = await startSilentNetwork(server.url)
  onTestFinished(() => network.close())
  return { server, network }
}

describe.skipIf(!isOwn)('connections that the network has lost without a word', () => {
  test('are all replaced when one statement has no answer', async () => {
    const { network } = await startSilent()
    const database = openPostgres({ url: network.url, answerMs: 500, closeMs: 500 })
    onTestFinished(() => database.close())
    const ask = () => database.get('SELECT 1 AS one, pg_sleep(0.05)')
    await Promise.all([ask(), ask(), ask()])
    network.silence()
    await expect(database.get('SELECT 1')).rejects.toMatchObject({ kind: 'unreachable' })
    await expect(Promise.all([ask(), ask(), ask()])).resolves.toHaveLength(3) // none of them waits for itself
    network.silence()
    await expect(database.transaction(sql => sql.get('SELECT 1 AS one'))).resolves.toEqual({ one: 1 })
  })

  test('do not keep the pool from closing', async () => {
    const { server, network } = await startSilent()
    const other = openPostgres({ url: server.url })
    onTestFinished(() => other.close())
    const database = openPostgres({ url: network.url, closeMs: 300 })
    const hanging = expect(database.get('SELECT pg_sleep(60)')).rejects.toMatchObject({ kind: 'unreachable' })
    const running =
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
    await vi.waitFor(async () => expect(await other.get(running)).toEqual({ n: 1 }), 5000)
    network.silence()
    await database.close()
    await hanging
  })

  test('are replaced for a replica that only listens, which also closes without them', async () => {
    const { server, network } = await startSilent()
    const other = openPostgres({ url: server.url })
    onTestFinished(() => other.close())
    const wake = listenOnPostgres(network.url, other, 200)
    const heard = vi.fn()
    wake.onWake(heard)
    const sender = listenOnPostgres(server.url, other)
    onTestFinished(() => sender.close())
    const isHeard = async (topic: string) =>
      vi.waitFor(async () => {
        await sender.send([topic])
        expect(heard).toHaveBeenCalledWith(topic)
      }, 8000)
    await isHeard('before')
    network.silence()
    await isHeard('after')
    network.silence()
    await wake.close()
  })
})
