import { queryTerms } from '../../../text/query.ts'
import { sentencesOf } from '../../../text/sentences.ts'
import type { Episode, Saga } from '../model.ts'
import type { MemoryStore } from '../store.ts'
import type { JobHandler } from '../worker.ts'

const MOST_CHARACTERS = 1000
const MOST_EPISODES = 200 // of a saga, the latest

/** The most sentences in a summary. */
export const MOST_SENTENCES = 8
const MOST_READ = 200_000 // characters of all episodes together

/** A summary in sentences of the episodes: the first, the last, and those whose words occur most often. */
const digestOf = (episodes: readonly Pick<Episode, 'content'>[]): string => {
  const share = Math.ceil(MOST_READ / Math.max(1, episodes.length))
  const sentences = episodes.flatMap(({ content }) => sentencesOf(headAndTail(content, share)).map(({ text }) => text))
  const [first, last] = [sentences[0], sentences.at(-1)]
  if (first === undefined || last === undefined) return ''
  const chosen = new Set([first, last])
  for (const sentence of byWeight(sentences)) {
    if (chosen.size >= MOST_SENTENCES) break
    chosen.add(sentence)
  }
  const inOrder = [...new Set(sentences)].filter(sentence => chosen.has(sentence))
  return shorten(inOrder.join(' '))
}

/** The beginning and the end of a long episode: weighing all of it would take too long. */
const headAndTail = (content: string, most: number): string => {
  if (content.length <= most) return content
  const half = Math.floor(most / 2)
  return `${content.slice(0, content.lastIndexOf(' ', half))}\n${content.slice(content.indexOf(' ', content.length - half) + 1)}`
}

/** The sentences whose words occur most often elsewhere, first. */
const byWeight = (sentences: readonly string[]): readonly string[] => {
  const stems = sentences.map(sentence => queryTerms(sentence).map(({ stem }) => stem))
  const counts = new Map<string, number>()
  for (const stem of stems.flat()) counts.set(stem, (counts.get(stem) ?? 0) + 1)
  const weightOf = (at: number): number => {
    const words = stems[at] ?? []
    return words.reduce((sum, stem) => sum + (counts.get(stem) ?? 0) - 1, 0) / Math.sqrt(words.length + 1)
  }
  return sentences
    .map((sentence, at) => ({ sentence, weight: weightOf(at) }))
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ sentence }) => sentence)
}

/** Cuts a summary at a word. */
export const shorten = (text: string): string =>
  text.length <= MOST_CHARACTERS ? text : `${text.slice(0, text.lastIndexOf(' ', MOST_CHARACTERS - 1))}…`

/** Updates the summary of a saga up to its latest episode; undefined if there is no such saga. */
export const updateSagaSummary = async (store: MemoryStore, group: string, name: string): Promise<Saga | undefined> => {
  const saga = await store.saga(group, name)
  if (!saga) return undefined
  const latest = await store.episodes({ groups: [group], saga: name, limit: MOST_EPISODES, order: 'newest' })
  const episodes = latest.toReversed()
  const last = Math.max(saga.summarisedTo, ...episodes.map(({ id }) => id))
  const summary = digestOf(episodes)
  if (last === saga.summarisedTo && summary === saga.summary) return saga
  return store.setSagaSummary(group, name, summary, last)
}

/** Handles jobs of the kind `summarise`. */
export const summariseJob: JobHandler = async (store, { group, payload }) => {
  if (typeof payload.saga === 'string') await updateSagaSummary(store, group, payload.saga)
}
