import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { breakable } from '../../../test/support/breakable-database.ts'
import { createTestLog } from '../../../test/support/log.ts'
import { createLocalWake, createSqlCluster, type SqlCluster } from '../../../test/support/sql-cluster.ts'
import { SILENT } from '../../telemetry/log.ts'
import { type Sql, type SqlDatabase, SqlError, type SqlValue } from '../sql.ts'
import { openSqlite } from '../sqlite.ts'
import { HeldRecords, holdRecord } from './held-records.ts'
import { prepareSqlite } from './prepare-state.ts'
import { trimOldest } from './sql-events.ts'
import { findOrphaned } from './sql-records.ts'
import { stateTables } from './state-schema.ts'
import type { Claim, StateStore } from './state-store.ts'

const NEVER = { expires: Number.POSITIVE_INFINITY }
const bytes = (text: string): Buffer => Buffer.from(text)

const cluster = async (): Promise<SqlCluster & { open: () => Promise<SqlDatabase> }> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-faults-'))
  const open = () => openSqlite(join(folder, 'state.db'))
  const shared = await createSqlCluster({ open, prepare: prepareSqlite, wake: createLocalWake() })
  onTestFinished(async () => {
    await shared.close()
    await rm(folder, { recursive: true, force: true })
  })
  return { ...shared, open }
}

const broken = async () => {
  const shared = await cluster()
  const { database, fault } = breakable(await shared.open())
  const one = await shared.join(undefined, { database })
  return { shared, one, other: await shared.join(), fault }
}

const isBack = (store: StateStore) => vi.waitFor(() => expect(store.health().state).toBe('ok'), 5000)

