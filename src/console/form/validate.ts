import { ExactNumber, isSameJson, stringifyExact } from '../exact-json.ts'
import { isObject, type JsonObject } from '../mcp/messages.ts'
import { InvalidText, isMembers, pathKey, type ValuePath } from './form-value.ts'
import { textFormat } from './formats.ts'
import { resolveSchema, type SchemaRoot, THEN } from './resolve-schema.ts'
import { PatternBudget, testPattern } from './safe-pattern.ts'

/** What is wrong with a value, and where. `missing`: a required member is not there, which is no news before the user is done. */
export interface SchemaProblem {
  readonly path: ValuePath
  readonly message: string
  readonly isMissing?: boolean
}

/** The alternative of `oneOf` or `anyOf` that the user has chosen at a place, by its JSON pointer. */
export type ChosenBranches = ReadonlyMap<string, number>

const MOST_STEPS = 20_000
const MOST_PROBLEMS = 100
const DEEPEST = 100

/** Checks a value against the keywords of JSON Schema 2020-12 and draft 7 that the form knows. */
export const validate = (
  schema: unknown,
  value: unknown,
  root: SchemaRoot,
  chosen: ChosenBranches = new Map(),
): readonly SchemaProblem[] => new Validation(root, chosen).check(schema, value, [])

/** Whether a value fits a schema, as far as that is checked here. */
export const fits = (schema: unknown, value: unknown, root: SchemaRoot): boolean =>
  validate(schema, value, root).length === 0

class Validation {
  readonly #root: SchemaRoot
  readonly #chosen: ChosenBranches
  readonly #patterns = new PatternBudget()
  #steps = 0
  #depth = 0

  constructor(root: SchemaRoot, chosen: ChosenBranches) {
    this.#root = root
    this.#chosen = chosen
  }

