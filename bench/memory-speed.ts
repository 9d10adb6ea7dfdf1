import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { episodeText, queryText, randomFrom } from './memory-corpus.ts'
import type { Database, Memory, Sql, Store } from './memory-program.ts'
import { quantile } from './statistics.ts'

/** Milliseconds, in the middle and at the 95th of 100. */
export interface Times {
  readonly p50: number
  readonly p95: number
}

export interface SpeedFigures {
  readonly episodes: number
  readonly timed: { readonly adds: number; readonly searches: number }
  readonly add: Readonly<Record<'dragoman' | 'fts', Times>>
  readonly search: Readonly<Record<'facts' | 'passages' | 'fts', Times>>
  readonly foundAtOnce: boolean // every timed episode by the search right after it
}

const GROUP = 'main'
const ADDS = 1_000
const SEARCHES = 400
const WARM = 50 // searches that are not counted

// The settings our own store has, so that both wait for the same disk.
const SETTINGS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA cache_size = -16000;
PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 16777216;
CREATE TABLE IF NOT EXISTS doc (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS doc_fts USING fts5(text, content = 'doc', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2')`

const MATCH =
  'SELECT doc_fts.rowid, doc.text FROM doc_fts JOIN doc ON doc.id = doc_fts.rowid WHERE doc_fts MATCH ? ORDER BY bm25(doc_fts) LIMIT 200'

const put = async (plain: Sql, text: string): Promise<void> => {
  const id = await plain.insert('INSERT INTO doc (text) VALUES (?)', text)
  await plain.run('INSERT INTO doc_fts (rowid, text) VALUES (?, ?)', id ?? 0, text)
}

const told = (body: string, at: number) =>
  ({ group: GROUP, name: 'note', body, source: 'text', sourceDescription: 'bench', validAt: at }) as const

const clock = async (times: number[], work: () => unknown): Promise<void> => {
  const start = performance.now()
  await work()
  times.push(performance.now() - start)
}

const summary = (times: readonly number[]): Times => {
  const sorted = times.toSorted((a, b) => a - b)
  return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95) }
}

const fill = async (memory: Memory, store: Store, plain: Database, count: number): Promise<void> => {
  const random = randomFrom(1)
  for (let at = 0; at < count; at += 1_000) {
    const texts = Array.from({ length: Math.min(1_000, count - at) }, () => episodeText(random))
    for (const [index, text] of texts.entries()) await memory.remember(store, told(text, at + index))
    await plain.transaction(async sql => {
      for (const text of texts) await put(sql, text)
    })
    if (at % 10_000 === 0) console.error(`${at} episodes`)
  }
}

/** One and the other in turn, so that a busy moment of the machine falls on both. */
const timeAdds = async (memory: Memory, store: Store, plain: Database, from: number) => {
  const random = randomFrom(2)
  const [ours, theirs]: [number[], number[]] = [[], []]
  let foundAtOnce = true
  for (let index = 0; index < ADDS; index++) {
    const text = `${episodeText(random)} marker${index}`
    await clock(ours, () => memory.remember(store, told(text, from + index)))
    await clock(theirs, () => plain.transaction(sql => put(sql, text)))
    if (index % 20 === 0) foundAtOnce &&= (await memory.facts(store, GROUP, `marker${index}`, from, 1)).length === 1
  }
  return { add: { dragoman: summary(ours), fts: summary(theirs) }, foundAtOnce }
}

const timeSearches = async (memory: Memory, store: Store, plain: Database, now: number) => {
  const random = randomFrom(3)
  const [facts, passages, fts]: [number[], number[], number[]] = [[], [], []]
  for (let index = -WARM; index < SEARCHES; index++) {
    if (index === 0) for (const times of [facts, passages, fts]) times.length = 0
    const query = queryText(random)
    await clock(facts, () => memory.facts(store, GROUP, query, now, 10))
    await clock(passages, () => memory.passages(store, GROUP, query, now))
    await clock(fts, () => plain.all(MATCH, memory.match(query)))
  }
  return { facts: summary(facts), passages: summary(passages), fts: summary(fts) }
}

/** Both stores in a folder while they are used. */
const withStores = async <Result>(
  memory: Memory,
  folder: string,
  use: (store: Store, plain: Database) => Promise<Result>,
): Promise<Result> => {
  const store = await memory.open(join(folder, 'ours.db'))
  const plain = await memory.openDatabase(join(folder, 'plain.db'))
  try {
    await plain.exec(SETTINGS)
    return await use(store, plain)
  } finally {
    await plain.close()
    await store.close()
  }
}

/** Times adding and searching in a memory of many episodes beside one full-text table with the same texts. */
export const measureSpeed = async (memory: Memory, episodes: number): Promise<SpeedFigures> => {
  // Filled where waiting for the disk costs nothing, timed on the disk.
  const quick = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'memory-fill-'))
  const folder = mkdtempSync(join(tmpdir(), 'memory-speed-'))
  try {
    await withStores(memory, quick, (store, plain) => fill(memory, store, plain, episodes))
    cpSync(quick, folder, { recursive: true })
    return await withStores(memory, folder, async (store, plain) => {
      const search = await timeSearches(memory, store, plain, episodes)
      const added = await timeAdds(memory, store, plain, episodes)
      return { episodes, timed: { adds: ADDS, searches: SEARCHES }, search, ...added }
    })
  } finally {
    for (const used of [quick, folder]) rmSync(used, { recursive: true, force: true })
  }
}
