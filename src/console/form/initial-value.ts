import { isObject } from '../mcp/messages.ts'
import { fieldShape } from './field-kind.ts'
import type { SchemaRoot } from './resolve-schema.ts'
import { itemSchema, requiredNames } from './validate.ts'

const DEEPEST = 6 // of required objects in each other: a recursive schema has no end
const MOST_ITEMS = 5

/** What a form begins with: defaults, constants, and the members that are required; undefined where the user must choose. */
export const initialValue = (schema: unknown, root: SchemaRoot, isRequired = true, depth = 0): unknown => {
  if (depth > DEEPEST) return undefined
  const { kind, schema: shown, branches } = fieldShape(schema, root, undefined)
  const given = isObject(schema) && schema.default !== undefined ? schema.default : shown.default
  if (given !== undefined) return given
  if (!isRequired) return undefined
  switch (kind) {
    case 'fixed':
      return shown.const
    case 'boolean':
      return false
    case 'several':
      return []
    case 'choice':
      return initialValue(branches?.[0]?.schema, root, true, depth + 1)
    case 'object':
      return initialMembers(shown, root, depth)
    case 'list': {
      const least = Math.min(MOST_ITEMS, Number(shown.minItems) || 0)
      return Array.from({ length: least }, (_, at) => initialValue(itemSchema(shown, at), root, true, depth + 1))
    }
    default:
      return undefined
  }
}

const initialMembers = (schema: Readonly<Record<string, unknown>>, root: SchemaRoot, depth: number): unknown => {
  const required = requiredNames(schema, {})
  const properties = Object.entries(isObject(schema.properties) ? schema.properties : {})
  const members = properties.map(([name, property]): [string, unknown] => [
    name,
    initialValue(property, root, required.includes(name), depth + 1),
  ])
  return Object.fromEntries(members.filter(([, value]) => value !== undefined))
}
