import type { PlainObject } from '../../wire/json/json.ts'
import { type ImportOptions, importFrom } from './importers/import.ts'
import type { ImportReport } from './importers/store-items.ts'
import { checkDate, checkGroupId, RequestError } from './input-checks.ts'
import type { Fact } from './model.ts'
import { openStores, type StorePlace } from './open-stores.ts'
import { createRemember, type EpisodeInput, titleOf } from './remember.ts'
import { retryJobs } from './retry-jobs.ts'
import { searchEntities } from './search/entities.ts'
import { searchFacts } from './search/facts.ts'
import { type Search, searchPassages } from './search/passages.ts'
import { readQuestion } from './search/question.ts'
import { WEIGHTS } from './search/weights.ts'
import type { Forget, ForgetPreview, ForgetProof, Groups, MemoryStore, StoreStats } from './store.ts'
import { isoDate, presentEpisode, presentFact, presentJob, presentNode } from './tools/results.ts'

/** Which memory is meant, and where it is stored. */
export interface MemoryAdminOptions extends StorePlace {
  readonly tenant: string
  readonly group: string // the default group
  /** Whether a running gateway reads or embeds with a model what is added. */
  readonly extracts: boolean
  readonly embeds: boolean
}

/** A text to add, from the command line. */
export interface Note {
  readonly text: string
  readonly name?: string | undefined
  readonly group?: string | undefined
  readonly source: string
  readonly at?: string | undefined
  readonly saga?: string | undefined
}

/** One tenant's memory for the command line: it works on the store itself, beside a gateway that may be running. */
export type MemoryAdmin = ReturnType<typeof openMemoryAdmin>

const BY = { actor: 'command line' }

export const openMemoryAdmin = ({ folder, database, tenant, group, extracts, embeds }: MemoryAdminOptions) => {
  const stores = openStores({ folder, database })
  const remember = createRemember({ extracts, embeds })
  const withStore = <T>(work: (store: MemoryStore) => Promise<T>): Promise<T> => stores.with(tenant, work)
  return {
    tenants: () => stores.tenants(),
    add: (note: Note): Promise<PlainObject> =>
      withStore(async store => {
        const { episode, outcome, entities, facts } = await remember(store, episodeOf(note, group), BY)
        return {
          ...presentEpisode(episode),
          outcome,
          entities: entities.length,
          facts: new Set(facts.map(({ id }) => id)).size,
        }
      }),
    passages: (query: string, groups: Groups, limit: number): Promise<readonly PlainObject[]> =>
      withStore(async store => {
        const found = await searchPassages(searchFor(store, query, groups))
        return found.slice(0, limit).map(({ text, actor, validAt, group, episode, episodeName }) => ({
          text,
          actor: actor ?? null,
          valid_at: isoDate(validAt),
          group_id: group,
          episode_uuid: episode,
          episode_name: episodeName,
        }))
      }),
    /** The facts that answer a query, or the latest ones; with `asOf`, those that were true then. */
    facts: (query: string, groups: Groups, limit: number, asOf?: string): Promise<readonly PlainObject[]> =>
      withStore(async store => {
        const filter = asOf === undefined ? {} : { asOf: checkDate(asOf, '--as-of: ') }
        const found =
          query === ''
            ? await store.factsByTime(groups, limit, filter)
            : await searchFacts({ ...searchFor(store, query, groups), limit, filter })
        return withNames(store, found)
      }),
    /** The entities that a query is about, or those with the most facts. */
    entities: (query: string, groups: Groups, limit: number): Promise<readonly PlainObject[]> =>
      withStore(async store => {
        const ids =
          query === ''
            ? undefined
            : (await searchEntities({ ...searchFor(store, query, groups), limit })).map(({ id }) => id)
        const found = await store.entities(groups, limit, ids)
        const inOrder = ids ? ids.flatMap(id => found.find(entity => entity.id === id) ?? []) : found
        return inOrder.map(entity => ({ ...presentNode(entity), facts: entity.facts }))
      }),
    episodes: (groups: Groups, limit: number): Promise<readonly PlainObject[]> =>
      withStore(async store => (await store.episodes({ groups, limit, order: 'newest' })).map(presentEpisode)),
    /** Hands each line of an export to `write` and waits for it. */
    exportTo: (groups: Groups, write: (line: string) => Promise<void>): Promise<void> =>
      withStore(async store => {
        for await (const line of store.exportLines(groups)) await write(line)
      }),
    importFrom: (what: Omit<ImportOptions, 'store' | 'remember' | 'by' | 'group'>): Promise<ImportReport> =>
      withStore(store => importFrom({ ...what, store, remember, by: BY, group })),
    backup: (path: string): Promise<{ readonly bytes: number }> => withStore(store => store.backup(path)),
    forget: (what: Forget): Promise<ForgetProof> => withStore(store => store.forget(what, BY)),
    previewForget: (what: Forget): Promise<ForgetPreview> => withStore(store => store.previewForget(what)),
    stats: (): Promise<StoreStats> => withStore(store => store.stats()),
    jobs: (groups: Groups, limit: number): Promise<readonly PlainObject[]> =>
      withStore(async store => (await store.jobs({ groups, limit })).map(presentJob)),
    /** Retries one failed job or all; returns how many there were. */
    retry: (job: number | 'all'): Promise<number> => withStore(store => retryJobs(store, job)),
    close: () => stores.close(),
  }
}

const SOURCES: readonly string[] = ['text', 'message', 'json']

const episodeOf = ({ text, name, group: given, source, at, saga }: Note, group: string): EpisodeInput => {
  if (!SOURCES.includes(source))
    throw new RequestError(`There is no source ${JSON.stringify(source)}; there are ${SOURCES.join(', ')}`)
  return {
    group: checkGroupId(given ?? group),
    name: name ?? titleOf(text),
    body: text,
    source: source as EpisodeInput['source'],
    sourceDescription: '',
    validAt: at === undefined ? undefined : checkDate(at),
    saga,
  }
}

const searchFor = (store: MemoryStore, query: string, groups: Groups): Search => ({
  store,
  groups,
  question: readQuestion(query, Date.now()),
  weights: WEIGHTS,
})

/** Adds the names of both entities: a sentence like "I moved" is unclear without them. */
const withNames = async (store: MemoryStore, facts: readonly Fact[]): Promise<readonly PlainObject[]> => {
  const entities = await store.entitiesById([...new Set(facts.flatMap(fact => [fact.sourceId, fact.targetId]))])
  const names = new Map(entities.map(({ id, name }) => [id, name]))
  return facts.map(fact => ({
    ...presentFact(fact),
    source_node_name: names.get(fact.sourceId) ?? null,
    target_node_name: names.get(fact.targetId) ?? null,
  }))
}
