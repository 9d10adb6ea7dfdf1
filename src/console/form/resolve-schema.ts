import { isSameJson } from '../exact-json.ts'
import { isObject, type JsonObject } from '../mcp/messages.ts'

/** The document that references lead into. */
export interface SchemaRoot {
  readonly schema: unknown
  /** Places by anchor; made when the first anchor is looked up. */
  anchors?: ReadonlyMap<string, unknown> | undefined
}

const MOST_HOPS = 500 // references and parts of one place: a schema may refer to itself, and twice
const MOST_PLACES = 5000 // that are searched for anchors

/** A schema with its references followed and `allOf` merged. `unresolved` is a reference that leads nowhere here. */
export interface ResolvedSchema {
  readonly schema: JsonObject
  readonly unresolved?: string | undefined
}

const NEVER: JsonObject = { not: {} }

export const resolveSchema = (schema: unknown, root: SchemaRoot, walk = { hops: 0 }): ResolvedSchema => {
  if (schema === false) return { schema: NEVER }
  if (!isObject(schema)) return { schema: {} }
  if (++walk.hops > MOST_HOPS) return { schema: {}, unresolved: 'a reference to itself' }
  const { $ref, $dynamicRef, allOf, ...own } = schema
  const reference = typeof $ref === 'string' ? $ref : typeof $dynamicRef === 'string' ? $dynamicRef : undefined
  if (reference === undefined && !Array.isArray(allOf)) return { schema }
  let merged: ResolvedSchema = { schema: own }
  if (reference !== undefined) {
    const target = lookUp(reference, root)
    if (target === undefined) return { schema: own, unresolved: reference }
    merged = mergeResolved(resolveSchema(target, root, walk), merged)
  }
  for (const part of Array.isArray(allOf) ? allOf : []) merged = mergeResolved(merged, resolveSchema(part, root, walk))
  return merged
}

const mergeResolved = (a: ResolvedSchema, b: ResolvedSchema): ResolvedSchema => ({
  schema: mergeSchemas(a.schema, b.schema),
  unresolved: a.unresolved ?? b.unresolved,
})

const lookUp = (reference: string, root: SchemaRoot): unknown => {
  const id = isObject(root.schema) && typeof root.schema.$id === 'string' ? root.schema.$id : undefined
  const local = id !== undefined && reference.startsWith(`${id}#`) ? reference.slice(id.length) : reference
  if (local === '#' || local === id) return root.schema
  if (local.startsWith('#/')) return atPointer(root.schema, local.slice(2))
  if (!local.startsWith('#')) return undefined
  root.anchors ??= findAnchors(root.schema)
  return root.anchors.get(local.slice(1))
}

const atPointer = (schema: unknown, pointer: string): unknown => {
  let at = schema
  for (const token of pointer.split('/')) {
    const name = decodeToken(token)
    if (Array.isArray(at)) at = at[Number(name)]
    else if (isObject(at) && Object.hasOwn(at, name)) at = at[name]
    else return undefined
  }
  return at
}

const decodeToken = (token: string): string => {
  const name = token.replaceAll('~1', '/').replaceAll('~0', '~')
  try {
    return decodeURIComponent(name)
  } catch {
    return name // an invalid escape is taken literally
  }
}

const findAnchors = (schema: unknown): ReadonlyMap<string, unknown> => {
  const anchors = new Map<string, unknown>()
  const open: unknown[] = [schema]
  for (let seen = 0; open.length > 0 && seen < MOST_PLACES; seen++) {
    const at = open.pop()
    if (Array.isArray(at)) open.push(...at)
    if (!isObject(at)) continue
    const id = typeof at.$id === 'string' && at.$id.startsWith('#') ? at.$id.slice(1) : undefined // draft 7
    for (const name of [at.$anchor, at.$dynamicAnchor, id]) if (typeof name === 'string') anchors.set(name, at)
    open.push(...Object.values(at))
  }
  return anchors
}

