import { createHash } from 'node:crypto'
import type { Json } from '../wire/json/json.ts'

/** The members of a tool that a model or a person reads. `_meta`, icons and unknown members may change freely. */
const DEFINING = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const

/** The definition as text: equal for definitions that differ in white space, escapes or the order of members only. */
const definitionText = (tool: Json): string =>
  `{${DEFINING.flatMap(name => {
    const value = tool.get(name)
    return value ? `${JSON.stringify(name)}:${canonicalText(value)}` : []
  }).join(',')}}`

/** Numbers stay as they were written: two spellings of one number are two definitions. */
const canonicalText = (value: Json): string => {
  if (value.kind === 'string') return JSON.stringify(value.asString())
  if (value.kind === 'array') return `[${value.elements().map(canonicalText).join(',')}]`
  if (value.kind !== 'object') return value.toString()
  const members = value.entries().sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalText(member)}`).join(',')}}`
}

/** A tool as a server has listed it. */
export interface ToolDefinition {
  readonly name: string
  readonly hash: string
  readonly text: string
}

/** Undefined for an item without a name: no client can call it. */
export const readDefinition = (tool: Json): ToolDefinition | undefined => {
  const name = tool.get('name')?.asString()
  if (name === undefined) return undefined
  const text = definitionText(tool)
  return { name, text, hash: createHash('sha256').update(text).digest('base64url') }
}
