import type { PlainObject } from '../../wire/json/json.ts'
import { checkedGroup } from './group-id.ts'
import { type ImportOptions, importFrom } from './importers/import.ts'
import type { Counts } from './importers/keep.ts'
import type { Fact } from './model.ts'
import { openStores, type StorePlace } from './open-stores.ts'
import { Refusal } from './refusal.ts'
import { createRemember, type Told, titleOf } from './remember.ts'
import { searchFacts } from './search/facts.ts'
import { type Search, searchPassages } from './search/passages.ts'
import { readQuestion } from './search/question.ts'
import { WEIGHTS } from './search/weights.ts'
import type { Forget, ForgetProof, Groups, MemoryStore, StoreStats } from './store.ts'
import { notADate, readDate } from './tools/dates.ts'
import { shownDate, shownEpisode, shownFact, shownJob } from './tools/present.ts'

export interface OfficeOptions extends StorePlace {
  readonly tenant: string
  readonly group: string // of what names none
  /** Whether models look at what is added, once the gateway runs. */
  readonly extracts?: boolean | undefined
  readonly embeds?: boolean | undefined
}

/** A text to remember, as a person gives it. */
export interface Note {
  readonly text: string
  readonly name?: string | undefined
  readonly group?: string | undefined
  readonly source: string
  readonly at?: string | undefined
  readonly saga?: string | undefined
}

const BY = { actor: 'command line' }

/** One tenant's memory for people at a command line: they work on the store itself, beside a gateway that may run. */
export const openOffice = ({ folder, database, tenant, group, extracts, embeds }: OfficeOptions) => {
  const stores = openStores({ folder, database })
  const remember = createRemember({ extracts: extracts ?? false, embeds: embeds ?? false })
  const at = <T>(work: (store: MemoryStore) => Promise<T>): Promise<T> => stores.with(tenant, work)
  return {
    /** Everybody who has a memory here. */
    tenants: () => stores.tenants(),
    add: (note: Note): Promise<PlainObject> =>
      at(async store => {
        const { episode, outcome, entities, facts } = await remember(store, toldOf(note, group), BY)
        return { ...shownEpisode(episode), outcome, entities: entities.length, facts: facts.length }
      }),
    passages: (query: string, groups: Groups, limit: number): Promise<readonly PlainObject[]> =>
      at(async store => {
        const found = await searchPassages(searchFor(store, query, groups))
        return found.slice(0, limit).map(({ text, actor, validAt, group, episode, episodeName }) => ({
          text,
          actor: actor ?? null,
          valid_at: shownDate(validAt),
          group_id: group,
          episode_uuid: episode,
          episode_name: episodeName,
        }))
      }),
    facts: (query: string, groups: Groups, limit: number): Promise<readonly PlainObject[]> =>
      at(async store => withNames(store, await searchFacts({ ...searchFor(store, query, groups), limit }))),
    episodes: (groups: Groups, limit: number): Promise<readonly PlainObject[]> =>
      at(async store => (await store.episodes({ groups, limit, order: 'newest' })).map(shownEpisode)),
    /** Hands every line of an export to `write`, at the pace it takes them. */
    exportTo: (groups: Groups, write: (line: string) => Promise<void>): Promise<void> =>
      at(async store => {
        for await (const line of store.exportLines(groups)) await write(line)
      }),
    importFrom: (what: Omit<ImportOptions, 'store' | 'remember' | 'by' | 'group'>): Promise<Counts> =>
      at(store => importFrom({ ...what, store, remember, by: BY, group })),
    backup: (path: string): Promise<{ readonly bytes: number }> => at(store => store.backup(path)),
    forget: (what: Forget): Promise<ForgetProof> => at(store => store.forget(what, BY)),
    stats: (): Promise<StoreStats> => at(store => store.stats()),
    jobs: (groups: Groups, limit: number): Promise<readonly PlainObject[]> =>
      at(async store => (await store.jobs({ groups, limit })).map(shownJob)),
    /** Failed jobs wait again, one or all; says how many. */
    retry: (job: number | 'all'): Promise<number> => at(store => retryJobs(store, job)),
    close: () => stores.close(),
  }
}

const SOURCES: readonly string[] = ['text', 'message', 'json']

const toldOf = ({ text, name, group: given, source, at, saga }: Note, group: string): Told => {
  if (!SOURCES.includes(source))
    throw new Refusal(`There is no source ${JSON.stringify(source)}; there are ${SOURCES.join(', ')}`)
  const validAt = at === undefined ? undefined : readDate(at)
  if (at !== undefined && validAt === undefined) throw new Refusal(notADate(at))
  return {
    group: checkedGroup(given ?? group),
    name: name ?? titleOf(text),
    body: text,
    source: source as Told['source'],
    sourceDescription: '',
    validAt,
    saga,
  }
}

const searchFor = (store: MemoryStore, query: string, groups: Groups): Search => ({
  store,
  groups,
  question: readQuestion(query, Date.now()),
  weights: WEIGHTS,
})

/** A sentence like "I moved" says little without who said it. */
const withNames = async (store: MemoryStore, facts: readonly Fact[]): Promise<readonly PlainObject[]> => {
  const entities = await store.entitiesById([...new Set(facts.flatMap(fact => [fact.sourceId, fact.targetId]))])
  const names = new Map(entities.map(({ id, name }) => [id, name]))
  return facts.map(fact => ({
    ...shownFact(fact),
    source_node_name: names.get(fact.sourceId) ?? null,
    target_node_name: names.get(fact.targetId) ?? null,
  }))
}

const PAGE = 500

const retryJobs = async (store: MemoryStore, which: number | 'all'): Promise<number> => {
  if (which !== 'all') return (await store.retry(which)) ? 1 : 0
  for (let count = 0; ; ) {
    const failed = await store.jobs({ groups: 'all', limit: PAGE, states: ['failed'] })
    const before = count
    for (const { id } of failed) count += Number(await store.retry(id))
    if (count === before) return count
  }
}
