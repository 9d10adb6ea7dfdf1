import type { FieldShape } from './field-kind.ts'

const NAMES: Readonly<Record<FieldShape['kind'], string>> = {
  text: 'text',
  number: 'number',
  boolean: 'boolean',
  options: 'one of',
  several: 'some of',
  object: 'object',
  list: 'list',
  choice: 'one of',
  fixed: 'constant',
  json: 'JSON',
}

/** The type of a field in a few words: `integer 1–10`, `text, email`. */
export const typeText = ({ kind, schema, options, branches }: FieldShape): string => {
  const { format, type } = schema
  const name = kind === 'number' && type === 'integer' ? 'integer' : NAMES[kind]
  const count =
    kind === 'options' || kind === 'several' ? options?.length : kind === 'choice' ? branches?.length : undefined
  const words = [name, ...(count === undefined ? [] : [String(count)])].join(' ')
  const more = [typeof format === 'string' && kind !== 'options' && format, range(schema)].filter(Boolean)
  return [words, ...more].join(', ')
}

const BOUNDS = [
  ['minimum', 'maximum', ''],
  ['minLength', 'maxLength', ' characters'],
  ['minItems', 'maxItems', ' items'],
] as const

const range = (schema: FieldShape['schema']): string => {
  for (const [least, most, unit] of BOUNDS) {
    const [from, to] = [schema[least] ?? schema.exclusiveMinimum, schema[most] ?? schema.exclusiveMaximum]
    const hasOwn = schema[least] !== undefined || schema[most] !== undefined
    if (unit !== '' && !hasOwn) continue
    if (from !== undefined && to !== undefined) return `${from}–${to}${unit}`
    if (from !== undefined) return `from ${from}${unit}`
    if (to !== undefined) return `up to ${to}${unit}`
  }
  return ''
}
