import { Json } from '../wire/json/json.ts'
import { mapMembers } from './members.ts'

const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef'])
/** Their values are data, where `$ref` is a member like any other. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])
/** Their members are named by the author: a property may well be called `$ref`. */
const NAMED: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])

/** The schema as it must be written when it no longer is the root but lies at `base`, a JSON pointer. */
export const rebase = (schema: Json, base: string): Json => {
  const readSchema = (node: Json): Json => {
    if (node.kind === 'array') return node.map(readSchema)
    if (!node.isObject || isOwnBase(node)) return node
    return mapMembers(node, (value, key) => {
      if (REFERENCES.has(key)) return moved(value, base)
      if (DATA.has(key)) return value
      return NAMED.has(key) && value.isObject ? mapMembers(value, readSchema) : readSchema(value)
    })
  }
  return readSchema(schema)
}

/** Pointers count from the root and move with it; anchors (`#name`) and other documents are found wherever they are. */
const moved = (reference: Json, base: string): Json => {
  const text = reference.asString()
  return text === '#' || text?.startsWith('#/') ? Json.of(`${base}${text.slice(1)}`) : reference
}

/** A schema with an `$id` of its own is a document of its own; `#name` is an anchor in the spelling of draft 7. */
export const isOwnBase = (schema: Json): boolean => {
  const id = schema.get('$id')?.asString()
  return id !== undefined && id !== '' && !id.startsWith('#')
}
