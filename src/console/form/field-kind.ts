import { isSameJson, stringifyExact } from '../exact-json.ts'
import { isObject, type JsonObject } from '../mcp/messages.ts'
import { isMembers, pathKey, type ValuePath } from './form-value.ts'
import { mergeSchemas, resolveSchema, type SchemaRoot } from './resolve-schema.ts'
import { type ChosenBranches, conditionBranch, constantOf, fits, validate } from './validate.ts'

export interface FieldOption {
  readonly value: unknown
  readonly label: string
}

export interface FieldBranch {
  readonly label: string
  readonly schema: JsonObject
}

/** How a place of a form is shown. */
export interface FieldShape {
  readonly kind: 'text' | 'number' | 'boolean' | 'options' | 'several' | 'object' | 'list' | 'choice' | 'fixed' | 'json'
  readonly schema: JsonObject // references followed, without null
  readonly isNullable: boolean
  readonly options?: readonly FieldOption[] | undefined // of options and several
  readonly branches?: readonly FieldBranch[] | undefined // of choice
  readonly note?: string | undefined // why there is only a field for JSON
}

/** Finds how to show a place of the form. The value decides between conditions. */
export const fieldShape = (given: unknown, root: SchemaRoot, value: unknown): FieldShape => {
  const { schema: resolved, unresolved } = resolveSchema(given, root)
  if (unresolved !== undefined)
    return { kind: 'json', schema: resolved, isNullable: false, note: `The schema refers to ${unresolved}` }
  const conditional = conditionBranch(resolved, condition => fits(condition, value ?? {}, root))
  const applied = isObject(conditional)
    ? mergeSchemas(withoutKeywords(resolved, 'if', 'then', 'else'), resolveSchema(conditional, root).schema)
    : resolved
  return shapeOf(applied, root)
}

const withoutKeywords = (schema: JsonObject, ...keywords: string[]): JsonObject =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => !keywords.includes(keyword)))

const MOST_STEPS = 20 // an alternative that is the only one may lead to itself

const shapeOf = (given: JsonObject, root: SchemaRoot, steps = 0): FieldShape => {
  if (steps > MOST_STEPS) return { kind: 'json', schema: {}, isNullable: false, note: 'The schema refers to itself' }
  const { schema: typed, isNullable: hasNullType } = withoutNull(given)
  const keyword = Array.isArray(typed.oneOf) ? 'oneOf' : Array.isArray(typed.anyOf) ? 'anyOf' : undefined
  if (keyword === undefined) return plainShape(typed, hasNullType, root, steps)

  const all = (typed[keyword] as unknown[]).map(branch => resolveSchema(branch, root).schema)
  const branches = all.filter(branch => !isNull(branch))
  const isNullable = hasNullType || branches.length < all.length
  const base = withoutKeywords(typed, keyword)
  const options = branches.flatMap(branch => optionOf(branch))
  if (branches.length > 0 && options.length === branches.length)
    return { kind: 'options', schema: base, isNullable, options }
  if (branches.length === 1) {
    const inner = shapeOf(mergeSchemas(base, branches[0] ?? {}), root, steps + 1)
    return { ...inner, isNullable: isNullable || inner.isNullable }
  }
  // Alternatives that only say what is required or forbidden have no fields of their own: the validation knows them.
  if (branches.every(branch => !hasStructure(branch)))
    return { ...plainShape(base, isNullable, root, steps), schema: typed }
  const isExact = typed.additionalProperties === false
  const merged = branches.map((branch, at) => ({
    label: branchLabel(branch, at, root),
    schema: mergeSchemas(isExact ? withoutKeywords(base, 'additionalProperties') : base, branch),
  }))
  return { kind: 'choice', schema: base, isNullable, branches: merged }
}

const isNull = (schema: JsonObject): boolean => schema.type === 'null' || schema.const === null

const withoutNull = (schema: JsonObject): { readonly schema: JsonObject; readonly isNullable: boolean } => {
  if (schema.nullable === true) return { schema: withoutKeywords(schema, 'nullable'), isNullable: true } // OpenAPI 3.0
  if (!Array.isArray(schema.type) || !schema.type.includes('null')) return { schema, isNullable: false }
  const types = schema.type.filter(type => type !== 'null')
  return { schema: { ...schema, type: types.length === 1 ? types[0] : types }, isNullable: true }
}

const optionOf = (schema: JsonObject): FieldOption[] => {
  const [value, ...more] = constantOf(schema)
  if (value === undefined || more.length > 0 || isMembers(value)) return []
  return [{ value, label: typeof schema.title === 'string' ? schema.title : optionLabel(value) }]
}