/** How the values of a keyword that both schemas have are combined; by default the second one counts. */
const COMBINE: Readonly<Record<string, (a: unknown, b: unknown) => unknown>> = {
  type: (a, b) => sameTypes(a, b),
  enum: (a, b) =>
    Array.isArray(a) && Array.isArray(b) ? a.filter(each => b.some(other => isSameJson(each, other))) : b,
  required: (a, b) => [...new Set([...listOf(a), ...listOf(b)])],
  properties: (a, b) => mergeMaps(a, b),
  patternProperties: (a, b) => mergeMaps(a, b),
  $defs: (a, b) => ({ ...(a as object), ...(b as object) }),
  definitions: (a, b) => ({ ...(a as object), ...(b as object) }),
  items: (a, b) => both(a, b),
  additionalProperties: (a, b) => (a === false || b === false ? false : both(a, b)),
  minimum: (a, b) => larger(a, b),
  exclusiveMinimum: (a, b) => larger(a, b),
  minLength: (a, b) => larger(a, b),
  minItems: (a, b) => larger(a, b),
  minProperties: (a, b) => larger(a, b),
  maximum: (a, b) => smaller(a, b),
  exclusiveMaximum: (a, b) => smaller(a, b),
  maxLength: (a, b) => smaller(a, b),
  maxItems: (a, b) => smaller(a, b),
  maxProperties: (a, b) => smaller(a, b),
}

/** One schema for what fits both. Keywords that cannot be combined are kept in `allOf`, for the validation. */
export const mergeSchemas = (a: JsonObject, b: JsonObject): JsonObject => {
  const merged: Record<string, unknown> = { ...a }
  const kept: unknown[] = Array.isArray(a.allOf) ? [...a.allOf] : []
  for (const [keyword, value] of Object.entries(b)) {
    const before = merged[keyword]
    if (before === undefined || keyword === 'allOf') merged[keyword] = value
    else if (SEVERAL.has(keyword) && !isSameJson(before, value)) kept.push(pickKeyword(b, keyword))
    else merged[keyword] = COMBINE[keyword]?.(before, value) ?? value
  }
  return kept.length === 0 ? merged : { ...merged, allOf: kept }
}

const SEVERAL: ReadonlySet<string> = new Set([
  'anyOf',
  'oneOf',
  'not',
  'if',
  'pattern',
  'multipleOf',
  'const',
  'contains',
])
const pickKeyword = (schema: JsonObject, keyword: string): JsonObject =>
  keyword === 'if'
    ? { if: schema.if, [THEN]: schema[THEN], else: schema.else } // they belong together
    : { [keyword]: schema[keyword] }

/** A keyword of JSON Schema; an object with such a member in its own code looks like a promise. */
export const THEN = 'then'

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const both = (a: unknown, b: unknown): unknown =>
  a === true ? b : b === true || isSameJson(a, b) ? a : { allOf: [a, b] }
const larger = (a: unknown, b: unknown): unknown => (Number(a) > Number(b) ? a : b)
const smaller = (a: unknown, b: unknown): unknown => (Number(a) < Number(b) ? a : b)

const mergeMaps = (a: unknown, b: unknown): JsonObject => {
  const [first, second] = [isObject(a) ? a : {}, isObject(b) ? b : {}]
  const names = [...new Set([...Object.keys(first), ...Object.keys(second)])]
  const merged = names.map((name): [string, unknown] => [
    name,
    !Object.hasOwn(first, name)
      ? second[name]
      : !Object.hasOwn(second, name)
        ? first[name]
        : both(first[name], second[name]),
  ])
  return Object.fromEntries(merged)
}

const sameTypes = (a: unknown, b: unknown): unknown => {
  const [first, second] = [a, b].map(each => (Array.isArray(each) ? each : [each])) as [unknown[], unknown[]]
  const shared = first.flatMap(each =>
    second.includes(each) ? [each] : each === 'number' && second.includes('integer') ? ['integer'] : [],
  )
  const more = second.includes('number') && first.includes('integer') && !shared.includes('integer') ? ['integer'] : []
  const all = [...shared, ...more]
  return all.length === 1 ? all[0] : all
}
