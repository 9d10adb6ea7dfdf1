import { Validator } from '@cfworker/json-schema'

type Schema = Readonly<Record<string, unknown>>

const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2026-01-02T03:04:05Z',
  date: '2026-01-02',
  email: 'a@example.com',
  uri: 'https://example.com/a',
  uuid: '3b241101-e2bb-4255-8caf-4136c566a962',
}
/** Texts that most patterns of real APIs accept one of: names, numbers, versions, hashes, paths. */
const COMMON_TEXTS = [
  '1',
  '12345',
  'a1',
  'abc',
  'A',
  '1.0.0',
  'a-b',
  'a/b',
  'a:b',
  '/a',
  '#a0b1c2',
  '0'.repeat(40),
  '0'.repeat(64),
]
const DEEPEST = 12

/** No value is made for a pattern. */
export class NoSample extends Error {}

const objectOf = (value: unknown): Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {}

/** A value that a JSON Schema accepts, with required members only; good enough for schemas of real APIs. */
export const sampleOf = (schema: unknown, root: unknown = schema, depth = 0): unknown => {
  const { $ref, ...own } = objectOf(schema)
  if (typeof $ref === 'string' && depth < DEEPEST) return sampleOf({ ...resolve($ref, root), ...own }, root, depth + 1)
  if ('const' in own) return own.const
  if (Array.isArray(own.enum)) return own.enum.find(value => value !== null)
  const options = [own.oneOf, own.anyOf].find(each => Array.isArray(each)) as unknown[] | undefined
  const first = options?.find(each => objectOf(each).type !== 'null')
  if (options && own.properties === undefined) {
    const samples = [first, ...options].flatMap(option => [option, withAllRequired(option, root)])
    const values = samples.map(sample => sampleOf(sample, root, depth + 1))
    return own.oneOf ? (values.find(value => isValid(own, root, value)) ?? values[0]) : values[0]
  }
  if (options) {
    const parts = [own, flatten(first, root)] // the options of an object often say what is required, only
    return sampleOf({ ...own, ...merged(parts), oneOf: undefined, anyOf: undefined }, root, depth + 1)
  }
  if (Array.isArray(own.allOf)) {
    const parts = own.allOf.map(part => flatten(part, root))
    return sampleOf({ ...own, ...Object.assign({}, ...parts), ...merged(parts), allOf: undefined }, root, depth + 1)
  }
  const types = Array.isArray(own.type) ? own.type.filter(type => type !== 'null') : [own.type]
  switch (types[0] ?? (own.properties ? 'object' : own.items ? 'array' : 'string')) {
    case 'object': {
      const properties = objectOf(own.properties)
      const required = (Array.isArray(own.required) ? own.required : []) as string[]
      if (depth > DEEPEST) return {}
      const members = required.map(name => [name, sampleOf(properties[name] ?? {}, root, depth + 1)])
      return Object.fromEntries(members)
    }
    case 'array':
      return sampleList(own, root, depth)
    case 'integer':
    case 'number':
      return Math.max(Number(own.minimum ?? 1), 1)
    case 'boolean':
      return true
    default: {
      const text = (FORMATS[String(own.format)] ?? 'a').padEnd(Number(own.minLength ?? 0), 'a')
      if (typeof own.pattern !== 'string') return text
      const pattern = new RegExp(own.pattern, 'u')
      const fits = (one: string): boolean =>
        pattern.test(one) &&
        one.length >= Number(own.minLength ?? 0) &&
        one.length <= Number(own.maxLength ?? one.length)
      const found = [text, ...COMMON_TEXTS].find(fits)
      if (found === undefined) throw new NoSample(own.pattern)
      return found
    }
  }
}

const sampleList = ({ items = {}, minItems = 0, uniqueItems }: Schema, root: unknown, depth: number): unknown[] => {
  const least = Number(minItems)
  if (least === 0) return []
  const item = sampleOf(items, root, depth + 1)
  if (uniqueItems !== true) return Array.from({ length: least }, () => item)
  const others = [item, ...COMMON_TEXTS, 1, 2, 3].filter(value => isValid(objectOf(items), root, value))
  return [...new Set(others)].slice(0, least)
}

const withAllRequired = (schema: unknown, root: unknown): Schema => {
  const flat = flatten(schema, root)
  return { ...flat, required: Object.keys(objectOf(flat.properties)) }
}

const isValid = (schema: Schema, root: unknown, value: unknown): boolean => {
  const { $defs = {} } = objectOf(root)
  return new Validator({ ...schema, $defs }, '2020-12', true).validate(value).valid
}

const resolve = (ref: string, root: unknown): Schema =>
  objectOf(
    ref
      .replace(/^#\/?/, '')
      .split('/')
      .reduce<unknown>(
        (value, step) => objectOf(value)[decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')],
        root,
      ),
  )

const flatten = (schema: unknown, root: unknown): Schema => {
  const { $ref, ...own } = objectOf(schema)
  return typeof $ref === 'string' ? { ...resolve($ref, root), ...own } : own
}

const merged = (parts: readonly Schema[]): Schema => ({
  properties: Object.assign({}, ...parts.map(({ properties }) => objectOf(properties))),
  required: parts.flatMap(({ required }) => (Array.isArray(required) ? required : [])),
})
