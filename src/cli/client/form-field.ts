import { choicesOf, requiredOf, textOfValue, typesOf } from '../../protocol/schema-text.ts'
import { Json } from '../../wire/json/json.ts'
import { typeValue } from './typed-values.ts'

/** One field of an elicitation form. */
export interface FormField {
  readonly name: string
  readonly schema: Json
  readonly isRequired: boolean
  readonly fallback: Json | undefined // its default
  readonly choices: readonly { readonly value: Json; readonly title: string }[] | undefined
  readonly isMany: boolean // several choices
}

export const fieldsOf = (form: Json): readonly FormField[] => {
  const required = requiredOf(form)
  return (form.get('properties')?.entries() ?? []).map(([name, schema]) => {
    const isMany = typesOf(schema).includes('array')
    const items = schema.get('items')
    const choices = isMany && items ? choicesOf(items) : choicesOf(schema)
    return { name, schema, isRequired: required.has(name), fallback: schema.get('default'), choices, isMany }
  })
}

/** The value of a field, or why the text is none. */
export type FieldValue = { readonly value: Json } | { readonly problem: string }

/** Reads what the user typed. A choice may be given by its number, its value or its title. */
export const readField = (field: FormField, text: string): FieldValue => {
  if (field.isMany) return readMany(field, text)
  const chosen = field.choices && byNumber(field, text)
  if (chosen) return { value: chosen }
  const plain = typesOf(field.schema).includes('boolean') ? booleanText(text) : text
  const typed = typeValue(plain, field.schema, field.schema)
  const words = field.choices ? undefined : TYPE_PROBLEMS[typesOf(field.schema)[0] ?? '']
  if ('problem' in typed) return words === undefined ? typed : { problem: words }
  const problem = ruleProblem(typed.value, field.schema)
  return problem === undefined ? typed : { problem }
}

const TYPE_PROBLEMS: Readonly<Record<string, string>> = {
  integer: 'expected a whole number',
  number: 'expected a number',
  boolean: 'expected yes or no',
}

const BOOLEANS: Readonly<Record<string, string>> = { y: 'true', yes: 'true', n: 'false', no: 'false' }

const booleanText = (text: string): string => BOOLEANS[text.toLowerCase()] ?? text.toLowerCase()

const byNumber = ({ choices = [] }: FormField, text: string): Json | undefined =>
  /^\d+$/.test(text) && !choices.some(({ value }) => textOfValue(value) === text)
    ? choices[Number(text) - 1]?.value
    : undefined

const readMany = (field: FormField, text: string): FieldValue => {
  const items = field.schema.get('items') ?? Json.empty
  const values: Json[] = []
  for (const part of text.split(',').map(each => each.trim())) {
    if (part === '') continue
    const chosen = byNumber(field, part)
    const typed = chosen ? { value: chosen } : typeValue(part, items, items)
    if ('problem' in typed) return typed
    values.push(typed.value)
  }
  const least = field.schema.get('minItems')?.asNumber() ?? 0
  const most = field.schema.get('maxItems')?.asNumber() ?? Number.POSITIVE_INFINITY
  if (values.length < least) return { problem: `choose at least ${least}` }
  return values.length > most ? { problem: `choose at most ${most}` } : { value: Json.of(values) }
}

const FORMATS: Readonly<Record<string, { readonly test: (text: string) => boolean; readonly words: string }>> = {
  email: { test: text => /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text), words: 'an email address' },
  uri: { test: text => URL.canParse(text), words: 'a URI like https://example.com' },
  date: {
    test: text => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
    words: 'a date like 2026-07-28',
  },
  'date-time': {
    test: text => /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text)),
    words: 'a time like 2026-07-28T12:00:00Z',
  },
}

const ruleProblem = (value: Json, schema: Json): string | undefined => {
  const text = value.asString()
  return text === undefined ? numberProblem(value.asNumber(), schema) : textProblem(text, schema)
}

const numberProblem = (number: number | undefined, schema: Json): string | undefined => {
  const least = schema.get('minimum')?.asNumber()
  const most = schema.get('maximum')?.asNumber()
  if (number === undefined) return undefined
  if (least !== undefined && number < least) return `expected at least ${least}`
  return most !== undefined && number > most ? `expected at most ${most}` : undefined
}

const textProblem = (text: string, schema: Json): string | undefined => {
  const length = [...text].length
  const least = schema.get('minLength')?.asNumber()
  const most = schema.get('maxLength')?.asNumber()
  if (least !== undefined && length < least) return `expected at least ${least} characters`
  if (most !== undefined && length > most) return `expected at most ${most} characters`
  const format = FORMATS[schema.get('format')?.asString() ?? '']
  if (format && !format.test(text)) return `expected ${format.words}`
  const pattern = schema.get('pattern')?.asString()
  return pattern !== undefined && !matches(pattern, text) ? `expected text that matches ${pattern}` : undefined
}

const matches = (pattern: string, text: string): boolean => {
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    return true // the server checks it
  }
}
