import { statSync } from 'node:fs'
import type { Sqlite } from '../../../stores/sqlite.ts'
import type { Instant } from '../model.ts'
import { type Added, type Change, type MemoryStore, StoreError } from '../store.ts'
import { addEpisode, addLooseFacts, enrichEpisode } from './add.ts'
import { backUp } from './backup.ts'
import { listCommunities, replaceCommunities } from './communities.ts'
import type { Context } from './context.ts'
import { changeEntity, readEntities, setAlias } from './entities.ts'
import { exportLines } from './export.ts'
import { readFacts } from './facts.ts'
import { inWords } from './failures.ts'
import { forget } from './forget.ts'
import { importLines } from './import.ts'
import * as jobs from './jobs.ts'
import { amend } from './meta.ts'
import { openMemoryFile } from './open.ts'
import * as read from './read.ts'
import { clearGroups, deleteEpisode, deleteFact } from './remove.ts'
import { summarise } from './sagas.ts'
import * as search from './search.ts'
import { readStats } from './stats.ts'
import { dropVectorsExcept, nearest, putVectors, unembedded } from './vectors.ts'

export interface SqliteStoreOptions {
  readonly path: string
  /** Whose memory it is; a file that belongs to somebody else is refused. */
  readonly tenant?: string
  readonly now?: () => Instant
}

const changesOf = (added: Omit<Added, 'episode' | 'outcome'>, group: string): Change[] => [
  { kind: 'entity', op: 'put', group, uuids: added.entities.map(({ uuid }) => uuid) },
  { kind: 'fact', op: 'put', group, uuids: [...added.facts.map(({ uuid }) => uuid), ...added.closed] },
]

/** Opens one tenant's memory in a SQLite file. */
export const openSqliteStore = async ({ path, tenant, now = Date.now }: SqliteStoreOptions): Promise<MemoryStore> => {
  const db = await openMemoryFile(path)
  if (tenant !== undefined) await claim(db, tenant)
  return createSqliteStore(db, now)
}

const OWNER = "SELECT value FROM meta WHERE key = 'tenant'"

/** Whose memory an open file is, if it says so. */
export const ownerOf = (db: Sqlite): string | undefined => {
  const row = db.get<{ value: string }>(OWNER)
  return row && (JSON.parse(row.value) as string)
}

/** Writes a tenant's name into a new file, and refuses one that has another in it. */
const claim = async (db: Sqlite, tenant: string): Promise<void> => {
  if (ownerOf(db) === undefined)
    await db.write(() =>
      db.run("INSERT INTO meta (key, value) VALUES ('tenant', ?) ON CONFLICT DO NOTHING", JSON.stringify(tenant)),
    )
  if (ownerOf(db) === tenant) return
  db.close()
  throw new StoreError('foreign', `${db.path} is the memory of another tenant. Put it back where it came from.`)
}

/** Which file is at a path. Whoever goes on writing into one that was deleted writes into nothing. */
const fileAt = (path: string): string | undefined => {
  const found = path === ':memory:' ? undefined : statSync(path, { throwIfNoEntry: false })
  return found && `${found.dev}/${found.ino}`
}

const lost = (path: string): string =>
  `The memory file ${path} was deleted or replaced while it was in use. Nothing of this call was stored. Call again: what is there now is opened, or a new one is made.`

