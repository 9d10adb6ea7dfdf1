import { isFailure } from '../../../stores/postgres-failures.ts'
import type { Instant } from '../model.ts'
import { type Added, type Change, type Groups, type MemoryStore, StoreError } from '../store.ts'
import { addEpisode, addLooseFacts, enrichEpisode } from './add.ts'
import { backUp } from './backup.ts'
import { listCommunities, replaceCommunities } from './communities.ts'
import { type Context, contextOf } from './context.ts'
import { changeEntity, readEntities, setAlias } from './entities.ts'
import { exportBatches } from './export.ts'
import { readFacts } from './facts.ts'
import { inWords } from './failures.ts'
import { eraseAll, findLeft, proofOf, vacuum } from './forget.ts'
import { importLines } from './import.ts'
import * as jobs from './jobs.ts'
import { amend } from './meta.ts'
import type { MemoryDatabase } from './open.ts'
import * as read from './read.ts'
import { clearGroups, deleteEpisode, deleteFact } from './remove.ts'
import { summarise } from './sagas.ts'
import * as search from './search.ts'
import { readStats } from './stats.ts'
import { dropVectorsExcept, nearest, putVectors, unembedded } from './vectors.ts'

const changesOf = (added: Omit<Added, 'episode' | 'outcome'>, group: string): Change[] => [
  { kind: 'entity', op: 'put', group, uuids: added.entities.map(({ uuid }) => uuid) },
  { kind: 'fact', op: 'put', group, uuids: [...added.facts.map(({ uuid }) => uuid), ...added.closed] },
]

const newsOfEpisode = (added: Added): Change[] =>
  added.outcome === 'same'
    ? changesOf(added, added.episode.group)
    : [
        { kind: 'episode', op: 'put', group: added.episode.group, uuids: [added.episode.uuid] },
        ...changesOf(added, added.episode.group),
      ]

type Work<Args extends readonly unknown[], Result> = (context: Context, ...args: Args) => Promise<Result>

/** One tenant's memory in a shared PostgreSQL. Closing it closes nothing but itself. */
export const createPostgresStore = (
  { postgres, schema, beginAs, freshen }: MemoryDatabase,
  tenant: string,
  now: () => Instant,
): MemoryStore => {
  const begin = beginAs(tenant)
  const listeners = new Set<(change: Change) => void>()
  let isClosed = false

  const emit = (changes: readonly Change[]): void => {
    for (const change of changes) if (change.uuids.length > 0) for (const listener of listeners) listener(change)
  }
  const guarded = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (isClosed) throw new StoreError('closed', 'This memory is closed.')
    try {
      return await work()
    } catch (error) {
      throw inWords(error, postgres.place)
    }
  }
  const view = <Result>(work: (context: Context) => Promise<Result>): Promise<Result> =>
    postgres.transaction(db => work(contextOf(db, tenant, now)), { readOnly: true, begin })
  const grow = growth(freshen)
  const change = async <Result>(work: (context: Context) => Promise<Result>): Promise<Result> => {
    const { result, added } = await postgres.transaction(
      async db => {
        const context = contextOf(db, tenant, now)
        const done = await work(context)
        await context.tally.flush(db)
        return { result: done, added: context.tally.added() }
      },
      { begin },
    )
    grow(added)
    return result
  }
  /** Somebody else may have taken a uuid in another group meanwhile; the second time it is seen and refused in words. */
  const changeTwice = async <Result>(work: (context: Context) => Promise<Result>): Promise<Result> => {
    try {
      return await change(work)
    } catch (error) {
      if (!isFailure(error, 'constraint')) throw error
      return change(work)
    }
  }
  const reading =
    <Args extends readonly unknown[], Result>(work: Work<Args, Result>) =>
    (...args: Args): Promise<Result> =>
      guarded(() => view(context => work(context, ...args)))
  /** One transaction, then the news of it. */
  const writing =
    <Args extends readonly unknown[], Result>(
      work: Work<Args, Result>,
      news: (result: Result, ...args: Args) => readonly Change[] = () => [],
    ) =>
    (...args: Args): Promise<Result> =>
      guarded(async () => {
        const result = await changeTwice(context => work(context, ...args))
        emit(news(result, ...args))
        return result
      })
  const deleting = (work: Work<[string, { actor?: string | undefined }?], { group: string }>, kind: Change['kind']) => {
    const run = writing(work, ({ group }, uuid) => [{ kind, op: 'delete', group, uuids: [uuid] }])
    return async (...args: Parameters<typeof run>): Promise<void> => void (await run(...args))
  }
  const exportLines = (groups: Groups): AsyncGenerator<string> => exported({ postgres, begin }, groups)

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
        const erased = await change(context => eraseAll(context, what, by))
        const files = await vacuum(postgres, schema)
        const proof = proofOf(erased, await view(context => findLeft(context, erased)), files)
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

    backup: path => guarded(() => backUp(exportLines('all'), path)),
    exportLines,
    importLines: (lines, by) => guarded(() => importLines(change, lines, by)),
    amend: writing(amend),
    onChange: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: async () => {
      isClosed = true
      listeners.clear()
    },
  }
}

const FIRST_STEP = 64
const NEXT_STEP = 4

/** Calls back whenever a tenant has become some times as large as it was. */
const growth = (grown: () => void) => {
  let [rows, step] = [0, FIRST_STEP]
  return (added: number): void => {
    rows += added
    if (rows < step) return
    while (step <= rows) step *= NEXT_STEP
    grown()
  }
}

type Exporting = Pick<MemoryDatabase, 'postgres'> & { readonly begin: string }

/** Lines of one moment, however long the reading takes. */
const exported = async function* ({ postgres, begin }: Exporting, groups: Groups): AsyncGenerator<string> {
  const view = await postgres.snapshot(begin)
  try {
    for await (const batch of exportBatches(view.sql, groups)) yield* batch
  } catch (error) {
    throw inWords(error, postgres.place)
  } finally {
    await view.close()
  }
}
