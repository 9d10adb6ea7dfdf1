import { nearest } from '../../config/problems.ts'
import {
  alternativesOf,
  choicesOf,
  resolveSchema,
  type SchemaType,
  textOfValue,
  typesOf,
  typeText,
} from '../../protocol/schema-text.ts'
import { Json, type JsonKind } from '../../wire/json/json.ts'

/** A value, or why the text is none of the schema's type. */
export type TypedValue = { readonly value: Json } | { readonly problem: string }

const INTEGER = /^-?(?:0|[1-9]\d*)$/
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Reads each type from a text; undefined if the text is none. Numbers keep every digit. */
const READERS: Readonly<Record<SchemaType, (text: string) => Json | undefined>> = {
  string: text => Json.of(text),
  integer: text => (INTEGER.test(text) ? Json.parse(Buffer.from(text)) : undefined),
  number: text => (NUMBER.test(text) ? Json.parse(Buffer.from(text)) : undefined),
  boolean: text => (text === 'true' || text === 'false' ? Json.of(text === 'true') : undefined),
  null: text => (text === 'null' ? Json.of(null) : undefined),
  array: text => parseKind(text, 'array'),
  object: text => parseKind(text, 'object'),
}

const parseKind = (text: string, kind: JsonKind): Json | undefined => {
  try {
    const value = Json.parse(Buffer.from(text))
    return value.kind === kind ? value : undefined
  } catch {
    return undefined
  }
}

/** Converts the text of an argument by its schema: the first type of the schema that fits. Without a type, a string. */
export const typeValue = (text: string, given: Json | undefined, root: Json): TypedValue => {
  const schema = resolveSchema(given, root)
  if (!schema?.isObject) return { value: Json.of(text) }
  const choices = choicesOf(schema)
  if (choices) return chooseValue(text, choices)
  const alternatives = alternativesOf(schema, root)
  let isAny = alternatives.length === 0
  for (const alternative of alternatives) {
    const listed = choicesOf(alternative)
    const chosen = listed ? chooseValue(text, listed) : undefined
    if (chosen && 'value' in chosen) return chosen
    if (listed) continue
    const types = typesOf(alternative)
    isAny ||= types.length === 0
    for (const type of types) {
      const value = READERS[type]?.(text)
      if (value) return { value }
    }
  }
  if (isAny) return { value: Json.of(text) }
  return { problem: `expected ${typeText(schema, root)}, got ${JSON.stringify(text)}` }
}

const chooseValue = (
  text: string,
  choices: readonly { readonly value: Json; readonly title: string }[],
): TypedValue => {
  const found = choices.find(({ value, title }) => textOfValue(value) === text || title === text)
  if (found) return { value: found.value }
  const names = choices.map(({ value }) => textOfValue(value))
  const meant = nearest(text, names)
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  return { problem: `expected one of ${names.join(', ')}, got ${JSON.stringify(text)}${hint}` }
}

/** Whether repeating an argument makes a list of it. */
export const isList = (given: Json | undefined, root: Json): boolean => {
  const schema = resolveSchema(given, root)
  if (!schema?.isObject) return false
  return alternativesOf(schema, root).some(
    each => typesOf(each).includes('array') || (each.has('items') && typesOf(each).length === 0),
  )
}

const KINDS: Readonly<Record<JsonKind, readonly SchemaType[]>> = {
  string: ['string'],
  number: ['number', 'integer'],
  boolean: ['boolean'],
  null: ['null'],
  array: ['array'],
  object: ['object'],
}

/** Why a JSON value does not have the type of its schema; looks no deeper than its kind. */
export const kindProblem = (value: Json, given: Json | undefined, root: Json): string | undefined => {
  const schema = resolveSchema(given, root)
  if (!schema?.isObject) return undefined
  const types = alternativesOf(schema, root).map(typesOf)
  const fits = types.some(each => each.length === 0 || each.some(type => KINDS[value.kind].includes(type)))
  const isInteger = value.kind !== 'number' || types.flat().includes('number') || Number.isInteger(value.asNumber())
  if (fits && isInteger) return undefined
  return `expected ${typeText(schema, root)}, got ${value.kind} ${value.toString().slice(0, 60)}`
}
