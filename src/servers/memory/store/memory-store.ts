import { isSqlFailure } from '../../../stores/sql.ts'
import type { Instant } from '../model.ts'
import {
  type Added,
  type By,
  type Forget,
  type ForgetPreview,
  type ForgetProof,
  type Groups,
  type Imported,
  type StoreChange,
  StoreError,
} from '../store.ts'
import { addEpisode, addLooseFacts, enrichEpisode } from './add.ts'
import { listCommunities, replaceCommunities } from './communities.ts'
import { amend, createContext, type StoreContext } from './context.ts'
import { editEntity, editFact } from './edit.ts'
import type { Engine } from './engine.ts'
import { changeEntity, findEntity, readEntities, setAlias } from './entities.ts'
import * as entityPage from './entity-page.ts'
import { exportLines, writeBackup } from './export.ts'
import { readFacts } from './facts.ts'
import { erase, erasedTexts, PreviewedErasure, proofOf } from './forget.ts'
import { importLines } from './import.ts'
import * as jobs from './jobs.ts'
import * as read from './read.ts'
import { clearGroups, deleteEpisode, deleteFact } from './remove.ts'
import { findSaga, listSagas, storeSagaSummary } from './sagas.ts'
import * as search from './search.ts'
import { readEpisodePage, readFactPage } from './timeline.ts'
import { dropVectorsExcept, findNearest, listUnembedded, putVectors } from './vectors.ts'

const graphChanges = (added: Omit<Added, 'episode' | 'outcome'>, group: string): StoreChange[] => [
  { kind: 'entity', op: 'put', group, uuids: added.entities.map(({ uuid }) => uuid) },
  { kind: 'fact', op: 'put', group, uuids: [...new Set(added.facts.map(({ uuid }) => uuid)), ...added.closed] },
]

const episodeChanges = (added: Added): StoreChange[] => {
  const { group, uuid } = added.episode
  const changes = graphChanges(added, group)
  return added.outcome === 'same' ? changes : [{ kind: 'episode', op: 'put', group, uuids: [uuid] }, ...changes]
}

type Operation<Args extends readonly unknown[], Result> = (context: StoreContext, ...args: Args) => Promise<Result>