/** The memory over an open file. */
export const createSqliteStore = (db: Sqlite, now: () => Instant): MemoryStore => {
  const context: Context = { db, now }
  const listeners = new Set<(change: Change) => void>()
  let isClosed = false

  const emit = (changes: readonly Change[]): void => {
    for (const change of changes) if (change.uuids.length > 0) for (const listener of listeners) listener(change)
  }
  const opened = fileAt(db.path)
  const guarded = async <Result>(work: () => Result | Promise<Result>): Promise<Result> => {
    if (isClosed) throw new StoreError('closed', 'This memory is closed.')
    if (fileAt(db.path) !== opened) throw new StoreError('damaged', lost(db.path))
    try {
      return await work()
    } catch (error) {
      throw inWords(error, db.path)
    }
  }
  type Reader<Args extends readonly unknown[], Result> = (context: Context, ...args: Args) => Result
  const reading =
    <Args extends readonly unknown[], Result>(reader: Reader<Args, Result>) =>
    (...args: Args): Promise<Result> =>
      guarded(() => db.patiently(() => reader(context, ...args)))
  /** One transaction, then the news of it. */
  const writing =
    <Args extends readonly unknown[], Result>(
      writer: Reader<Args, Result>,
      news: (result: Result, ...args: Args) => readonly Change[] = () => [],
    ) =>
    (...args: Args): Promise<Result> =>
      guarded(async () => {
        const result = await db.write(() => writer(context, ...args))
        emit(news(result, ...args))
        return result
      })
  const newsOfEpisode = (added: Added): Change[] =>
    added.outcome === 'same'
      ? changesOf(added, added.episode.group)
      : [
          { kind: 'episode', op: 'put', group: added.episode.group, uuids: [added.episode.uuid] },
          ...changesOf(added, added.episode.group),
        ]
  const deleting = (
    remove: Reader<[string, { actor?: string | undefined }?], { group: string }>,
    kind: Change['kind'],
  ) => {
    const run = writing(remove, ({ group }, uuid) => [{ kind, op: 'delete', group, uuids: [uuid] }])
    return async (...args: Parameters<typeof run>): Promise<void> => void (await run(...args))
  }

  return {
    searchDocs: reading(search.searchDocs),
    searchFacts: reading(search.searchFacts),
    searchEntities: reading(search.searchEntities),
    docs: reading(search.readDocs),
    docsOfEpisodes: reading(search.docsOfEpisodes),
    factsOfDocs: reading(search.factsOfDocs),
    factsOfEntities: reading(search.factsOfEntities),
    factsByTime: reading(search.factsByTime),
    entitiesNamed: reading(search.entitiesNamed),
    aliasesOf: reading(search.aliasesOf),
    entitiesOfEpisodes: reading(search.entitiesOfEpisodes),
    neighbours: reading(search.neighbours),
    putVectors: writing(putVectors),
    nearest: reading(nearest),
    unembedded: reading(unembedded),
    dropVectorsExcept: writing(dropVectorsExcept),

    episode: reading(read.findEpisode),
    episodes: reading(read.listEpisodes),
    episodesByUuid: reading(read.episodesByUuid),
    entity: reading(read.findEntity),
    entitiesById: reading(readEntities),
    entities: reading(read.listEntities),
    fact: reading(read.findFact),
    factsById: reading(readFacts),
    facts: reading(read.listFacts),
    episodeGraph: reading(read.episodeGraph),
    saga: reading(read.findSaga),
    sagas: reading(read.listSagas),
    communities: reading(listCommunities),
    links: reading(read.listLinks),
    groups: reading(read.listGroups),
    stats: reading(readStats),
    audit: reading(read.listAudit),

    add: writing(addEpisode, newsOfEpisode),
    enrich: writing(enrichEpisode, newsOfEpisode),
    addFacts: writing(addLooseFacts, (added, group) => changesOf(added, group)),
    setEntity: writing(changeEntity, ({ group, uuid }) => [{ kind: 'entity', op: 'put', group, uuids: [uuid] }]),
    addAlias: writing(setAlias),
    deleteEpisode: deleting(deleteEpisode, 'episode'),
    deleteFact: deleting(deleteFact, 'fact'),
    clear: writing(clearGroups, (_, groups) =>
      (groups === 'all' ? ['all'] : groups).map(group => ({ kind: 'episode', op: 'delete', group, uuids: [group] })),
    ),
    forget: (what, by) =>
      guarded(async () => {
        const proof = await forget(context, what, by)
        const group = what.kind === 'group' ? what.group : 'all'
        emit([
          { kind: 'episode', op: 'delete', group, uuids: proof.erased.episodes },
          { kind: 'entity', op: 'delete', group, uuids: proof.erased.entities },
          { kind: 'fact', op: 'delete', group, uuids: proof.erased.facts },
        ])
        return proof
      }),
    setSagaSummary: writing(summarise, ({ group, uuid }) => [{ kind: 'saga', op: 'put', group, uuids: [uuid] }]),
    replaceCommunities: writing(replaceCommunities, found =>
      found.map(({ group, uuid }) => ({ kind: 'community', op: 'put', group, uuids: [uuid] })),
    ),

    enqueue: writing(jobs.enqueueJob),
    lease: writing(jobs.leaseJob),
    renew: writing(jobs.renewLease),
    finish: writing(jobs.closeJob),
    fail: writing(jobs.failJob),
    retry: writing(jobs.retryJob),
    jobs: reading(jobs.listJobs),
    nextDue: reading(jobs.nextDue),

    backup: target => guarded(() => backUp(context, target)),
    exportLines: groups => exportLines(db.path, groups),
    importLines: (lines, by) => guarded(() => importLines(context, lines, by)),
    amend: writing(amend),
    onChange: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: async () => {
      if (isClosed) return
      isClosed = true
      listeners.clear()
      db.close()
    },
  }
}
