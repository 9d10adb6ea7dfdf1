import type { MemoryScope, TimelineQuery } from '../../../protocol/memory-operations.ts'
import type {
  EntityDetails,
  EpisodeDetails,
  MemorySearch,
  MemoryTimeline,
  TimelineItem,
} from '../../../protocol/memory-views.ts'
import { OperationError } from '../../../protocol/operation-error.ts'
import { checkDate, checkGroupId } from '../input-checks.ts'
import type { Instant } from '../model.ts'
import { searchEntities } from '../search/entities.ts'
import { searchFacts } from '../search/facts.ts'
import { type EmbedQuery, searchPassages } from '../search/passages.ts'
import { readQuestion } from '../search/question.ts'
import { WEIGHTS } from '../search/weights.ts'
import { factTime, type TimePlace } from '../store/timeline.ts'
import type { FactFilter, Groups, MemoryStore } from '../store.ts'
import { entityView, episodeView, factViews, nameOf } from './views.ts'

const MOST_FACTS = 500 // of an entity
const MOST_EPISODES = 50
const MOST_NEIGHBOURS = 100

export const scopeGroups = ({ group }: MemoryScope): Groups => (group === undefined ? 'all' : [checkGroupId(group)])

const asOfIn = ({ asOf }: MemoryScope): Instant | undefined =>
  asOf === undefined ? undefined : checkDate(asOf, 'asOf: ')

export const scopeFilter = (scope: MemoryScope): FactFilter => {
  const asOf = asOfIn(scope)
  return asOf === undefined ? {} : { asOf }
}

/** Searches facts, entities and passages, as the tools do; at another time only entities of which something was true then. */
export const searchMemory = async (
  store: MemoryStore,
  embed: EmbedQuery,
  query: string,
  scope: MemoryScope,
  limit: number,
): Promise<MemorySearch> => {
  const groups = scopeGroups(scope)
  const filter = scopeFilter(scope)
  const question = readQuestion(query, Date.now())
  const search = { store, groups, question, embedding: await embed(query), weights: WEIGHTS }
  const facts = await searchFacts({ ...search, limit, filter })
  const entities = await searchEntities({ ...search, limit })
  const ids = entities.map(({ id }) => id)
  const counted = new Map((await store.entities(groups, limit, ids)).map(entity => [entity.id, entity]))
  if (filter.asOf !== undefined)
    for (const [id, entity] of counted) {
      const { length } = await store.factsOfEntities([id], MOST_FACTS, filter)
      if (length > 0) counted.set(id, { ...entity, facts: length })
      else counted.delete(id)
    }
  const until = filter.asOf ?? Number.POSITIVE_INFINITY
  const passages = (await searchPassages(search)).filter(({ validAt }) => validAt <= until).slice(0, limit)
  return {
    facts: await factViews(store, facts),
    entities: ids.flatMap(id => counted.get(id) ?? []).map(entityView),
    passages: passages.map(({ text, actor, validAt, group, episode, episodeName }) => ({
      text,
      speaker: actor,
      at: validAt,
      group,
      episode: { id: episode, name: episodeName },
    })),
  }
}

/** A page of episodes and facts in one list, the latest first. */
export const readTimeline = async (store: MemoryStore, query: TimelineQuery): Promise<MemoryTimeline> => {
  const { limit, kind } = query
  const [afterEpisode, afterFact] = placesIn(query.after)
  const page = { groups: scopeGroups(query), limit: limit + 1, asOf: asOfIn(query) }
  const episodes = kind === 'fact' ? [] : await store.episodePage({ ...page, after: afterEpisode })
  const facts = kind === 'episode' ? [] : await store.factPage({ ...page, after: afterFact })
  const rows = [
    ...episodes.map(row => ({ row, at: row.validAt, kind: 'episode' as const })),
    ...facts.map(row => ({ row, at: factTime(row), kind: 'fact' as const })),
  ].toSorted((a, b) => b.at - a.at)
  const shown = rows.slice(0, limit)
  const views = new Map(
    (
      await factViews(
        store,
        shown.flatMap(item => (item.kind === 'fact' ? [item.row] : [])),
      )
    ).map(view => [view.id, view]),
  )
  const items = shown.flatMap((item): TimelineItem[] => {
    if (item.kind === 'episode')
      return [{ kind: 'episode', at: item.at, episode: episodeView(item.row, item.row.characters) }]
    const fact = views.get(item.row.uuid)
    return fact ? [{ kind: 'fact', at: item.at, fact }] : []
  })
  if (rows.length <= limit) return { items }
  const lastOf = (wanted: 'episode' | 'fact', before: TimePlace | undefined): TimePlace | undefined => {
    const last = shown.findLast(item => item.kind === wanted)
    return last ? { at: last.at, id: last.row.id } : before
  }
  return { items, next: [lastOf('episode', afterEpisode), lastOf('fact', afterFact)].map(writePlace).join(',') }
}

const writePlace = (place: TimePlace | undefined): string => (place ? `${place.at}:${place.id}` : '')

const PLACES = /^(?:(-?\d{1,17}):(\d{1,17}))?,(?:(-?\d{1,17}):(\d{1,17}))?$/

const placesIn = (after: string | undefined): readonly [TimePlace | undefined, TimePlace | undefined] => {
  if (after === undefined) return [undefined, undefined]
  const match = PLACES.exec(after)
  if (!match) throw new OperationError('invalid', 'after: is not a place in this list; use "next" of the page before')
  const [, episodeAt, episode, factAt, fact] = match
  const placeOf = (at: string | undefined, id: string | undefined): TimePlace | undefined =>
    at === undefined ? undefined : { at: Number(at), id: Number(id) }
  return [placeOf(episodeAt, episode), placeOf(factAt, fact)]
}

export const readEpisode = async (store: MemoryStore, id: string): Promise<EpisodeDetails> => {
  const episode = await store.episode(id)
  if (!episode) throw new OperationError('missing', `There is no episode ${id}`)
  const { entities, facts } = await store.episodeGraph([id])
  return { episode: episodeView(episode), entities: entities.map(nameOf), facts: await factViews(store, facts) }
}

export const readEntityDetails = async (
  store: MemoryStore,
  id: string,
  scope: MemoryScope = {},
): Promise<EntityDetails> => {
  const found = await store.entity(id)
  const [counted] = found ? await store.entities('all', 1, [found.id]) : []
  if (!counted) throw new OperationError('missing', `There is no entity ${id}`)
  const facts = await store.factsOfEntities([counted.id], MOST_FACTS, scopeFilter(scope))
  const { episodes, total } = await store.mentions(counted.id, MOST_EPISODES)
  const neighbours = await store.connected(counted.id, MOST_NEIGHBOURS)
  return {
    entity: entityView(scope.asOf === undefined ? counted : { ...counted, facts: facts.length }),
    aliases: await store.aliases(counted.id),
    attributes: counted.attributes,
    learntAt: counted.createdAt,
    facts: await factViews(store, facts),
    neighbours: neighbours.map(entity => ({ ...nameOf(entity), facts: entity.facts })),
    episodes: episodes.map(episode => episodeView(episode, episode.characters)),
    mentions: total,
  }
}
