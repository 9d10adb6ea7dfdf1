import { createHash } from 'node:crypto'
import { parametersOf } from '../../protocol/schema-text.ts'
import { fuse } from '../../text/rank.ts'
import { Json } from '../../wire/json/json.ts'

/** What a model reads of a tool. */
export interface ToolMeaning {
  readonly key: string // of the text: definitions with the same text share a vector
  readonly text: string
}

/**
 * The places of the tools that are nearest to a query, the nearest first. Undefined: that is not known, or not yet, so words
 * alone rank the tools. Never rejects.
 */
export type RankByMeaning = (query: string, tools: readonly ToolMeaning[]) => Promise<readonly number[] | undefined>

const MOST_DESCRIPTION = 1000 // characters
const MOST_PARAMETERS = 40

/** The text of a tool for a model: what it is called, does and takes. */
export const toolMeaning = (server: string, name: string, definition: Json): ToolMeaning => {
  const title = definition.get('title')?.asString() ?? definition.at('annotations', 'title')?.asString() ?? ''
  const description = (definition.get('description')?.asString() ?? '').slice(0, MOST_DESCRIPTION)
  const parameters = parametersOf(definition.get('inputSchema') ?? Json.empty)
    .slice(0, MOST_PARAMETERS)
    .map(parameter => parameter.name)
  const named = `${server}: ${name}${title === '' ? '' : ` (${title})`}`
  const text = [named, description, parameters.join(', ')].filter(part => part !== '').join('\n')
  return { key: createHash('sha256').update(text).digest('base64url'), text }
}

const CONSTANT = 10 // a greater one lessens the advantage of the first places
const MOST_NEAREST = 50

/** The places of tools, ranked by words and by meaning. */
export const fuseRankings = (byWords: readonly number[], byMeaning: readonly number[]): number[] => {
  const lists = [byWords, byMeaning.slice(0, MOST_NEAREST)].map(keys => ({ keys, weight: 1 }))
  return [...fuse(lists, CONSTANT).keys()]
}
