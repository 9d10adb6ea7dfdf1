import type { Plain, PlainObject } from '../../../wire/json/json.ts'

/** The type of an argument: its schema, and how a given value is read. */
export interface ArgumentType<T> {
  readonly schema: PlainObject
  readonly read: (given: unknown) => { readonly value: T } | Fault
}

interface Fault {
  readonly type: string // as Pydantic names it, which clients of the contract know
  readonly message: string
}

/** A required argument, or one with a default. */
export type Argument<T> = { readonly type: ArgumentType<T>; readonly description: string } & (
  | { readonly required: true }
  | { readonly required: false; readonly fallback: T }
)

export type Arguments = Readonly<Record<string, Argument<unknown>>>

export type Values<A extends Arguments> = {
  readonly [K in keyof A]: A[K] extends Argument<infer T> ? T : never
}

const ok = <T>(value: T) => ({ value })
const fault = (type: string, message: string): Fault => ({ type, message })

export const textArgument: ArgumentType<string> = {
  schema: { type: 'string' },
  read: given => (typeof given === 'string' ? ok(given) : fault('string_type', 'Input should be a valid string')),
}

/** Whole numbers; "5" and 5.0 are read as 5. */
export const integer: ArgumentType<number> = {
  schema: { type: 'integer' },
  read: given => {
    const number = typeof given === 'string' && given.trim() !== '' ? Number(given) : given
    if (typeof number === 'boolean') return ok(number ? 1 : 0)
    if (typeof number !== 'number' || Number.isNaN(number))
      return fault('int_parsing', 'Input should be a valid integer, unable to parse string as an integer')
    return Number.isSafeInteger(number)
      ? ok(number)
      : fault('int_from_float', 'Input should be a valid integer, got a number with a fractional part')
  },
}

const TRUTHS: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ...['true', 't', 'yes', 'y', 'on', '1', 1, true].map(word => [word, true] as const),
  ...['false', 'f', 'no', 'n', 'off', '0', 0, false].map(word => [word, false] as const),
])

export const flagArgument: ArgumentType<boolean> = {
  schema: { type: 'boolean' },
  read: given => {
    const truth = TRUTHS.get(typeof given === 'string' ? given.toLowerCase() : given)
    return truth === undefined
      ? fault('bool_parsing', 'Input should be a valid boolean, unable to interpret input')
      : ok(truth)
  },
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string')

/** A list of strings, or such a list as JSON text. */
export const texts: ArgumentType<readonly string[]> = {
  schema: { type: 'array', items: { type: 'string' } },
  read: given => {
    const list = parseText(given)
    return isTexts(list) ? ok(list) : fault('list_type', 'Input should be a valid list of strings')
  },
}

/** One group or several: a string, a list, or a list as JSON text. */
export const groups: ArgumentType<readonly string[] | undefined> = {
  schema: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }, { type: 'null' }] },
  read: given => {
    const list = parseText(given)
    if (list === null || list === undefined) return ok(undefined)
    if (typeof given === 'string' && !Array.isArray(list)) return ok([given])
    return isTexts(list) ? ok(list) : fault('list_type', 'Input should be a string or a list of strings')
  },
}

/** A list of objects; the tool checks their members. */
export const objects = (items: PlainObject): ArgumentType<readonly Readonly<Record<string, unknown>>[]> => ({
  schema: { type: 'array', items },
  read: given => {
    const list = parseText(given)
    const isFine =
      Array.isArray(list) && list.every(item => typeof item === 'object' && item !== null && !Array.isArray(item))
    return isFine ? ok(list) : fault('list_type', 'Input should be a valid list of objects')
  },
})

/** The same, or null, which means absent. */
export const maybe = <T>(type: ArgumentType<T>): ArgumentType<T | undefined> => ({
  schema: { anyOf: [type.schema, { type: 'null' }] },
  read: given => (given === null || given === undefined ? ok(undefined) : type.read(given)),
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

export const required = <T>(type: ArgumentType<T>, description: string): Argument<T> => ({
  type,
  required: true,
  description,
})

export const optional = <T>(type: ArgumentType<T>, fallback: T, description: string): Argument<T> => ({
  type,
  required: false,
  fallback,
  description,
})

export const optionalText = (description: string) => optional(maybe(textArgument), undefined, description)

export const GROUP_IDS = optional(groups, undefined, 'A group or a list of groups; the default group when absent')

/** The input schema of a table of arguments. */
export const schemaOf = (args: Arguments): PlainObject => {
  const properties = Object.entries(args).map(([name, arg]) => [name, propertyOf(arg)] as const)
  const needed = Object.entries(args).flatMap(([name, arg]) => (arg.required ? [name] : []))
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(needed.length > 0 && { required: needed }),
  }
}

const propertyOf = (arg: Argument<unknown>): PlainObject => ({
  ...arg.type.schema,
  ...(!arg.required && { default: (arg.fallback ?? null) as Plain }),
  description: arg.description,
})

/** Reads the given arguments. Unknown ones are ignored; the error names all invalid ones. */
export const readArguments = <A extends Arguments>(
  tool: string,
  args: A,
  given: Readonly<Record<string, unknown>>,
): Values<A> => {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, arg] of Object.entries(args)) {
    const isGiven = Object.hasOwn(given, name)
    if (!isGiven && !arg.required) values[name] = arg.fallback
    else {
      const read = isGiven ? arg.type.read(given[name]) : fault('missing', 'Field required')
      if ('value' in read) values[name] = read.value
      else faults.push(`${name}\n  ${read.message} [type=${read.type}]`)
    }
  }
  if (faults.length > 0) throw new ArgumentsError(tool, faults)
  return values as Values<A>
}

/** The arguments are invalid; the message has the form that clients of the contract know. */
export class ArgumentsError extends Error {
  constructor(tool: string, faults: readonly string[]) {
    const count = `${faults.length} validation error${faults.length === 1 ? '' : 's'}`
    super(`Error executing tool ${tool}: ${count} for ${tool}Arguments\n${faults.join('\n')}`)
    this.name = 'ArgumentsError'
  }
}
