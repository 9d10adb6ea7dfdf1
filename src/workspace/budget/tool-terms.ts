import { parametersOf } from '../../protocol/schema-text.ts'
import { indexText, isUnspaced } from '../../text/query.ts'
import { stemOf, wordsOf } from '../../text/words.ts'
import { Json } from '../../wire/json/json.ts'

/** The words of a text as numbers, each with how much it says about the text. */
export interface TextTerms {
  readonly ids: Uint32Array // ascending
  readonly weights: Float32Array
}

/** How much a word counts, by where it is. */
const WEIGHTS = { name: 4, title: 2, purpose: 2, description: 1, parameter: 1, parameterText: 0.4 }
const SERVER_WEIGHTS = { name: 2, instructions: 0.3 }

// Longer texts are cut: a server may send megabytes, and what matters comes first.
const MOST_DESCRIPTION = 4000 // characters
const MOST_PARAMETER_TEXT = 300
const MOST_PARAMETERS = 100
const PURPOSE = /^[^.\n。]*/

/** The terms of a tool by its definition. */
export const toolTerms = (name: string, definition: Json): TextTerms => {
  const collected = new TermCollector()
  const description = (definition.get('description')?.asString() ?? '').slice(0, MOST_DESCRIPTION)
  const title = definition.get('title')?.asString() ?? definition.at('annotations', 'title')?.asString() ?? ''
  collected.add(name, WEIGHTS.name)
  collected.add(title.slice(0, MOST_PARAMETER_TEXT), WEIGHTS.title)
  collected.add(PURPOSE.exec(description)?.[0] ?? '', WEIGHTS.purpose)
  collected.add(description, WEIGHTS.description)
  for (const parameter of parametersOf(definition.get('inputSchema') ?? Json.empty).slice(0, MOST_PARAMETERS)) {
    collected.add(parameter.name, WEIGHTS.parameter)
    const text = parameter.schema.get('description')?.asString() ?? ''
    collected.add(text.slice(0, MOST_PARAMETER_TEXT), WEIGHTS.parameterText)
  }
  return collected.terms
}

/** The terms that a server gives to all of its tools. */
export const serverTerms = (server: string, instructions: string): TextTerms => {
  const collected = new TermCollector()
  collected.add(server, SERVER_WEIGHTS.name)
  collected.add(instructions.slice(0, MOST_DESCRIPTION), SERVER_WEIGHTS.instructions)
  return collected.terms
}

/** The weight of a term; 0 if the text does not have it. */
export const weightOf = ({ ids, weights }: TextTerms, id: number): number => {
  let [low, high] = [0, ids.length - 1]
  while (low <= high) {
    const middle = (low + high) >> 1
    const found = ids[middle] as number
    if (found === id) return weights[middle] as number
    if (found < id) low = middle + 1
    else high = middle - 1
  }
  return 0
}

/** A stem as a number (FNV-1a). Two stems with one number are so rare that they only disturb a ranking. */
export const termId = (stem: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < stem.length; at++) hash = Math.imul(hash ^ stem.charCodeAt(at), 0x01000193)
  return hash >>> 0
}

const MOST_STEMS = 20_000
const known = new Map<string, number>() // by word: stemming takes most of the time

const idOf = (word: string): number => {
  const before = known.get(word)
  if (before !== undefined) return before
  if (known.size >= MOST_STEMS) known.clear()
  const id = termId(stemOf(word))
  known.set(word, id)
  return id
}

/** Collects words; one that is in several places counts by the best of them, and a little more for each other one. */
class TermCollector {
  readonly #weights = new Map<number, number>()

  add(text: string, weight: number): void {
    for (const word of new Set(wordsOf(indexText(text)))) {
      this.#put(idOf(word), weight)
      if (isUnspaced(word)) for (const letter of word) this.#put(idOf(letter), weight) // a query may be a single letter
    }
  }

  #put(id: number, weight: number): void {
    const before = this.#weights.get(id) ?? 0
    this.#weights.set(id, Math.max(before, weight) + Math.min(before, weight) / 4)
  }

  get terms(): TextTerms {
    const sorted = [...this.#weights].sort(([a], [b]) => a - b)
    return { ids: Uint32Array.from(sorted, ([id]) => id), weights: Float32Array.from(sorted, ([, weight]) => weight) }
  }
}
