import type { Entity, Episode, Fact } from './model.ts'
import { queryTerms } from './text/query.ts'
import { sentencesOf } from './text/sentences.ts'

const MOST_CHARACTERS = 1000
const MOST_SENTENCES = 8
const MOST_READ = 200_000 // characters of all episodes together

/** A summary in the episodes' own words: how it began, what it speaks of most, how it stands now. */
export const digestOf = (episodes: readonly Pick<Episode, 'content'>[]): string => {
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
  return cut(inOrder.join(' '))
}

/** A long episode's beginning and end; what lies between would take too long to weigh. */
const headAndTail = (content: string, most: number): string => {
  if (content.length <= most) return content
  const half = Math.floor(most / 2)
  return `${content.slice(0, content.lastIndexOf(' ', half))}\n${content.slice(content.indexOf(' ', content.length - half) + 1)}`
}

/** The sentences whose words come up most often elsewhere, the telling ones first. */
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

/** What a community is about: its members, and the latest facts among them. */
export const communityDigest = (members: readonly Entity[], facts: readonly Fact[]): string => {
  const names = members.map(({ name }) => name).join(', ')
  const latest = facts.toSorted((a, b) => (b.validAt ?? b.createdAt) - (a.validAt ?? a.createdAt))
  return cut([names, ...new Set(latest.map(({ fact }) => fact))].slice(0, MOST_SENTENCES + 1).join('. '))
}

const cut = (text: string): string =>
  text.length <= MOST_CHARACTERS ? text : `${text.slice(0, text.lastIndexOf(' ', MOST_CHARACTERS - 1))}…`
