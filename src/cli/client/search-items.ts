import { nearest } from '../../config/problems.ts'
import { parametersOf } from '../../protocol/schema-text.ts'
import type { Json } from '../../wire/json/json.ts'
import { type Item, labelOf } from './items.ts'

type Searched = Pick<Item, 'server' | 'name' | 'definition'>

/** The items that have the words, the best first. */
interface SearchResult<T> {
  readonly found: readonly T[]
  readonly matched: number // how many of the words each of them has
  readonly wanted: number // how many words there are
}

/** A text of an item, and how much a word in it counts. */
interface SearchField {
  readonly text: string
  readonly tokens: readonly string[]
  readonly weight: number
}

/** Finds the items that have all words; if there is none, those that have the most. */
export const searchItems = <T extends Searched>(items: readonly T[], words: readonly string[]): SearchResult<T> => {
  const wanted = words.flatMap(word => word.toLowerCase().split(/\s+/)).filter(word => word !== '')
  const texts = items.map(fieldsOf)
  const scoresByWord = wanted.map(word => {
    const scores = texts.map(fields => Math.max(...fields.map(field => scoreOf(word, field))))
    return scores.some(score => score > 0) ? scores : texts.map(fields => typingErrorScore(word, fields))
  })
  const scored = items.map((item, at) => {
    const scores = scoresByWord.map(ofWord => ofWord[at] ?? 0)
    return { item, matched: scores.filter(score => score > 0).length, score: scores.reduce((a, b) => a + b, 0) }
  })
  const matched = Math.max(0, ...scored.map(each => each.matched))
  const best = scored.filter(each => matched > 0 && each.matched === matched).sort((a, b) => b.score - a.score)
  return { found: best.map(({ item }) => item), matched, wanted: wanted.length }
}

const fieldsOf = (item: Searched): SearchField[] => {
  const { definition } = item
  const textOf = (key: string): string => definition.get(key)?.asString() ?? ''
  return [
    fieldOf(labelOf(item), 8),
    fieldOf(`${textOf('title')} ${textOf('name')}`, 4),
    fieldOf(textOf('description'), 2),
    fieldOf(argumentTexts(definition), 1),
  ]
}

const argumentTexts = (definition: Json): string => {
  const ofPrompt = definition.get('arguments')?.elements() ?? []
  const schema = definition.get('inputSchema')
  const ofTool = schema ? parametersOf(schema) : []
  return [
    ...ofTool.map(({ name, schema: parameter }) => `${name} ${parameter.get('description')?.asString() ?? ''}`),
    ...ofPrompt.map(each => `${each.get('name')?.asString() ?? ''} ${each.get('description')?.asString() ?? ''}`),
  ].join(' ')
}

const fieldOf = (text: string, weight: number): SearchField => {
  const spaced = text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  return { text: text.toLowerCase(), tokens: spaced.split(/[^\p{L}\p{N}]+/u).filter(token => token !== ''), weight }
}

const WHOLE = 4
const STEM = 3
const START = 2
const SHORTEST_PART = 3 // of a word that names may contain anywhere

/** A whole word counts more than another form of it, that more than a beginning; 0: the field lacks the word. */
const scoreOf = (word: string, { text, tokens, weight }: SearchField): number => {
  if (tokens.includes(word)) return weight * WHOLE
  if (tokens.some(token => stemOf(token) === stemOf(word))) return weight * STEM
  if (tokens.some(token => token.startsWith(word))) return weight * START
  const isName = weight > 2
  const isPart = isName || /[^\p{L}\p{N}]/u.test(word) // like a URI, of several tokens
  return isPart && word.length >= SHORTEST_PART && text.includes(word) ? weight : 0
}

const SHORTEST_MISTYPED = 5

/** For a word that no item has. */
const typingErrorScore = (word: string, fields: readonly SearchField[]): number =>
  word.length < SHORTEST_MISTYPED
    ? 0
    : Math.max(...fields.map(({ tokens, weight }) => (nearest(word, tokens) === undefined ? 0 : weight)))

/** English words without their endings, roughly: `files` and `file`, `queries` and `query`, `reading` and `read`. */
const stemOf = (word: string): string => {
  const stem = word
    .replace(/ies$/, 'y')
    .replace(/(?<=[^s])s$/, '')
    .replace(/(?<=.{3})(ing|ed)$/, '')
  return stem.replace(/(?<=.{2})e$/, '')
}