/** One tenant's memory on an engine. Writes are one transaction each, durable when they resolve. */
export const createMemoryStore = (engine: Engine, now: () => Instant = Date.now) => {
  const { database, begin } = engine
  const listeners = new Set<(change: StoreChange) => void>()
  let isClosed = false

  const emit = (changes: readonly StoreChange[]): void => {
    for (const change of changes) if (change.uuids.length > 0) for (const listener of listeners) listener(change)
  }
  const guarded = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (isClosed) throw new StoreError('closed', 'This memory is closed.')
    engine.check()
    try {
      return await work()
    } catch (error) {
      throw engine.explain(error)
    }
  }
  const view = <Result>(work: (context: StoreContext) => Promise<Result>): Promise<Result> =>
    database.transaction(sql => work(createContext(sql, engine, now)), { readOnly: true, begin })
  const change = async <Result>(work: (context: StoreContext) => Promise<Result>): Promise<Result> => {
    const { result, indexed } = await database.transaction(
      async sql => {
        const context = createContext(sql, engine, now)
        const done = await work(context)
        return { result: done, indexed: await context.index.flush() }
      },
      { begin },
    )
    engine.onIndexed(indexed)
    return result
  }
  /** Another writer may have used a uuid in another group meanwhile; the second attempt finds and rejects it. */
  const changeTwice = async <Result>(work: (context: StoreContext) => Promise<Result>): Promise<Result> => {
    try {
      return await change(work)
    } catch (error) {
      if (!isSqlFailure(error, 'constraint')) throw error
      return change(work)
    }
  }
  const reading =
    <Args extends readonly unknown[], Result>(operation: Operation<Args, Result>) =>
    (...args: Args): Promise<Result> =>
      guarded(() => view(context => operation(context, ...args)))
  /** One transaction; then the listeners get its changes. */
  const writing =
    <Args extends readonly unknown[], Result>(
      operation: Operation<Args, Result>,
      changesOf: (result: Result, subject: Args[0]) => readonly StoreChange[] = () => [],
    ) =>
    (...args: Args): Promise<Result> =>
      guarded(async () => {
        const result = await changeTwice(context => operation(context, ...args))
        emit(changesOf(result, args[0]))
        return result
      })
  const deleting = (operation: Operation<[string, By?], { group: string }>, kind: StoreChange['kind']) => {
    const run = writing(operation, ({ group }, uuid) => [{ kind, op: 'delete', group, uuids: [uuid] }])
    return async (...args: Parameters<typeof run>): Promise<void> => void (await run(...args))
  }
  const exporting = async function* (groups: Groups): AsyncGenerator<string> {
    const snapshot = await guarded(() => database.snapshot(begin))
    try {
      yield* exportLines(snapshot.sql, groups)
    } catch (error) {
      throw engine.explain(error)
    } finally {
      await snapshot.close()
    }
  }

  return {
    searchDocs: reading(search.searchDocs),
    searchFacts: reading(search.bestFacts),
    searchEntities: reading(search.bestEntities),
    docs: reading(search.readDocs),
    docsOfEpisodes: reading(search.readDocsOfEpisodes),
    factsOfDocs: reading(search.readFactsOfDocs),
    factsOfEntities: reading(search.readFactsOfEntities),
    factsByTime: reading(search.readFactsByTime),
    entitiesNamed: reading(search.findEntitiesNamed),
    entitiesOfEpisodes: reading(search.readEntitiesOfEpisodes),
    neighbours: reading(search.readNeighbours),
    putVectors: writing(putVectors),
    nearest: reading(findNearest),
    unembedded: reading(listUnembedded),
    dropVectorsExcept: writing(dropVectorsExcept),

    episode: reading(read.findEpisode),
    episodes: reading(read.listEpisodes),
    episodesByUuid: reading(read.readEpisodes),
    episodeNames: reading(read.readEpisodeNames),
    entity: reading(findEntity),
    entitiesById: reading(readEntities),
    entities: reading(read.listEntities),
    fact: reading(read.findFact),
    factsById: reading(readFacts),
    facts: reading(read.listFacts),
    episodeGraph: reading(read.readEpisodeGraph),
    saga: reading(findSaga),
    sagas: reading(listSagas),
    communities: reading(listCommunities),
    links: reading(read.listLinks),
    groups: reading(read.listGroups),
    stats: reading(read.readStats),
    audit: reading(read.listAudit),
    episodePage: reading(readEpisodePage),
    factPage: reading(readFactPage),
    aliases: reading(entityPage.listAliases),
    mentions: reading(entityPage.readMentions),
    connected: reading(entityPage.readConnected),
    weightedLinks: reading(entityPage.listWeightedLinks),
    entityCount: reading(entityPage.countEntities),

    add: writing(addEpisode, episodeChanges),
    enrich: writing(enrichEpisode, episodeChanges),
    addFacts: writing(addLooseFacts, graphChanges),
    setEntity: writing(changeEntity, ({ group, uuid }) => [{ kind: 'entity', op: 'put', group, uuids: [uuid] }]),
    editEntity: writing(editEntity, ({ group, uuid }) => [{ kind: 'entity', op: 'put', group, uuids: [uuid] }]),
    editFact: writing(editFact, ({ group }, uuid) => [{ kind: 'fact', op: 'put', group, uuids: [uuid] }]),
    addAlias: writing(setAlias),
    deleteEpisode: deleting(deleteEpisode, 'episode'),
    deleteFact: deleting(deleteFact, 'fact'),
    clear: writing(clearGroups, (_, groups) =>
      (groups === 'all' ? ['all'] : groups).map(group => ({ kind: 'episode', op: 'delete', group, uuids: [group] })),
    ),
    forget: (what: Forget, by?: By): Promise<ForgetProof> =>
      guarded(async () => {
        const erased = await change(context => erase(context, what, by))
        const proof = proofOf(erased, await engine.purge(erasedTexts(erased)))
        const group = what.kind === 'group' ? what.group : 'all'
        emit([
          { kind: 'episode', op: 'delete', group, uuids: proof.erased.episodes },
          { kind: 'entity', op: 'delete', group, uuids: proof.erased.entities },
          { kind: 'fact', op: 'delete', group, uuids: proof.erased.facts },
        ])
        return proof
      }),
    previewForget: (what: Forget): Promise<ForgetPreview> =>
      guarded(async () => {
        try {
          return await change<never>(async context => {
            throw new PreviewedErasure(await erase(context, what))
          })
        } catch (error) {
          if (error instanceof PreviewedErasure) return error.preview
          throw error
        }
      }),
    setSagaSummary: writing(storeSagaSummary, ({ group, uuid }) => [{ kind: 'saga', op: 'put', group, uuids: [uuid] }]),
    replaceCommunities: writing(replaceCommunities, found =>
      found.map(({ group, uuid }) => ({ kind: 'community', op: 'put', group, uuids: [uuid] })),
    ),

    enqueue: writing(jobs.enqueueJob),
    lease: writing(jobs.leaseJob),
    renew: writing(jobs.renewLease),
    finish: writing(jobs.finishJob),
    fail: writing(jobs.failJob),
    retry: writing(jobs.retryJob),
    jobs: reading(jobs.listJobs),
    nextDue: reading(jobs.readNextDue),

    /** Writes a consistent copy while the store is in use; it is complete or not there. */
    backup: (path: string) => guarded(() => writeBackup(path, draft => engine.copyTo(draft, () => exporting('all')))),
    /** Everything as JSON lines in a stable order, a versioned header first. */
    exportLines: exporting,
    importLines: (lines: AsyncIterable<string> | Iterable<string>, by?: By): Promise<Imported> =>
      guarded(() => importLines(change, lines, by)),
    amend: writing(amend),
    onChange: (listener: (change: StoreChange) => void) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: async () => {
      if (isClosed) return
      isClosed = true
      listeners.clear()
      await engine.close()
    },
  }
}
