import type { DefinitionChange, QuarantinedTool } from '../protocol/pins.ts'
import { Json } from '../wire/json/json.ts'
import { flagTool } from './flag-tool.ts'
import { visibleText } from './hidden-text.ts'

const MOST_CHANGES = 50
const LONGEST = 2000 // characters of a value that is shown

/** What differs between two definitions, given as canonical text; undefined: it is not known. */
export const describeChange = (
  before: string | undefined,
  after: string | undefined,
): Pick<QuarantinedTool, 'changes' | 'definition' | 'flags'> => {
  if (after === undefined) return { changes: [], flags: [] }
  const definition = Json.parse(Buffer.from(after))
  const changes = before === undefined ? [] : compare('', Json.parse(Buffer.from(before)), definition)
  return { changes: changes.slice(0, MOST_CHANGES), definition: after, flags: flagTool(definition) }
}

/** The text is canonical, so that equal values are equal texts. */
const compare = (at: string, before: Json | undefined, after: Json | undefined): DefinitionChange[] => {
  if (before?.toString() === after?.toString()) return []
  if (!before?.isObject || !after?.isObject) return [{ at, before: shown(before), after: shown(after) }]
  const names = new Set([...before.entries(), ...after.entries()].map(([name]) => name))
  return [...names].flatMap(name =>
    compare(at === '' ? name : `${at}.${visibleText(name)}`, before.get(name), after.get(name)),
  )
}

const shown = (value: Json | undefined): string | undefined => {
  if (!value) return undefined
  const text = visibleText(value.asString() ?? value.toString())
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length} characters)` : text
}