  check(given: unknown, value: unknown, path: ValuePath): SchemaProblem[] {
    if (++this.#steps > MOST_STEPS || value === undefined) return []
    if (value instanceof InvalidText) return [{ path, message: value.problem }]
    if (this.#depth >= DEEPEST) return []
    const { schema } = resolveSchema(given, this.#root)
    const wrongType = checkType(schema, value)
    if (wrongType !== undefined) return [{ path, message: wrongType }]
    this.#depth++
    const problems = [
      ...checkPlain(schema, value, this.#patterns).map(message => ({ path, message })),
      ...(isMembers(value) ? this.#members(schema, value, path) : []),
      ...(Array.isArray(value) ? this.#items(schema, value, path) : []),
      ...this.#combined(schema, value, path),
    ]
    this.#depth--
    return problems.slice(0, MOST_PROBLEMS)
  }

  #members(schema: JsonObject, value: JsonObject, path: ValuePath): SchemaProblem[] {
    const properties = isObject(schema.properties) ? schema.properties : {}
    const missing = requiredNames(schema, value)
      .filter(name => value[name] === undefined || !Object.hasOwn(value, name))
      .map(name => ({ path: [...path, name], message: 'Required', isMissing: true }))
    const names = Object.keys(value)
    const inner = names.flatMap((name): SchemaProblem[] => {
      const at = [...path, name]
      const own = memberSchemas(schema, properties, name, this.#patterns)
      const wrongName = isObject(schema.propertyNames)
        ? this.check(schema.propertyNames, name, at).map(problem => ({
            ...problem,
            message: `Name: ${problem.message}`,
          }))
        : []
      if (own.length > 0) return [...wrongName, ...own.flatMap(each => this.check(each, value[name], at))]
      if (schema.additionalProperties === false) return [...wrongName, { path: at, message: 'Not allowed here' }]
      return [...wrongName, ...this.check(schema.additionalProperties ?? true, value[name], at)]
    })
    return [
      ...missing,
      ...inner,
      ...countProblems(names.length, schema.minProperties, schema.maxProperties, 'member', path),
    ]
  }

  #items(schema: JsonObject, items: readonly unknown[], path: ValuePath): SchemaProblem[] {
    const inner = [...items].flatMap((item, at) => {
      if (item === undefined) return [{ path: [...path, at], message: 'Required', isMissing: true }]
      return this.check(itemSchema(schema, at), item, [...path, at])
    })
    const counted = countProblems(items.length, schema.minItems, schema.maxItems, 'item', path)
    const twice = schema.uniqueItems === true ? repeatedAt(items) : -1
    const repeated = twice < 0 ? [] : [{ path: [...path, twice], message: 'The same item occurs twice' }]
    const holds = (item: unknown): boolean => this.check(schema.contains, item, path).length === 0
    const found = schema.contains === undefined ? 1 : items.filter(holds).length
    const lacks =
      found < Number(schema.minContains ?? 1) ? [{ path, message: 'No item is of the kind that is needed' }] : []
    return [...inner, ...counted, ...repeated, ...lacks]
  }

  /** allOf (what could not be merged), anyOf, oneOf, not, if. */
  #combined(schema: JsonObject, value: unknown, path: ValuePath): SchemaProblem[] {
    const problems: SchemaProblem[] = []
    for (const each of listOf(schema.allOf)) problems.push(...this.check(each, value, path))
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const branches = listOf(schema[keyword])
      if (branches.length > 0) problems.push(...this.#alternatives(branches, keyword, value, path))
    }
    if (schema.not !== undefined && this.check(schema.not, value, path).length === 0)
      problems.push({ path, message: 'This value is not allowed' })
    const branch = conditionBranch(schema, condition => this.check(condition, value, path).length === 0)
    if (branch !== undefined) problems.push(...this.check(branch, value, path))
    if (isMembers(value))
      for (const [name, needed] of Object.entries(dependents(schema)))
        if (Object.hasOwn(value, name) && !Array.isArray(needed)) problems.push(...this.check(needed, value, path))
    return problems
  }

  #alternatives(branches: readonly unknown[], keyword: string, value: unknown, path: ValuePath): SchemaProblem[] {
    const results = branches.map(branch => this.check(branch, value, path))
    const valid = results.filter(problems => problems.length === 0).length
    if (keyword === 'oneOf' && valid > 1)
      return [{ path, message: `Fits ${valid} of the alternatives; it must fit one` }]
    if (valid > 0) return []
    const chosen = results[this.#chosen.get(pathKey(path)) ?? -1]
    if (chosen) return chosen
    const constants = branches.flatMap(branch => constantOf(resolveSchema(branch, this.#root).schema))
    if (constants.length === branches.length) return [{ path, message: oneOfMessage(constants) }]
    // The alternative that comes closest tells most.
    return results.toSorted((a, b) => a.length - b.length)[0] ?? []
  }
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: value => typeof value === 'string',
  number: value => typeof value === 'number' || value instanceof ExactNumber,
  integer: isInteger,
  boolean: value => typeof value === 'boolean',
  object: isMembers,
  array: Array.isArray,
  null: value => value === null,
}

function isInteger(value: unknown): boolean {
  if (value instanceof ExactNumber) return /^-?\d+(\.0+)?$/.test(value.text)
  return Number.isInteger(value)
}

const checkType = ({ type }: JsonObject, value: unknown): string | undefined => {
  const names = (Array.isArray(type) ? type : [type]).filter(name => typeof name === 'string')
  if (names.length === 0 || names.some(name => TYPES[name]?.(value) ?? true)) return undefined
  return `Expected ${names.map(name => TYPE_NAMES[name] ?? name).join(' or ')}`
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
}

const checkPlain = (schema: JsonObject, value: unknown, patterns: PatternBudget): string[] => {
  const allowed = schema.enum
  const problems: string[] = []
  if (Array.isArray(allowed) && !allowed.some(each => isSameJson(each, value))) problems.push(oneOfMessage(allowed))
  if (schema.const !== undefined && !isSameJson(schema.const, value))
    problems.push(`Must be ${stringifyExact(schema.const)}`)
  if (typeof value === 'string') problems.push(...checkText(schema, value, patterns))
  if (typeof value === 'number' || value instanceof ExactNumber) problems.push(...checkNumber(schema, value))
  return problems
}

const checkText = (schema: JsonObject, text: string, patterns: PatternBudget): string[] => {
  const problems: string[] = []
  const { minLength, maxLength, pattern, format } = schema
  const length = [...text].length
  if (typeof minLength === 'number' && length < minLength)
    problems.push(minLength === 1 ? 'Must not be empty' : `At least ${minLength} characters, this has ${length}`)
  if (typeof maxLength === 'number' && length > maxLength)
    problems.push(`At most ${maxLength} characters, this has ${length}`)
  if (typeof pattern === 'string' && testPattern(pattern, text, patterns) === false)
    problems.push(`Must match the pattern ${pattern}`)
  const known = textFormat(format)
  if (known && !known.isValid(text)) problems.push(`Expected ${String(format)}, such as ${known.expected}`)
  return problems
}

/** Whole numbers are compared exactly; others as far as a double can. */
const comparable = (value: unknown): bigint | number =>
  value instanceof ExactNumber && /^-?\d+$/.test(value.text) ? BigInt(value.text) : Number(value)

const checkNumber = (schema: JsonObject, value: number | ExactNumber): string[] => {
  const number = comparable(value)
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  const isBound = (bound: unknown): boolean => typeof bound === 'number' || bound instanceof ExactNumber
  const above = exclusiveMinimum === true ? minimum : exclusiveMinimum // draft 4
  const below = exclusiveMaximum === true ? maximum : exclusiveMaximum
  if (isBound(above) && number <= comparable(above)) return [`Must be more than ${above}`]
  if (isBound(below) && number >= comparable(below)) return [`Must be less than ${below}`]
  if (isBound(minimum) && number < comparable(minimum)) return [`Must be at least ${minimum}`]
  if (isBound(maximum) && number > comparable(maximum)) return [`Must be at most ${maximum}`]
  if (typeof multipleOf === 'number' && multipleOf > 0 && !isMultiple(number, multipleOf))
    return [`Must be a multiple of ${multipleOf}`]
  return []
}

/** 0.3 is a multiple of 0.1, although the rest of the division is not zero. */
const isMultiple = (number: bigint | number, of: number): boolean => {
  if (typeof number === 'bigint') return Number.isInteger(of) ? number % BigInt(of) === 0n : true
  const ratio = number / of
  return Math.abs(ratio - Math.round(ratio)) < 1e-9 * Math.max(1, Math.abs(ratio))
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const oneOfMessage = (allowed: readonly unknown[]): string => {
  const shown = allowed.slice(0, 10).map(each => stringifyExact(each))
  return `Must be one of ${shown.join(', ')}${allowed.length > shown.length ? ', …' : ''}`
}

export const constantOf = (schema: JsonObject): readonly unknown[] =>
  schema.const !== undefined
    ? [schema.const]
    : Array.isArray(schema.enum) && schema.enum.length === 1
      ? [schema.enum[0]]
      : []

const dependents = (schema: JsonObject): JsonObject => ({
  ...(isObject(schema.dependencies) ? schema.dependencies : {}), // draft 7
  ...(isObject(schema.dependentSchemas) ? schema.dependentSchemas : {}),
  ...(isObject(schema.dependentRequired) ? schema.dependentRequired : {}),
})

/** The members that must be there, given those that are. */
export const requiredNames = (schema: JsonObject, value: unknown): readonly string[] => {
  const needed = isMembers(value)
    ? Object.entries(dependents(schema)).flatMap(([name, names]) => (Object.hasOwn(value, name) ? listOf(names) : []))
    : []
  return [...new Set([...listOf(schema.required), ...needed])].filter(name => typeof name === 'string')
}

/** The schemas of a member: its own, and those of patterns that its name matches. */
export const memberSchemas = (
  schema: JsonObject,
  properties: JsonObject,
  name: string,
  budget = new PatternBudget(),
): readonly unknown[] => {
  const own = Object.hasOwn(properties, name) ? [properties[name]] : []
  const patterns = isObject(schema.patternProperties) ? Object.entries(schema.patternProperties) : []
  return [...own, ...patterns.flatMap(([pattern, each]) => (testPattern(pattern, name, budget) ? [each] : []))]
}

/** `prefixItems` with `items` for the rest; draft 7 has a list in `items` and `additionalItems`. */
export const itemSchema = ({ prefixItems, items, additionalItems }: JsonObject, at: number): unknown => {
  const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : []
  if (at < first.length) return first[at]
  return (Array.isArray(items) ? additionalItems : items) ?? true
}

/** `then` or `else`, by the condition. */
export const conditionBranch = (schema: JsonObject, holds: (condition: unknown) => boolean): unknown =>
  schema.if === undefined ? undefined : holds(schema.if) ? schema[THEN] : schema.else

const countProblems = (
  count: number,
  least: unknown,
  most: unknown,
  noun: string,
  path: ValuePath,
): SchemaProblem[] => {
  if (typeof least === 'number' && count < least)
    return [{ path, message: `At least ${least} ${noun}${least === 1 ? '' : 's'}, this has ${count}` }]
  if (typeof most === 'number' && count > most)
    return [{ path, message: `At most ${most} ${noun}${most === 1 ? '' : 's'}, this has ${count}` }]
  return []
}

const repeatedAt = (items: readonly unknown[]): number => {
  const seen = new Set<string>()
  return items.findIndex(item => {
    const text = stringifyExact(item)
    const isRepeated = seen.has(text)
    seen.add(text)
    return isRepeated
  })
}
