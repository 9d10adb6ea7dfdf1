import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startPostgres, type TestPostgres, whyNoPostgres } from '../../test/support/postgres.ts'
import { openPostgres, type PostgresOptions } from './postgres.ts'
import type { SqlDatabase } from './sql.ts'

const why = whyNoPostgres()
let server: TestPostgres

const open = (): SqlDatabase => {
  const postgres = openPostgres({ url: server.url, lockTimeoutMs: 2_000 })
  onTestFinished(() => postgres.close())
  return postgres
}

/** A table of its own with the rows 1 and 2. */
const table = async (postgres: SqlDatabase, name: string): Promise<string> => {
  await postgres.exec(`DROP TABLE IF EXISTS ${name}; CREATE TABLE ${name} (id int PRIMARY KEY, n bigint, t text)`)
  await postgres.exec(`INSERT INTO ${name} VALUES (1, 0, ''), (2, 0, '')`)
  onTestFinished(() => postgres.exec(`DROP TABLE IF EXISTS ${name}`))
  return name
}

describe.skipIf(why)(`a pool of PostgreSQL connections${why ? ` (skipped: ${why})` : ''}`, () => {
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.stop())

  test('values go in and come out as they are, large numbers, bytes and lists too', async () => {
    const row = await open().transaction(sql =>
      sql.get(
        'SELECT ?::bigint AS n, ?::text AS t, ?::bytea AS b, ?::text[] AS l, ?2::text AS again',
        8.64e15,
        'Zoë \u{1F600}\0',
        new Uint8Array([0, 255]),
        ['a"b', '{,}', null],
      ),
    )
    const text = 'Zoë \u{1F600}\u2400'
    expect(row).toEqual({ n: 8.64e15, t: text, b: Buffer.from([0, 255]), l: ['a"b', '{,}', null], again: text })
  })

  test('work that fails leaves nothing, and the connection is good for the next', async () => {
    const postgres = open()
    const name = await table(postgres, 'driver_rollback')
    const work = postgres.transaction(async sql => {
      await sql.run(`UPDATE ${name} SET n = 1`)
      throw new Error('changed my mind')
    })
    await expect(work).rejects.toThrow('changed my mind')
    expect(await postgres.transaction(sql => sql.get(`SELECT sum(n)::int AS n FROM ${name}`))).toEqual({ n: 0 })
  })

  test('work that swallowed a failed statement is not reported as done', async () => {
    const work = open().transaction(async sql => {
      await sql.run('SELECT nothing').catch(() => {})
    })
    await expect(work).rejects.toThrow(/had failed/)
  })

  test('two that lock each other out both get done', async () => {
    const postgres = open()
    const name = await table(postgres, 'driver_deadlock')
    let waiting = 0
    let meet: () => void = () => {}
    const met = new Promise<void>(resolve => (meet = resolve))
    const both = [
      [1, 2],
      [2, 1],
    ].map(order =>
      postgres.transaction(async sql => {
        await sql.run(`UPDATE ${name} SET n = n + 1 WHERE id = ?`, order[0] ?? 0)
        if (++waiting === 2) meet()
        await met
        await sql.run(`UPDATE ${name} SET n = n + 1 WHERE id = ?`, order[1] ?? 0)
      }),
    )
    await Promise.all(both)
    const rows = await postgres.transaction(sql => sql.all(`SELECT n FROM ${name} ORDER BY id`))
    expect(rows).toEqual([{ n: 2 }, { n: 2 }])
  })

  test('a connection that is lost in the middle is replaced, and the work is done once', async () => {
    const postgres = open()
    const name = await table(postgres, 'driver_lost')
    let attempts = 0
    await postgres.transaction(async sql => {
      await sql.run(`UPDATE ${name} SET n = n + 1 WHERE id = 1`)
      if (++attempts > 1) return
      const row = await sql.get<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      await postgres.transaction(other => other.get('SELECT pg_terminate_backend(?)', row?.pid ?? 0))
      await sql.run(`UPDATE ${name} SET n = n + 1 WHERE id = 2`)
    })
    expect(attempts).toBe(2)
    const rows = await postgres.transaction(sql => sql.all(`SELECT n FROM ${name} ORDER BY id`))
    expect(rows).toEqual([{ n: 1 }, { n: 0 }])
  })

  test('a lock that is not given up makes the waiter say so', async () => {
    const postgres = open()
    const name = await table(postgres, 'driver_busy')
    await postgres.transaction(async sql => {
      await sql.run(`SELECT 1 FROM ${name} FOR UPDATE`)
      const other = postgres.transaction(waiter => waiter.run(`UPDATE ${name} SET n = 1`))
      await expect(other).rejects.toMatchObject({ kind: 'busy' })
    })
  })

  describe('a statement that takes too long', () => {
    const running = `SELECT count(*)::int AS n FROM pg_stat_activity
WHERE query LIKE 'SELECT pg_sleep(9%' AND state = 'active'`
    const openImpatient = (options: Partial<PostgresOptions> = {}): SqlDatabase => {
      const postgres = openPostgres({ url: server.url, answerMs: 1500, ...options })
      onTestFinished(() => postgres.close())
      return postgres
    }

    test.each([
      ['alone', (postgres: SqlDatabase) => postgres.get('SELECT pg_sleep(9 + ?::int)', 0)],
      ['in a transaction', (postgres: SqlDatabase) => postgres.transaction(sql => sql.get('SELECT pg_sleep(9)'))],
    ])('%s, is ended by the server, and costs no other connection', async (_, ask) => {
      const postgres = openImpatient()
      const view = await postgres.snapshot()
      await expect(ask(postgres)).rejects.toMatchObject({ kind: 'busy', state: '57014' })
      expect(await view.sql.get(running)).toEqual({ n: 0 })
      await view.close()
    })

    test('because of a lock is told so', async () => {
      const postgres = openImpatient({ lockTimeoutMs: 200 })
      const name = await table(open(), 'driver_waits')
      await postgres.transaction(async sql => {
        await sql.run(`SELECT 1 FROM ${name} FOR UPDATE`)
        await expect(postgres.run(`UPDATE ${name} SET n = 1`)).rejects.toMatchObject({ kind: 'busy', state: '55P03' })
      })
    })

    test('goes on if it was said to be long, also on a connection that has run others', async () => {
      const postgres = openImpatient({ maxConnections: 1 })
      await postgres.get('SELECT 1')
      await postgres.runLong('SELECT pg_sleep(2)')
      await expect(postgres.get('SELECT pg_sleep(9)')).rejects.toMatchObject({ kind: 'busy', state: '57014' })
    })
  })

  test('a snapshot sees one moment until it is closed', async () => {
    const postgres = open()
    const name = await table(postgres, 'driver_snapshot')
    const view = await postgres.snapshot()
    const sum = `SELECT sum(n)::int AS n FROM ${name}`
    expect(await view.sql.get(sum)).toEqual({ n: 0 })
    await postgres.transaction(sql => sql.run(`UPDATE ${name} SET n = 1`))
    expect(await view.sql.get(sum)).toEqual({ n: 0 })
    await view.close()
    await view.close()
    expect(await postgres.transaction(sql => sql.get(sum))).toEqual({ n: 2 })
  })

  test('a wrong database is rejected as denied', async () => {
    const postgres = openPostgres({ url: server.url.replace(/\/[^/?]+(\?|$)/, '/no_such_database$1') })
    onTestFinished(() => postgres.close())
    await expect(postgres.transaction(sql => sql.get('SELECT 1'))).rejects.toMatchObject({ kind: 'denied' })
  })
})

test('a server that is not there is unreachable, and the place is named without the password', async () => {
  const postgres = openPostgres({ url: 'postgresql://me:secret@127.0.0.1:1/mine' })
  onTestFinished(() => postgres.close())
  await expect(postgres.transaction(sql => sql.get('SELECT 1'))).rejects.toMatchObject({ kind: 'unreachable' })
  expect(postgres.location).toBe('127.0.0.1:1/mine')
})
