import type { Plain } from '../../wire/json/json.ts'

/** A JSON Schema for named arguments, written as an object literal. */
export interface ObjectSchema {
  readonly type: 'object'
  readonly [keyword: string]: Plain | undefined
}

type RequiredOf<S> = S extends { readonly required: readonly (infer R)[] } ? R : never

/** The type of the arguments a schema literal describes, by `properties`, `required`, `type` and `enum`. */
export type ArgumentsOf<S> = S extends { readonly properties: infer P }
  ? { readonly [K in keyof P as K extends RequiredOf<S> ? K : never]: ValueOf<P[K]> } & {
      readonly [K in keyof P as K extends RequiredOf<S> ? never : K]?: ValueOf<P[K]>
    }
  : Readonly<Record<string, unknown>>

type ValueOf<S> = S extends { readonly enum: readonly (infer E)[] }
  ? E
  : S extends { readonly type: 'string' }
    ? string
    : S extends { readonly type: 'number' | 'integer' }
      ? number
      : S extends { readonly type: 'boolean' }
        ? boolean
        : S extends { readonly type: 'array'; readonly items: infer I }
          ? readonly ValueOf<I>[]
          : S extends { readonly type: 'object' }
            ? ArgumentsOf<S>
            : unknown

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const member = (object: unknown, key: string): unknown =>
  isMembers(object) && Object.hasOwn(object, key) ? object[key] : undefined

const CHECKS = new Map<string, (value: unknown) => boolean>([
  ['string', value => typeof value === 'string'],
  ['number', value => typeof value === 'number'],
  ['integer', value => Number.isInteger(value)],
  ['boolean', value => typeof value === 'boolean'],
  ['object', isMembers],
  ['array', Array.isArray],
  ['null', value => value === null],
])

/**
 * Checks types, required and unknown members, and enums, at any depth. Composition, conditions and references are left
 * to the tool. Returns which argument is invalid and what was expected.
 */
export const checkArguments = (schema: unknown, args: unknown): string | undefined => check(schema, args, '')

const check = (schema: unknown, value: unknown, path: string): string | undefined =>
  checkType(schema, value, path) ??
  checkEnum(schema, value, path) ??
  (isMembers(value) ? checkMembers(schema, value, path) : undefined) ??
  (Array.isArray(value) ? checkItems(schema, value, path) : undefined)

const checkType = (schema: unknown, value: unknown, path: string): string | undefined => {
  const type = member(schema, 'type')
  const types = (Array.isArray(type) ? type : [type]).filter(name => typeof name === 'string')
  if (types.length === 0 || types.some(name => CHECKS.get(name)?.(value) ?? true)) return undefined
  return `${named(path)} must be of type ${types.join(' or ')}, not ${kindOf(value)}`
}

const checkEnum = (schema: unknown, value: unknown, path: string): string | undefined => {
  const allowed = member(schema, 'enum')
  if (!Array.isArray(allowed) || allowed.includes(value)) return undefined
  return `${named(path)} must be one of ${allowed.map(item => JSON.stringify(item)).join(', ')}`
}

const checkMembers = (schema: unknown, value: Members, path: string): string | undefined => {
  const properties = member(schema, 'properties')
  for (const name of listOf(member(schema, 'required')))
    if (!Object.hasOwn(value, name))
      return `${named(join(path, name))} is required${typeHint(member(properties, name))}`
  for (const [name, item] of Object.entries(value)) {
    const property = member(properties, name)
    if (property === undefined && member(schema, 'additionalProperties') === false)
      return `${named(join(path, name))} is unknown; expected one of ${Object.keys(properties ?? {}).join(', ') || 'none'}`
    const reason = check(property, item, join(path, name))
    if (reason) return reason
  }
  return undefined
}

const checkItems = (schema: unknown, values: readonly unknown[], path: string): string | undefined => {
  const items = member(schema, 'items')
  for (const [i, value] of values.entries()) {
    const reason = check(items, value, `${path}[${i}]`)
    if (reason) return reason
  }
  return undefined
}

const named = (path: string): string => (path ? `Argument "${path}"` : 'The arguments')
const join = (path: string, name: string): string => (path ? `${path}.${name}` : name)
const listOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter(item => typeof item === 'string') : []
const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)

const typeHint = (schema: unknown): string => {
  const type = member(schema, 'type')
  return typeof type === 'string' ? ` (${type})` : ''
}
