import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { createSqlCluster, type SqlCluster } from '../../../test/support/sql-cluster.ts'
import { describeStateStore } from '../../../test/support/state-contract.ts'
import { SILENT } from '../../telemetry/log.ts'
import { openPostgres } from '../postgres.ts'
import type { SqlDatabase } from '../sql.ts'
import { openState } from './open-state.ts'
import { listenOnPostgres } from './postgres-wake.ts'
import { preparePostgres } from './prepare-state.ts'
import type { Secrets } from './secret.ts'
import { stateTables } from './state-schema.ts'
import { NO_WAKE } from './wake.ts'

const server = inject('postgresUrl')
const name = `state_${randomBytes(6).toString('hex')}`
const url = (server ?? '').replace(/\/[^/?]+(?=\?|$)/, `/${name}`)
const NEVER = { expires: Number.POSITIVE_INFINITY }

const onServer = async (statement: string): Promise<void> => {
  const database = openPostgres({ url: server ?? '' })
  await database.exec(statement).finally(() => database.close())
}

const open = async (): Promise<SqlDatabase> => openPostgres({ url, maxConnections: 4 })
const cluster = (wake = true, openDatabase = open): Promise<SqlCluster> =>
  createSqlCluster({
    open: openDatabase,
    prepare: preparePostgres,
    wake: database => (wake ? listenOnPostgres(url, database) : NO_WAKE),
  })