const optionLabel = (value: unknown): string => (typeof value === 'string' ? value : stringifyExact(value))

const STRUCTURE = ['type', 'properties', 'items', 'prefixItems', 'enum', 'const', 'anyOf', 'oneOf', 'patternProperties']
const hasStructure = (schema: JsonObject): boolean =>
  STRUCTURE.some(keyword => schema[keyword] !== undefined && (keyword !== 'type' || schema.type !== 'object'))

/** The title, or what tells it apart: the constant of a member, the names of members, the type. */
const branchLabel = (schema: JsonObject, at: number, root: SchemaRoot): string => {
  if (typeof schema.title === 'string' && schema.title !== '') return schema.title
  const properties = Object.entries(isObject(schema.properties) ? schema.properties : {})
  for (const [name, property] of properties) {
    const [constant] = constantOf(resolveSchema(property, root).schema)
    if (constant !== undefined) return `${name}: ${optionLabel(constant)}`
  }
  const [constant] = constantOf(schema)
  if (constant !== undefined) return optionLabel(constant)
  if (properties.length > 0)
    return properties
      .map(([name]) => name)
      .slice(0, 3)
      .join(', ')
  const type = typeof schema.type === 'string' ? (LABELS[schema.type] ?? schema.type) : undefined
  return typeof schema.format === 'string' ? schema.format : (type ?? `Alternative ${at + 1}`)
}

const LABELS: Readonly<Record<string, string>> = { string: 'text', array: 'list' }

const plainShape = (schema: JsonObject, isNullable: boolean, root: SchemaRoot, steps: number): FieldShape => {
  const { type } = schema
  if (Array.isArray(schema.enum)) return optionsShape(schema, schema.enum, isNullable)
  if (schema.const !== undefined) return { kind: 'fixed', schema, isNullable }
  if (Array.isArray(type)) {
    const branches = type
      .filter(each => typeof each === 'string')
      .map(each => ({ label: LABELS[each] ?? each, schema: { ...schema, type: each } }))
    return { kind: 'choice', schema, isNullable, branches }
  }
  if (type === 'object' || (type === undefined && isObject(schema.properties)))
    return { kind: 'object', schema, isNullable }
  if (type === 'array' || (type === undefined && schema.items !== undefined))
    return listShape(schema, isNullable, root, steps)
  if (type === 'string' || (type === undefined && (schema.pattern ?? schema.minLength ?? schema.format) !== undefined))
    return { kind: 'text', schema, isNullable }
  if (type === 'number' || type === 'integer') return { kind: 'number', schema, isNullable }
  if (type === 'boolean') return { kind: 'boolean', schema, isNullable }
  if (type === 'null') return { kind: 'fixed', schema: { ...schema, const: null }, isNullable: false }
  return { kind: 'json', schema, isNullable }
}

const optionsShape = (schema: JsonObject, values: readonly unknown[], isNullable: boolean): FieldShape => {
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : []
  const options = values.map((value, at) => ({
    value,
    label: typeof names[at] === 'string' ? names[at] : optionLabel(value),
  }))
  const [only] = options
  if (options.length === 1 && only) return { kind: 'fixed', schema: { ...schema, const: only.value }, isNullable }
  return {
    kind: 'options',
    schema,
    isNullable,
    options: options.filter(({ value }) => !(isNullable && value === null)),
  }
}

const MOST_BOXES = 24

/** A list of which each item is one of few constants is shown as boxes to check. */
const listShape = (schema: JsonObject, isNullable: boolean, root: SchemaRoot, steps: number): FieldShape => {
  const items = isObject(schema.items) ? shapeOf(resolveSchema(schema.items, root).schema, root, steps + 1) : undefined
  const isTuple = Array.isArray(schema.prefixItems) || Array.isArray(schema.items)
  if (items?.kind === 'options' && !isTuple && (items.options?.length ?? 0) <= MOST_BOXES)
    return { kind: 'several', schema, isNullable, options: items.options }
  return { kind: 'list', schema, isNullable }
}

/** The alternative that is shown: the chosen one, else the first that fits, else the one that comes closest. */
export const branchAt = (
  branches: readonly FieldBranch[],
  value: unknown,
  path: ValuePath,
  chosen: ChosenBranches,
  root: SchemaRoot,
): number => {
  const given = chosen.get(pathKey(path))
  if (given !== undefined && given < branches.length) return given
  if (value === undefined) return 0
  const counts = branches.map(({ schema }) => validate(schema, value, root).length)
  return counts.indexOf(Math.min(...counts))
}

export const optionIndex = (options: readonly FieldOption[], value: unknown): number =>
  options.findIndex(option => isSameJson(option.value, value))