describe('a store that is away', () => {
  test('learns the address of a replica that started meanwhile when it is back', async () => {
    const { one, other, fault } = await broken()
    fault.kind = 'fails'
    await one.members.announce({ address: 'http://10.0.0.1:1', labels: [] })
    expect(other.members.at(one.members.self)?.address).not.toBe('http://10.0.0.1:1')
    fault.kind = 'none'
    await vi.waitFor(() => expect(other.members.at(one.members.self)?.address).toBe('http://10.0.0.1:1'), 5000)
  })

  test('has claimed abandoned records without an answer: they are not lost', async () => {
    const { shared, one, other, fault } = await broken()
    await other.create('task', 't', bytes('t'), NEVER)
    await shared.kill(other.members.self)
    fault.kind = 'unanswered'
    await expect(one.takeAbandoned('task', 'orphaned', 9)).rejects.toMatchObject({ reason: 'away' })
    fault.kind = 'none'
    await isBack(one)
    expect(await other.takeAbandoned('task', 'orphaned', 9)).toEqual([])
    const [taken] = await one.takeAbandoned('task', 'orphaned', 9)
    expect(taken).toMatchObject({ kind: 'task', id: 't', epoch: 2 })
    expect(await one.write(taken as Claim, bytes('u'), NEVER)).toBe(true)
    expect(await one.takeAbandoned('task', 'orphaned', 9)).toEqual([])
  })

  test('has claimed abandoned records without an answer: they count for the limit', async () => {
    const { shared, one, other, fault } = await broken()
    for (const id of ['a', 'b', 'c', 'd', 'e']) await other.create('task', id, bytes(id), NEVER)
    await shared.kill(other.members.self)
    fault.kind = 'unanswered'
    await expect(one.takeAbandoned('task', 'orphaned', 3)).rejects.toMatchObject({ reason: 'away' })
    fault.kind = 'none'
    await isBack(one)
    const taken = []
    for (const limit of [2, 2, 9]) taken.push(await one.takeAbandoned('task', 'orphaned', limit))
    expect(taken.map(({ length }) => length)).toEqual([2, 2, 1])
    expect(new Set(taken.flat().map(({ id }) => id)).size).toBe(5)
  })

  test('lets known sessions go on, takes new ones, and stores both when it is back', async () => {
    const { one, other, fault } = await broken()
    const known = await one.create('session', 'known', bytes('1'), NEVER)
    const removed = await one.create('session', 'removed', bytes('x'), NEVER)
    fault.kind = 'fails'
    expect(await one.write(known, bytes('2'), NEVER)).toBe(true)
    expect(one.health()).toMatchObject({ state: 'memory-only', reason: 'connection refused' })
    const created = await one.create('session', 'new', bytes('new'), NEVER)
    expect(await one.write(known, bytes('3'), NEVER)).toBe(true)
    expect((await one.read('session', 'new'))?.body.toString()).toBe('new')
    one.journal.append(created, 's', 1, [bytes('event')])
    await one.remove(removed)
    await expect(one.take('session', 'foreign')).rejects.toMatchObject({ reason: 'away' })
    await expect(one.create('task', 't', bytes('t'), { ...NEVER, durable: true })).rejects.toMatchObject({
      reason: 'away',
    })
    expect(await one.takeAbandoned('session', 'orphaned', 9)).toEqual([])
    fault.kind = 'none'
    await isBack(one)
    await vi.waitFor(async () => expect((await other.read('session', 'new'))?.body.toString()).toBe('new'))
    expect((await other.read('session', 'known'))?.body.toString()).toBe('3')
    expect(await other.read('session', 'removed')).toBeUndefined()
    await vi.waitFor(async () => expect(await other.journal.read(created, 's', 0, 9)).toHaveLength(1))
  })

  test('takes a new session while it stores those of before', async () => {
    const shared = await cluster()
    const { database, fault } = breakable(await shared.open())
    const created: Promise<Claim>[] = []
    const info = (_: object, message: string): void => {
      // After the writes that wait have begun, and before those of before are looked for.
      if (message === 'store came back')
        queueMicrotask(() => created.push(one.create('session', 'new', bytes('x'), NEVER)))
    }
    const one = await shared.join(undefined, { database, log: { ...SILENT, info } })
    fault.kind = 'fails'
    await one.create('session', 'before', bytes('x'), NEVER)
    fault.kind = 'none'
    await vi.waitFor(() => expect(created).toHaveLength(1), 5000)
    const [claim] = await Promise.all(created)
    expect(await one.write(claim as Claim, bytes('y'), NEVER)).toBe(true)
    expect((await shared.database.all('SELECT 1 FROM record')).length).toBe(2)
  })

  test('that does not answer is waited for two seconds, once', async () => {
    const { one, fault } = await broken()
    fault.kind = 'hangs'
    const started = performance.now()
    await one.create('session', 'a', bytes('x'), NEVER)
    await one.create('session', 'b', bytes('x'), NEVER)
    const waited = performance.now() - started
    expect(waited).toBeGreaterThan(500)
    expect(waited).toBeLessThan(3500)
    expect(one.health().reason).toMatch(/did not answer for 2 s/)
    fault.kind = 'none'
    await isBack(one)
  })

  test('keeps a bounded queue of events: the oldest are given up, and no caller waits', async () => {
    const { one, fault } = await broken()
    const claim = await one.create('session', 'a', bytes('x'), NEVER)
    fault.kind = 'fails'
    await one.write(claim, bytes('y'), NEVER)
    const event = Buffer.alloc(1024 * 1024)
    for (let seq = 1; seq <= 40; seq++) expect(one.journal.append(claim, 's', seq, [event])).toBeUndefined()
    expect(one.health().queuedBytes).toBeLessThanOrEqual(16 * 1024 * 1024)
    fault.kind = 'none'
    await isBack(one)
    const events = await vi.waitFor(async () => {
      const found = await one.journal.read(claim, 's', 0, 100)
      expect(found).not.toEqual([])
      return found
    })
    expect(events[0]?.seq).toBeGreaterThan(20)
  })

  test('whose record was taken meanwhile reports the loss', async () => {
    const { shared, one, other, fault } = await broken()
    const claim = await one.create('session', 'a', bytes('1'), NEVER)
    const lost: Claim[] = []
    one.onLost(each => lost.push(each))
    fault.kind = 'fails'
    expect(await one.write(claim, bytes('2'), NEVER)).toBe(true)
    await shared.kill(one.members.self)
    await vi.waitFor(async () => expect(await other.take('session', 'a')).toMatchObject({ kind: 'mine' }))
    fault.kind = 'none'
    await vi.waitFor(() => expect(lost).toEqual([claim]), 5000)
    expect((await other.read('session', 'a'))?.body.toString()).toBe('1')
  })

  test('stores the events of sessions that are not stored again yet', async () => {
    const shared = await cluster()
    const { database, fault } = breakable(await shared.open())
    const one = await shared.join(undefined, { database })
    fault.kind = 'fails'
    const claims = await Promise.all(['a', 'b'].map(id => one.create('session', id, bytes(id), NEVER)))
    const append = (seq: number): void => {
      for (const claim of claims) one.journal.append(claim, 'p1_1', seq, [bytes(`event ${seq}`)])
    }
    append(0)
    let resume = (): void => {}
    const isResumed = new Promise<void>(resolve => {
      resume = resolve
    })
    const { transaction } = database
    let transactions = 0
    database.transaction = async (...args) => {
      if (++transactions === 1) await isResumed // the first batch of records is slow
      return transaction(...args)
    }
    fault.kind = 'none'
    await vi.waitFor(() => expect(transactions).toBe(1), 5000)
    append(1)
    await vi.waitFor(() => expect(one.health().queuedBytes).toBe(0))
    await vi.waitFor(() => expect(transactions).toBeGreaterThan(1))
    resume()
    await isBack(one)
    for (const claim of claims) {
      const texts = async () => (await one.journal.read(claim, 'p1_1', -1, 9)).map(({ data }) => data.toString())
      await vi.waitFor(async () => expect(await texts()).toEqual(['event 0', 'event 1']))
    }
  })

  test('does not bring back a record that is removed while it is stored', async () => {
    const shared = await cluster()
    const { database, fault } = breakable(await shared.open())
    const one = await shared.join(undefined, { database })
    fault.kind = 'fails'
    const claims = await Promise.all(
      Array.from({ length: 120 }, (_, at) => one.create('session', `s${at}`, bytes('x'), NEVER)),
    )
    let removing: Promise<unknown> | undefined
    const { transaction } = database
    database.transaction = async (...args) => {
      const result = await transaction(...args)
      removing ??= Promise.all(claims.map(claim => one.remove(claim))) // after the first of several batches
      return result as never
    }
    fault.kind = 'none'
    await vi.waitFor(() => expect(removing).toBeDefined(), 5000)
    await removing
    await one.releaseAll() // after the other batches
    expect(await shared.database.all('SELECT 1 FROM record')).toEqual([])
  })

  test('keeps what is to be deleted when the replica has lost its lease meanwhile', () => {
    const held = new HeldRecords()
    const record = holdRecord(
      { kind: 'session', id: 'x', home: 'a', epoch: 1, expires: 1, body: bytes('x') },
      'x',
      'empty',
    )
    held.removeLater(record)
    held.clear()
    expect(held.takeRemoved()).toEqual([record])
  })

  test('on a full disk keeps state in memory, and stores it when there is room', async () => {
    const shared = await cluster()
    const database = await shared.open()
    const one = await shared.join(undefined, { database })
    const [{ page_count: pages } = { page_count: 0 }] = await database.all<{ page_count: number }>('PRAGMA page_count')
    await database.exec(`PRAGMA max_page_count = ${pages}`)
    const body = Buffer.alloc(60_000, 1)
    const claims = await Promise.all(['a', 'b', 'c'].map(id => one.create('session', id, body, NEVER)))
    expect(claims).toHaveLength(3)
    await vi.waitFor(() =>
      expect(one.health()).toMatchObject({ state: 'memory-only', reason: expect.stringMatching(/full/) }),
    )
    await database.exec('PRAGMA max_page_count = 1000000')
    await vi.waitFor(async () => expect((await shared.database.all('SELECT 1 FROM record')).length).toBe(3), 5000)
    await isBack(one)
  })
})

