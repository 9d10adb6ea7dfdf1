import type { Plain, PlainObject } from '../../../wire/json/json.ts'
import { isObject, notDateText, readDate } from '../input-checks.ts'
import type { Instant } from '../model.ts'

/** The type of an argument: its schema, and how a given value is read. A fault is recorded at its place. */
export interface ArgumentType<T> {
  readonly schema: PlainObject
  readonly read: (given: unknown, place: Place) => T
}

/** Where a value stands among the arguments, and what was found wrong with them so far. */
export interface Place {
  readonly path: string
  readonly faults: string[]
  readonly warnings: string[] // about what was ignored
}

type Members = Readonly<Record<string, unknown>>

/** A required argument, or one with a default. */
export type Argument<T> = { readonly type: ArgumentType<T>; readonly description?: string | undefined } & (
  | { readonly required: true }
  | { readonly required: false; readonly fallback: T }
)

export type Arguments = Readonly<Record<string, Argument<unknown>>>

export type Values<A extends Arguments> = {
  readonly [K in keyof A]: A[K] extends Argument<infer T> ? T : never
}

/** Records a fault; `type` is named as Pydantic does, which clients of the contract know. */
const fault = ({ path, faults }: Place, type: string, message: string): never => {
  faults.push(`${path}\n  ${message} [type=${type}]`)
  return undefined as never // the value is never used
}

export const textArgument: ArgumentType<string> = {
  schema: { type: 'string' },
  read: (given, place) =>
    typeof given === 'string' ? given : fault(place, 'string_type', 'Input should be a valid string'),
}

/** A text that is not blank, of at most that many characters. */
export const boundedText = (most: number): ArgumentType<string> => ({
  schema: { type: 'string' },
  read: (given, place) => {
    if (typeof given !== 'string' || given.trim() === '')
      return fault(place, 'string_type', 'Input should be a string that is not blank')
    const length = `Input has ${given.length} characters; at most ${most} fit, a longer text belongs in episode_body`
    return given.length > most ? fault(place, 'string_too_long', length) : given
  },
})

export const dateArgument: ArgumentType<Instant> = {
  schema: { type: 'string', description: 'ISO 8601' },
  read: (given, place) => readDate(String(given)) ?? fault(place, 'datetime_parsing', notDateText(String(given))),
}

/** A number from 0 to 1. */
export const shareArgument: ArgumentType<number> = {
  schema: { type: 'number', minimum: 0, maximum: 1 },
  read: (given, place) =>
    typeof given === 'number' && given >= 0 && given <= 1
      ? given
      : fault(place, 'float_type', 'Input should be a number from 0 to 1'),
}

export const objectArgument: ArgumentType<Members> = {
  schema: { type: 'object', additionalProperties: true },
  read: (given, place) => (isObject(given) ? given : fault(place, 'dict_type', 'Input should be an object')),
}

/** Whole numbers; "5" and 5.0 are read as 5. */
export const integer: ArgumentType<number> = {
  schema: { type: 'integer' },
  read: (given, place) => {
    const number = typeof given === 'string' && given.trim() !== '' ? Number(given) : given
    if (typeof number === 'boolean') return number ? 1 : 0
    if (typeof number !== 'number' || Number.isNaN(number))
      return fault(place, 'int_parsing', 'Input should be a valid integer, unable to parse string as an integer')
    return Number.isSafeInteger(number)
      ? number
      : fault(place, 'int_from_float', 'Input should be a valid integer, got a number with a fractional part')
  },
}

const TRUTHS: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ...['true', 't', 'yes', 'y', 'on', '1', 1, true].map(word => [word, true] as const),
  ...['false', 'f', 'no', 'n', 'off', '0', 0, false].map(word => [word, false] as const),
])

export const flagArgument: ArgumentType<boolean> = {
  schema: { type: 'boolean' },
  read: (given, place) =>
    TRUTHS.get(typeof given === 'string' ? given.toLowerCase() : given) ??
    fault(place, 'bool_parsing', 'Input should be a valid boolean, unable to interpret input'),
}

/** A list, or such a list as JSON text. */
export const listArgument = <T>(
  type: ArgumentType<T>,
  what: string,
  most = Number.POSITIVE_INFINITY,
): ArgumentType<readonly T[]> => ({
  schema: { type: 'array', items: type.schema },
  read: (given, place) => {
    const list = parseText(given)
    if (!Array.isArray(list)) return fault(place, 'list_type', `Input should be a valid list of ${what}`)
    if (list.length > most)
      return fault(
        place,
        'too_long',
        `${list.length} ${what} are too many for one call; at most ${most} fit, split them`,
      )
    return list.map((item, at) => type.read(item, { ...place, path: `${place.path}[${at}]` }))
  },
})

