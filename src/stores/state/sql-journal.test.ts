import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { SILENT } from '../../telemetry/log.ts'
import { openSqlite } from '../sqlite.ts'
import { encodeEvents } from './journal-rows.ts'
import { openState } from './open-state.ts'
import { Sealing } from './sealing.ts'
import { deriveStoreKeys, readSecretFile } from './secret.ts'
import { insertEvents, readEvents } from './sql-events.ts'
import type { Claim, StateStore } from './state-store.ts'
import { claimIdentity } from './store-identity.ts'

const NEVER = { expires: Number.POSITIVE_INFINITY }
const bytes = (text: string): Buffer => Buffer.from(text)
const hexId = (id: string): string => Buffer.from(id).toString('hex')

const openStore = async () => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-journal-'))
  const { store } = await openState({ kind: 'sqlite', data }, SILENT)
  onTestFinished(async () => {
    await store.close()
    await rm(data, { recursive: true, force: true })
  })
  const database = await openSqlite(join(data, 'state.db'))
  onTestFinished(() => database.close())
  return { data, store, database }
}

const textsOf = async (store: StateStore, claim: Claim, stream: string): Promise<string[]> =>
  (await store.journal.read(claim, stream, -1, 100)).map(({ data }) => data.toString())

test('a stream of a request with a numeric id is stored by its number; any other id is hidden', async () => {
  const { data, store, database } = await openStore()
  const claim = await store.create('session', 'a', bytes('x'), NEVER)
  const [numbered, named] = [`p1_1r${hexId('17')}`, `p1_2r${hexId('"my-id"')}`]
  store.journal.append(claim, numbered, 0, [bytes('num'), bytes('bered')])
  store.journal.append(claim, named, 0, [bytes('named')])
  expect([await textsOf(store, claim, numbered), await textsOf(store, claim, named)]).toEqual([['numbered'], ['named']])
  const streams = await database.all<{ stream: string }>('SELECT stream FROM event ORDER BY seq')
  expect(streams.map(({ stream }) => stream)).toContain(numbered)
  const files = await Promise.all(['state.db', 'state.db-wal'].map(name => readFile(join(data, name), 'latin1')))
  expect(files.join()).not.toContain(hexId('my-id'))
})

test('events that an older version has stored under a hashed name are read', async () => {
  const { data, store, database } = await openStore()
  const claim = await store.create('session', 'a', bytes('x'), NEVER)
  const keys = deriveStoreKeys(await readSecretFile(data))
  const sealing = new Sealing(keys, (await claimIdentity(database, keys)).names)
  const [id, stream] = [sealing.recordName('session', 'a'), sealing.nameOf(`stream:p1_1r${hexId('17')}`)]
  const sealed = sealing.seal(`event:${id}:${stream}:0:0`, encodeEvents([[], [bytes('former')]]))
  await insertEvents(database, [{ id, stream, seq: 0, revision: 0, last: 1, bytes: 6, data: sealed }])
  expect(await textsOf(store, claim, `p1_1r${hexId('17')}`)).toEqual(['', 'former'])
})

test('events of a removed record that were still queued are not stored', async () => {
  const { store, database } = await openStore()
  const claim = await store.create('session', 'a', bytes('x'), NEVER)
  const kept = await store.create('session', 'b', bytes('x'), NEVER)
  store.journal.append(claim, 'p1_1', 0, [bytes('late')])
  store.journal.append(kept, 'p1_1', 0, [bytes('kept')])
  await store.remove(claim)
  expect(await textsOf(store, kept, 'p1_1')).toEqual(['kept'])
  expect(await database.get('SELECT count(*) AS events FROM event')).toEqual({ events: 1 })
})

test('a record that replaces an expired one has a journal', async () => {
  const { store } = await openStore()
  await store.create('session', 'a', bytes('x'), { expires: Date.now() - 1 })
  const claim = await store.create('session', 'a', bytes('y'), NEVER)
  expect(claim.epoch).toBe(2)
  store.journal.append(claim, 'p2_1', 0, [bytes('event')])
  expect(await textsOf(store, claim, 'p2_1')).toEqual(['event'])
})

test('a stream that is dropped before it was written costs no statement; one that was written is deleted', async () => {
  const { store, database } = await openStore()
  const claim = await store.create('session', 'a', bytes('x'), NEVER)
  store.journal.append(claim, 'p1_1', 0, [bytes('short')])
  store.journal.drop(claim, 'p1_1')
  expect(store.health().queuedBytes).toBe(0)
  store.journal.append(claim, 'p1_2', 0, [bytes('one')])
  expect(await textsOf(store, claim, 'p1_2')).toEqual(['one'])
  store.journal.append(claim, 'p1_2', 1, [bytes('two')])
  store.journal.drop(claim, 'p1_2')
  expect(await textsOf(store, claim, 'p1_2')).toEqual([])
  expect(await database.get('SELECT count(*) AS events FROM event')).toEqual({ events: 0 })
})

test('100,000 events of one stream are stored in few rows, and read from any of them on', async () => {
  const { store, database } = await openStore()
  const claim = await store.create('session', 'a', bytes('x'), NEVER)
  for (let seq = 0; seq < 100_000; seq++) await store.journal.append(claim, 'g1', seq, [bytes(`event ${seq}`)])
  let next = 0
  for (;;) {
    const events = await store.journal.read(claim, 'g1', next - 1, 10_000)
    if (events.length === 0) break
    for (const { seq, data } of events) if (seq !== next || `${data}` !== `event ${next++}`) throw new Error(`${data}`)
  }
  expect(next).toBe(100_000)
  expect((await store.journal.read(claim, 'g1', 54_320, 1)).map(({ seq }) => seq)).toEqual([54_321])
  const found = await database.all<{ id: string }>('SELECT id FROM event')
  expect(found.length).toBeLessThan(1000)
  // No more than it needs: a client that resumes reads a long stream in many steps.
  expect((await readEvents(database, found[0]?.id ?? '', 'g1', 54_320, 100)).length).toBeLessThanOrEqual(2)
})