test('a file that is damaged in part is not used again, and the log says so once', async () => {
  const shared = await cluster()
  const database = await shared.open()
  const { log, lines } = createTestLog()
  const one = await shared.join(undefined, { database, log })
  const known = await one.create('session', 'a', bytes('1'), NEVER)
  let statements = 0
  const { run } = database
  database.run = async (text, ...values) => {
    statements++
    if (/ record /.test(text)) throw new SqlError('damaged', 'database disk image is malformed')
    return run(text, ...values)
  }
  expect(await one.write(known, bytes('2'), NEVER)).toBe(true)
  const { state, reason } = one.health()
  expect([state, reason]).toEqual(['memory-only', 'it is damaged (database disk image is malformed)'])
  const before = statements
  for (let beat = 0; beat < 5; beat++) await one.members.beat()
  const added = await one.create('session', 'b', bytes('b'), NEVER)
  expect((await one.read('session', 'b'))?.body.toString()).toBe('b')
  await one.remove(added)
  await expect(one.create('task', 't', bytes('t'), { ...NEVER, durable: true })).rejects.toMatchObject({
    reason: 'away',
  })
  expect([statements - before, one.health().state]).toEqual([0, 'memory-only'])
  expect(lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    'error store is damaged; state is kept in memory until a restart',
  ])
})

