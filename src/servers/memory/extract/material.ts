import type { Attributes, Doc, Episode } from '../model.ts'
import type { MemoryStore } from '../store.ts'

/** What a caller wished for when the episode was added. */
export interface Wishes {
  readonly excluded: readonly string[] // kinds of entities, lower case
  readonly instructions: string
  readonly previous: readonly string[] | undefined
}

/** What a model is shown of an episode. */
export interface Material {
  readonly episode: Episode
  readonly passages: readonly string[] // from the first on, as many as fit
  readonly earlier: readonly string[] // oldest first
  readonly wishes: Wishes
}

const MOST_EARLIER = 4
const MOST_NAMED = 10
const MOST_OF_EARLIER = 1_500
const LONGEST_WISH = 4_000

const texts = (value: unknown): string[] | undefined =>
  Array.isArray(value) ? value.filter(item => typeof item === 'string') : undefined

const wishesIn = ({ excluded, instructions, previous }: Attributes): Wishes => ({
  excluded: (texts(excluded) ?? []).map(kind => kind.trim().toLowerCase()),
  instructions: typeof instructions === 'string' ? instructions.slice(0, LONGEST_WISH) : '',
  previous: texts(previous),
})

const shown = ({ actor, text }: Doc): string => (actor === undefined ? text : `${actor}: ${text}`)

/** The first passages that fit together, and of a huge one its beginning. */
const fitting = (passages: readonly string[], mostCharacters: number): string[] => {
  const shown: string[] = []
  let left = mostCharacters
  for (const passage of passages) {
    if (left <= 0 || (shown.length > 0 && passage.length > left)) break
    shown.push(passage.slice(0, left))
    left -= passage.length
  }
  return shown
}

/** What was said before it: what the caller named, or else the last of its saga or talk. Never of another group. */
const earlierThan = async (store: MemoryStore, episode: Episode, { previous }: Wishes): Promise<Episode[]> => {
  const { group, id, validAt, saga, source } = episode
  const isBefore = (other: Episode): boolean => other.id !== id && other.validAt <= validAt
  if (previous) {
    const named = await store.episodesByUuid(previous.slice(0, MOST_NAMED))
    return named.filter(other => other.group === group && other.id !== id)
  }
  if (saga === undefined && source !== 'message') return []
  const limit = MOST_EARLIER + 1
  const latest = await store.episodes({ groups: [group], limit, order: 'newest', ...(saga !== undefined && { saga }) })
  return latest.filter(isBefore).slice(0, MOST_EARLIER)
}

/** Collects what a model is to read. */
export const gather = async (
  store: MemoryStore,
  episode: Episode,
  payload: Attributes,
  mostCharacters: number,
): Promise<Material> => {
  const wishes = wishesIn(payload)
  const docs = await store.docsOfEpisodes([episode.uuid])
  const earlier = await earlierThan(store, episode, wishes)
  return {
    episode,
    wishes,
    passages: fitting(docs.map(shown), mostCharacters),
    earlier: earlier
      .toSorted((a, b) => a.validAt - b.validAt || a.id - b.id)
      .map(({ content }) => content.slice(0, MOST_OF_EARLIER)),
  }
}
