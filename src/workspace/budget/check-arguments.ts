import { alternativesOf, parametersOf, type SchemaType, typesOf } from '../../protocol/schema-text.ts'
import type { Json, JsonKind } from '../../wire/json/json.ts'

/** The kinds of JSON that each type of JSON Schema allows. */
const KINDS: Readonly<Record<SchemaType, JsonKind>> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  null: 'null',
  array: 'array',
  object: 'object',
}

/**
 * What is plainly wrong with the arguments of a call, to explain the error of a server; undefined: nothing is. It decides
 * about no call, because servers may accept more than their schemas say.
 */
export const argumentProblem = (schema: Json, args: Json): string | undefined => {
  const parameters = parametersOf(schema)
  const missing = parameters.filter(({ name, isRequired }) => isRequired && !args.has(name)).map(({ name }) => name)
  if (missing.length > 0) return `missing: ${missing.join(', ')}`
  const known = new Map(parameters.map(each => [each.name, each.schema]))
  const given = args.entries()
  const unknown = given.map(([name]) => name).filter(name => !known.has(name))
  const isOpen = schema.has('patternProperties') || schema.get('additionalProperties')?.isObject === true
  if (unknown.length > 0 && known.size > 0 && !isOpen) return `unknown: ${unknown.join(', ')}`
  const wrong = given.filter(([name, value]) => !isOfType(value, known.get(name), schema)).map(([name]) => name)
  return wrong.length > 0 ? `of another type: ${wrong.join(', ')}` : undefined
}

const isOfType = (value: Json, schema: Json | undefined, root: Json): boolean => {
  if (!schema?.isObject) return true
  const types = alternativesOf(schema, root).map(typesOf)
  if (types.some(each => each.length === 0)) return true
  return types.flat().some(type => KINDS[type] === value.kind)
}