test('a write that fails does not keep later ones from being stored', async () => {
  const shared = await cluster()
  const database = await shared.open()
  const { run } = database
  let isRejected = false
  database.run = async (...args) => {
    if (isRejected) throw new SqlError('limit', 'too large')
    return run(...args)
  }
  const one = await shared.join(undefined, { database })
  const claim = await one.create('session', 'a', bytes('1'), NEVER)
  isRejected = true
  await expect(one.write(claim, bytes('2'), NEVER)).rejects.toThrow('too large')
  isRejected = false
  expect(await one.write(claim, bytes('3'), NEVER)).toBe(true)
  expect((await one.read('session', 'a'))?.body.toString()).toBe('3')
})

test('a record is removed with its events, or not at all', async () => {
  const shared = await cluster()
  const { database, fault } = breakable(await shared.open())
  const broken = (sql: Sql): Sql => ({
    ...sql,
    run: async (text, ...values) => {
      if (text.startsWith('DELETE FROM event')) throw new SqlError('unreachable', 'connection lost')
      return sql.run(text, ...values)
    },
  })
  const { run, transaction } = database
  const one = await shared.join(undefined, { database })
  const claim = await one.create('session', 'a', bytes('1'), NEVER)
  one.journal.append(claim, 'p1_1', 0, [bytes('event')])
  await one.journal.flush()
  database.run = broken(database).run
  database.transaction = (work, options) => transaction(sql => work(broken(sql)), options)
  await one.remove(claim)
  fault.kind = 'fails'
  Object.assign(database, { run, transaction })
  const rows = async () => {
    const { record, event } = stateTables(database)
    return [
      (await shared.database.all(`SELECT 1 FROM ${record}`)).length,
      (await shared.database.all(`SELECT 1 FROM ${event}`)).length,
    ]
  }
  expect(await rows()).toEqual([1, 1])
  fault.kind = 'none'
  await vi.waitFor(async () => expect(await rows()).toEqual([0, 0]), 5000)
})