describe.skipIf(server === undefined)('PostgreSQL', () => {
  beforeAll(() => onServer(`CREATE DATABASE ${name}`))
  afterAll(() => onServer(`DROP DATABASE ${name} WITH (FORCE)`))

  describeStateStore('PostgreSQL', async () => {
    const opened = await cluster()
    const { record, event, inbox, member, rate, document } = stateTables(opened.database)
    await opened.database.exec(`TRUNCATE ${[record, event, inbox, member, rate, document].join(', ')}`)
    return opened
  })

  describe('opened by its address', () => {
    const opened = async (secrets?: Secrets) => {
      const state = await openState({ kind: 'postgres', url, secrets }, SILENT)
      onTestFinished(() => state.store.close())
      return state
    }
    const clean = async (statement = 'DROP SCHEMA IF EXISTS dragoman_state CASCADE') => {
      const database = openPostgres({ url })
      await database.exec(statement).finally(() => database.close())
    }

    test('replicas share a secret that the first one creates, and see what the others store', async () => {
      await clean()
      const [one, other] = await Promise.all([opened(), opened()])
      expect(other.keys).toEqual(one.keys)
      expect(one.store.health()).toMatchObject({ engine: 'postgres', state: 'ok' })
      await one.store.create('session', 'a', Buffer.from('x'), NEVER)
      const home = one.store.members.self
      await vi.waitFor(async () => expect(await other.store.take('session', 'a')).toEqual({ kind: 'other', home }))
    })

    // Event triggers are for superusers.
    test.skipIf(process.env.DATABASE_URL)(
      'tables are created and changed with more time than statements have later',
      async () => {
        await clean()
        await clean(`CREATE TABLE limits (ms int);
CREATE FUNCTION note_limit() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
INSERT INTO public.limits SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'; END $$;
CREATE EVENT TRIGGER note_limit ON ddl_command_end EXECUTE FUNCTION note_limit()`)
        const database = openPostgres({ url })
        onTestFinished(() => database.close())
        onTestFinished(() => clean('DROP EVENT TRIGGER note_limit; DROP FUNCTION note_limit; DROP TABLE limits'))
        await opened()
        const { least } = (await database.get<{ least: number }>('SELECT min(ms) AS least FROM limits')) ?? {}
        expect(least).toBeGreaterThan(50_000)
      },
    )

    test('a secret is replaced step by step; a replica without the right one is refused', async () => {
      await clean()
      const [former, next] = ['the former secret', 'the next secret']
      const one = await opened([former])
      await one.store.create('session', 'a', Buffer.from('x'), NEVER)
      await expect(opened(['a wrong secret'])).rejects.toThrow(/sealed with another secret/)
      await one.store.releaseAll()
      const both = await opened([next, former])
      expect(await both.store.take('session', 'a')).toMatchObject({ kind: 'mine' })
      await both.store.create('session', 'b', Buffer.from('y'), NEVER)
      const last = await opened([next])
      expect((await last.store.read('session', 'b'))?.body.toString()).toBe('y')
    })

    test('a schema of a newer version is refused and not changed', async () => {
      await clean()
      await (await opened()).store.close()
      await clean("UPDATE dragoman_state.meta SET value = '99' WHERE name = 'schema'")
      await expect(opened()).rejects.toThrow(/newer version of dragoman \(schema 99, this one knows 2\)/)
      await clean()
    })

    test('one that is not there is refused with what to do, without its password', async () => {
      const gone = openState({ kind: 'postgres', url: 'postgres://me:hidden@127.0.0.1:1/mine' }, SILENT)
      await expect(gone).rejects.toThrow(/the store 127.0.0.1:1\/mine cannot be used: .*Check that it runs/)
      await expect(gone).rejects.not.toThrow(/hidden/)
    })
  })

  test('without notifications, for example through a pooler, replicas learn by polling', async () => {
    const shared = await cluster(false)
    onTestFinished(() => shared.close())
    const [one, other] = [await shared.join(), await shared.join()]
    const heard = vi.fn()
    other.shared.on('reload', heard)
    one.shared.notify('reload')
    await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 5000)
  })

  test('a lease that runs out ends by the clock of the database, and its records can be taken', async () => {
    const shared = await cluster()
    onTestFinished(() => shared.close())
    const one = await shared.join(undefined, { beatMs: 60_000, leaseMs: 50 }) // as if it hung
    const other = await shared.join()
    const claim = await one.create('session', 'hung', Buffer.from('x'), NEVER)
    const left = vi.fn()
    other.members.onLeft(left)
    const { self } = one.members
    await vi.waitFor(() => expect(left).toHaveBeenCalledWith(self), 10_000)
    expect(await other.take('session', 'hung')).toMatchObject({ kind: 'mine', held: { epoch: 2 } })
    expect(await one.write(claim, Buffer.from('late'), NEVER)).toBe(false)
  })

  test('a step of the clock of the database ends no lease but those that had run out', async () => {
    let [aheadMs, nextMs] = [0, 0]
    let first = ''
    const stepped = (text: string, values: readonly unknown[] = []): string => {
      if (/^UPDATE \S*member/.test(text) && values.includes(first)) aheadMs = nextMs // while it renews its lease
      return text.replaceAll('clock_timestamp()', `(clock_timestamp() + interval '${aheadMs} milliseconds')`)
    }
    const shared = await cluster(true, async () => {
      const { run, all, ...others } = await open()
      return {
        ...{ ...others, all: (text, ...values) => all(stepped(text), ...values) },
        run: (text, ...values) => run(stepped(text, values), ...values),
      }
    })
    onTestFinished(() => shared.close())
    const later = { beatMs: 500 }
    const stores = [await shared.join(), await shared.join(undefined, later), await shared.join(undefined, later)]
    const names = stores.map(({ members }) => members.self)
    first = names[0] ?? ''
    const [left, lost] = [vi.fn(), vi.fn()]
    for (const store of stores) {
      store.members.onLeft(left)
      store.onLost(lost)
    }
    await Promise.all(stores.map((store, at) => store.create('session', `stepped ${at}`, Buffer.from('x'), NEVER)))
    const { self: hung } = (await shared.join(undefined, { beatMs: 60_000, leaseMs: 50 })).members
    await vi.waitFor(() => expect(left.mock.calls).toEqual([[hung], [hung], [hung]]), 10_000) // leases are ended now
    left.mockClear()
    const leftMs = async (): Promise<number[]> => {
      const { member } = stateTables(shared.database)
      const text = `SELECT lease_until - (extract(epoch FROM clock_timestamp()) * 1000) AS ms FROM ${member}`
      return (await shared.database.all<{ ms: string }>(text)).map(({ ms }) => Number(ms))
    }
    for (const step of [3_600_000, 0]) {
      nextMs = step
      const isRenewed = (ms: number): boolean => ms > 0 && ms <= 6000
      await vi.waitFor(async () => {
        expect(aheadMs).toBe(step)
        expect((await leftMs()).map(isRenewed)).toEqual([true, true, true])
      }, 5000)
    }
    expect(stores.map(({ members }) => members.self)).toEqual(names)
    expect([left.mock.calls, lost.mock.calls]).toEqual([[], []])
  })

  test('events that are being written when their session is removed do not outlive it', async () => {
    const shared = await cluster()
    onTestFinished(() => shared.close())
    const database = await open()
    const { transaction } = database
    let write = (): void => {}
    const mayWrite = new Promise<void>(resolve => {
      write = resolve
    })
    const isWriting = vi.fn()
    database.transaction = (work, options) =>
      transaction(async sql => {
        const run: typeof sql.run = async (text, ...values) => {
          if (!/^INSERT INTO \S*event/.test(text)) return sql.run(text, ...values)
          isWriting()
          await mayWrite
          return sql.run(text, ...values)
        }
        return work({ ...sql, run })
      }, options)
    const one = await shared.join(undefined, { database })
    const claim = await one.create('session', 'removed', Buffer.from('x'), NEVER)
    one.journal.append(claim, 'p1_1', 0, [Buffer.from('event')])
    await vi.waitFor(() => expect(isWriting).toHaveBeenCalled())
    const removing = one.remove(claim)
    await one.create('session', 'other', Buffer.from('x'), NEVER) // by now it would have been removed
    await one.read('session', 'removed')
    write()
    await removing
    await one.journal.flush()
    expect(
      await shared.database.all(`SELECT 1 FROM ${stateTables(shared.database).event} WHERE stream = 'p1_1'`),
    ).toEqual([])
  })

  test('a database that lost its data gets it again from the homes', async () => {
    const shared = await cluster()
    onTestFinished(() => shared.close())
    const [one, other] = [await shared.join(), await shared.join()]
    const claim = await one.create('session', 'kept', Buffer.from('body'), NEVER)
    const names = [one.members.self, other.members.self].toSorted()
    await shared.database.exec('DROP SCHEMA dragoman_state CASCADE')
    await vi.waitFor(async () => expect((await other.read('session', 'kept'))?.body.toString()).toBe('body'), 10_000)
    expect(await one.write(claim, Buffer.from('next'), NEVER)).toBe(true)
    await vi.waitFor(
      () =>
        expect(
          other.members
            .all()
            .map(({ replica }) => replica)
            .toSorted(),
        ).toEqual(names),
      10_000,
    )
    expect([one.members.self, other.members.self].toSorted()).toEqual(names)
  })
})