export const texts = listArgument(textArgument, 'strings')

/** One group or several: a string, a list, or a list as JSON text. */
export const groups: ArgumentType<readonly string[] | undefined> = {
  schema: { anyOf: [textArgument.schema, texts.schema, { type: 'null' }] },
  read: (given, place) => {
    const list = parseText(given)
    if (list === null || list === undefined) return undefined
    return typeof given === 'string' && !Array.isArray(list) ? [given] : texts.read(list, place)
  },
}

/** The same, or null, which means absent. */
export const maybe = <T>(type: ArgumentType<T>): ArgumentType<T | undefined> => ({
  schema: { anyOf: [type.schema, { type: 'null' }] },
  read: (given, place) => (given === null || given === undefined ? undefined : type.read(given, place)),
})

/** An object with these members. Unknown ones are ignored with a warning; an alias is another name of a member. */
export const record = <A extends Arguments>(
  members: A,
  aliases: Readonly<Record<string, string>> = {},
): ArgumentType<Values<A>> => ({
  schema: schemaOf(members, false),
  read: (given, place) => {
    if (!isObject(given)) return fault(place, 'dict_type', 'Input should be an object')
    const named: Record<string, unknown> = {}
    for (const [key, value] of Object.entries(given)) {
      const name = aliases[key] ?? key
      const path = `${place.path}.${key}`
      if (!Object.hasOwn(members, name))
        place.warnings.push(`${path} is unknown and was ignored; known are ${Object.keys(members).join(', ')}`)
      else if (name !== key && given[name] != null)
        fault({ ...place, path }, 'ambiguous', `Input should not be given beside ${name}, which means the same`)
      else named[name] = value
    }
    return readMembers(members, named, place, `${place.path}.`)
  },
})

/** Some clients send lists and objects as JSON text. */
const parseText = (given: unknown): unknown => {
  if (typeof given !== 'string') return given
  try {
    return JSON.parse(given)
  } catch {
    return given
  }
}

export const required = <T>(type: ArgumentType<T>, description?: string): Argument<T> => ({
  type,
  required: true,
  description,
})

export const optional = <T>(type: ArgumentType<T>, fallback: T, description?: string): Argument<T> => ({
  type,
  required: false,
  fallback,
  description,
})

export const optionalText = (description: string) => optional(maybe(textArgument), undefined, description)

/** A member of an object that may be absent or null; its schema does not mention the null. */
export const member = <T>(type: ArgumentType<T>, description?: string): Argument<T | undefined> =>
  optional({ ...maybe(type), schema: type.schema }, undefined, description)

export const GROUP_IDS = optional(groups, undefined, 'A group or a list of groups; the default group when absent')

/** The schema of an object with these members. */
export const schemaOf = (args: Arguments, showsDefaults = true): PlainObject => {
  const needed = Object.entries(args).flatMap(([name, arg]) => (arg.required ? [name] : []))
  const propertyOf = (arg: Argument<unknown>): PlainObject => ({
    ...arg.type.schema,
    ...(!arg.required && showsDefaults && { default: (arg.fallback ?? null) as Plain }),
    ...(arg.description && { description: arg.description }),
  })
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(args).map(([name, arg]) => [name, propertyOf(arg)])),
    ...(needed.length > 0 && { required: needed }),
  }
}

const readMembers = <A extends Arguments>(args: A, given: Members, place: Place, prefix = ''): Values<A> => {
  const read = (name: string, arg: Argument<unknown>): unknown => {
    const at = { ...place, path: `${prefix}${name}` }
    if (Object.hasOwn(given, name)) return arg.type.read(given[name], at)
    return arg.required ? fault(at, 'missing', 'Field required') : arg.fallback
  }
  return Object.fromEntries(Object.entries(args).map(([name, arg]) => [name, read(name, arg)])) as Values<A>
}

/** Reads the given arguments. Unknown ones are ignored; the error names all invalid ones. */
export const readArguments = <A extends Arguments>(
  tool: string,
  args: A,
  given: Members,
): { readonly values: Values<A>; readonly warnings: readonly string[] } => {
  const place: Place = { path: '', faults: [], warnings: [] }
  const values = readMembers(args, given, place)
  if (place.faults.length > 0) throw new ArgumentsError(tool, place.faults)
  return { values, warnings: place.warnings }
}

/** The arguments are invalid; the message has the form that clients of the contract know. */
export class ArgumentsError extends Error {
  constructor(tool: string, faults: readonly string[]) {
    const count = `${faults.length} validation error${faults.length === 1 ? '' : 's'}`
    super(`Error executing tool ${tool}: ${count} for ${tool}Arguments\n${faults.join('\n')}`)
    this.name = 'ArgumentsError'
  }
}