test('orphaned records are found without looking at those of live replicas', async () => {
  const { database } = await cluster()
  let plan: { detail: string }[] = []
  const all = async (text: string, ...values: readonly SqlValue[]) => {
    plan = await database.all(`EXPLAIN QUERY PLAN ${text}`, ...values)
    return []
  }
  await findOrphaned({ ...database, all } as Sql, 'server-session', Date.now(), 100)
  const steps = plan.map(({ detail }) => detail).join('\n')
  expect(steps).toMatch(/SEARCH record USING INDEX record_home \(kind=\? AND home=\?/)
  expect(steps).not.toMatch(/SCAN record|record_expires/)
})

test('expired records that cannot be opened do not keep others from being swept', async () => {
  const { join, database } = await cluster()
  const one = await join()
  const expires = Date.now() - 48 * 60 * 60_000
  for (const id of ['a', 'b', 'c']) await one.create('server-session', id, bytes('x'), { expires })
  await database.run("UPDATE record SET body = x'01'")
  await one.create('server-session', 'd', bytes('x'), { expires: Date.now() - 1 })
  expect(await one.takeAbandoned('server-session', 'expired', 3)).toEqual([])
  expect(await one.takeAbandoned('server-session', 'expired', 3)).toMatchObject([{ id: 'd' }])
})

test('a slow store applies backpressure, and releases it', async () => {
  const { one } = await broken()
  const claim = await one.create('session', 'a', bytes('x'), NEVER)
  const event = Buffer.alloc(4 * 1024 * 1024)
  const waits: (undefined | Promise<void>)[] = []
  for (let seq = 1; seq <= 6; seq++) waits.push(one.journal.append(claim, 's', seq, [event]))
  expect(waits.slice(0, 3)).toEqual([undefined, undefined, undefined])
  expect(waits.at(-1)).toBeInstanceOf(Promise)
  await Promise.all(waits)
  expect((await one.journal.read(claim, 's', 5, 9)).map(({ seq }) => seq)).toEqual([6])
})

test('journals stay within the limits of stream, session and store: the oldest events go first', async () => {
  const shared = await cluster()
  const one = await shared.join(undefined, { limits: { stream: 20_000, session: 50_000, store: 120_000 } })
  const claims = await Promise.all(['a', 'b', 'c', 'd'].map(id => one.create('session', id, bytes('x'), NEVER)))
  const total = async (): Promise<number> =>
    Number((await shared.database.get<{ n: number }>('SELECT sum(bytes) AS n FROM event'))?.n)
  const sizeOf = async (claim: Claim, stream: string): Promise<number> =>
    (await one.journal.read(claim, stream, 0, 1000)).reduce((sum, { data }) => sum + data.length, 0)
  for (const claim of claims)
    for (const stream of ['first', 'second', 'third', 'fourth'])
      for (let seq = 1; seq <= 30; seq++) {
        one.journal.append(claim, stream, seq, [Buffer.alloc(1000)])
        if (seq % 5 === 0) await one.journal.flush()
      }
  const last = claims[3] as Claim
  expect(await sizeOf(last, 'fourth')).toBeLessThanOrEqual(20_000)
  expect(await sizeOf(last, 'fourth')).toBeGreaterThan(10_000)
  expect((await one.journal.read(last, 'fourth', 0, 1000)).at(-1)?.seq).toBe(30)
  expect(await sizeOf(last, 'first')).toBeLessThan(10_000)
  expect(await total()).toBeLessThanOrEqual(140_000)
})

test('the oldest events are deleted in small steps: with SQLite nothing else is served meanwhile', async () => {
  const { database } = await cluster()
  await database.run(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000)
INSERT INTO event (id, stream, seq, revision, last, at, bytes, data) SELECT 'a', 's', n, 0, n, n, 10, x'00' FROM numbers`)
  const first = async () => (await database.get<{ seq: number }>('SELECT min(seq) AS seq FROM event'))?.seq
  expect(await trimOldest(database, 25)).toBe(30)
  expect(await first()).toBe(4)
  expect(await trimOldest(database, 1_000_000)).toBeLessThanOrEqual(10_000)
  expect(await first()).toBeLessThan(2000)
})

test('the sweep after a jump of the clock takes nothing', async () => {
  const shared = await cluster()
  const one = await shared.join()
  const started = Date.now()
  await one.create('server-session', 'a', bytes('x'), { expires: started + 30_000 })
  vi.spyOn(Date, 'now').mockImplementation(() => started + 120_000)
  onTestFinished(() => void vi.restoreAllMocks())
  expect(await one.takeAbandoned('server-session', 'expired', 9)).toEqual([])
  expect(await one.takeAbandoned('server-session', 'expired', 9)).toHaveLength(1)
})
