import type { ToolTrim } from '../../config/tool-list.ts'
import { mapSubschemas } from '../../protocol/json-schema.ts'
import { sentencesOf } from '../../text/sentences.ts'
import type { Json } from '../../wire/json/json.ts'
import { mapMembers } from '../../wire/json/map-members.ts'

/** The definition of a tool without what models can do without; the same value if there is nothing of that. */
export const trimTool = (definition: Json, trim: ToolTrim): Json => {
  if (!definition.isObject) return definition
  const cut = withShortDescription(trim.outputSchema === 'drop' ? definition.without('outputSchema') : definition, trim)
  const schema = cut.get('inputSchema')
  const trimmed = schema?.isObject ? cut.with('inputSchema', trimInput(definition, schema, trim)) : cut
  return trimmed === definition ? definition : trimmed.compact() // it is kept
}

const trimInput = (definition: Json, schema: Json, trim: ToolTrim): Json => {
  const name = definition.get('name')?.asString() ?? ''
  // Some libraries make a title of the name of the function.
  const untitled = trim.schemas ? withoutTitle(schema, name, `${name}Arguments`) : schema
  return trimSchema(untitled, trim)
}

const withShortDescription = (value: Json, { descriptions }: ToolTrim): Json => {
  const text = value.get('description')?.asString()
  return text === undefined || text.length <= descriptions
    ? value
    : value.with('description', cutText(text, descriptions))
}

const ELLIPSIS = '…'
const LONGEST_SENTENCE = 600 // characters; a longer one is cut anyway

/** The sentences that fit; of a first one that does not, the words that fit. */
export const cutText = (text: string, most: number): string => {
  let end = 0
  for (const { text: sentence, start } of sentencesOf(text.slice(0, most + LONGEST_SENTENCE))) {
    if (start + sentence.length > most) break
    end = start + sentence.length
  }
  if (end > 0) return text.slice(0, end).trim()
  const start = text.slice(0, most - 1)
  const space = start.lastIndexOf(' ')
  const kept = space > most / 2 ? start.slice(0, space) : start.replace(/[\ud800-\udbff]$/, '') // no half of a character
  return kept.trim() + ELLIPSIS
}

/** Maps of schemas whose titles often repeat their names. */
const NAMED_SCHEMAS = ['properties', '$defs', 'definitions']

const trimSchema = (schema: Json, trim: ToolTrim): Json => {
  const short = withShortDescription(
    mapSubschemas(schema, child => trimSchema(child, trim)),
    trim,
  )
  return trim.schemas ? withoutNoise(short) : short
}

/** Without keywords that change nothing, or only repeat what is said elsewhere. */
const withoutNoise = (schema: Json): Json => {
  let trimmed = schema.without('$schema', 'examples')
  for (const keyword of NAMED_SCHEMAS) {
    const named = trimmed.get(keyword)
    if (named?.isObject) {
      const untitled = mapMembers(named, (child, name) => (child.isObject ? withoutTitle(child, name) : child))
      trimmed = trimmed.with(keyword, untitled)
    }
  }
  const more = trimmed.get('additionalProperties')
  const isDefault = more?.asBoolean() === true || (more?.isObject === true && more.memberCount === 0)
  return isDefault ? trimmed.without('additionalProperties') : trimmed
}

const SEPARATORS = /[^\p{L}\p{N}]/gu
const folded = (text: string): string => text.replace(SEPARATORS, '').toLowerCase()

const withoutTitle = (schema: Json, ...names: readonly string[]): Json => {
  const title = schema.get('title')?.asString()
  return title !== undefined && names.some(name => folded(name) === folded(title)) ? schema.without('title') : schema
}
