import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createLocalWake, createSqlCluster } from '../../../test/support/sql-cluster.ts'
import { openSqlite } from '../sqlite.ts'
import { prepareSqlite } from './prepare-state.ts'
import type { Claim } from './state-store.ts'

const NEVER = { expires: Number.POSITIVE_INFINITY }
const SLOW = { beatMs: 60_000, pollMs: 60_000 } // notices nothing by itself
const bytes = (text: string): Buffer => Buffer.from(text)

/** Two replicas that notice nothing by themselves, and a way to lose all data, as if another replica had created the tables again. */
const pair = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-lost-'))
  const open = () => openSqlite(join(folder, 'state.db'))
  const shared = await createSqlCluster({ open, prepare: prepareSqlite, wake: createLocalWake() })
  onTestFinished(async () => {
    await shared.close()
    await rm(folder, { recursive: true, force: true })
  })
  const { database } = shared
  const tables = ['record', 'event', 'inbox', 'member', 'rate', 'document']
  const lose = (): Promise<void> =>
    database.transaction(async sql => {
      for (const table of tables) await sql.run(`DELETE FROM ${table}`)
      await sql.run("DELETE FROM meta WHERE name <> 'schema'")
    })
  const [one, other] = [await shared.join(undefined, SLOW), await shared.join(undefined, SLOW)]
  await one.members.announce({ address: 'http://one', labels: [] })
  return { one, other, database, lose }
}

test('a record that is written before its replica has noticed the loss keeps its claim, and the others are written, too', async () => {
  const { one, other, lose } = await pair()
  const lost = vi.fn()
  one.onLost(lost)
  const [task, idle] = [
    await one.create('task', 't', bytes('1'), NEVER),
    await one.create('session', 's', bytes('s'), NEVER),
  ]
  await lose()
  expect(await one.write(task, bytes('2'), NEVER)).toBe(true)
  expect(await one.write(task, bytes('3'), NEVER)).toBe(true)
  await vi.waitFor(async () => expect((await other.read('task', 't'))?.body.toString()).toBe('3'), 10_000)
  await vi.waitFor(async () => expect((await other.read('session', 's'))?.body.toString()).toBe('s'))
  expect(await one.write(idle, bytes('u'), NEVER)).toBe(true)
  expect(lost).not.toHaveBeenCalled()
})

test('what is durable is stored again before it is acknowledged', async () => {
  const { one, database, lose } = await pair()
  const task = await one.create('task', 't', bytes('1'), NEVER)
  await lose()
  expect(await one.write(task, bytes('2'), { ...NEVER, durable: true })).toBe(true)
  expect(await database.all('SELECT 1 FROM record')).toHaveLength(1)
})

test('a session or task that its home has not written again yet is not known to be missing', async () => {
  const { one, other, lose } = await pair()
  await one.create('task', 't', bytes('t'), NEVER)
  await one.create('session', 's', bytes('s'), NEVER)
  expect(await other.read('task', 'never')).toBeUndefined()
  await lose()
  await expect(other.read('task', 't')).rejects.toMatchObject({ reason: 'away' })
  await expect(other.take('session', 's')).rejects.toMatchObject({ reason: 'away' })
  expect(other.health().state).toBe('ok')
  await vi.waitFor(async () => expect(await other.read('task', 'never')).toBeUndefined(), 10_000)
})

test('a record that was removed, or that another replica has taken, is not written again', async () => {
  const { one, other, database, lose } = await pair()
  const [removed, taken] = await Promise.all(['a', 'b'].map(id => one.create('session', id, bytes(id), NEVER)))
  await lose()
  await other.create('session', 'b', bytes('of the other'), NEVER)
  const writing = one.write(removed as Claim, bytes('late'), NEVER)
  await Promise.all([writing, one.remove(removed as Claim)])
  expect(await one.write(taken as Claim, bytes('late'), NEVER)).toBe(false)
  await one.releaseAll()
  expect((await other.read('session', 'b'))?.body.toString()).toBe('of the other')
  expect(await database.all('SELECT 1 FROM record')).toHaveLength(1)
})

test('each of several replicas notices the loss, whichever of them creates the tables again', async () => {
  const { one, other, lose } = await pair()
  const renamed = vi.fn()
  const claims = await Promise.all(
    [one, other].map((store, at) => store.create('session', `s${at}`, bytes('x'), NEVER)),
  )
  for (const store of [one, other]) store.members.onRenamed(renamed)
  await lose()
  expect(await one.write(claims[0] as Claim, bytes('1'), NEVER)).toBe(true)
  expect(await other.write(claims[1] as Claim, bytes('2'), NEVER)).toBe(true)
  await vi.waitFor(async () => expect(await one.take('session', 's1')).toMatchObject({ kind: 'other' }), 10_000)
  expect(await other.take('session', 's0')).toEqual({ kind: 'other', home: one.members.self })
  expect(renamed).not.toHaveBeenCalled()
})

test('events that are written before their replica has noticed the loss are stored, and their record with them', async () => {
  const { one, other, lose } = await pair()
  const claim = await one.create('session', 's', bytes('s'), NEVER)
  one.journal.append(claim, 'p1_1', 0, [bytes('before')])
  await one.journal.flush()
  await lose()
  one.journal.append(claim, 'p1_1', 1, [bytes('after')])
  await one.journal.flush()
  expect((await other.journal.read(claim, 'p1_1', -1, 9)).map(({ data }) => data.toString())).toEqual(['after'])
  expect((await other.read('session', 's'))?.body.toString()).toBe('s')
})
