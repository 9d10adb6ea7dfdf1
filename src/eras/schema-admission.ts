import type { Json } from '../wire/json/json.ts'
import { isOwnBase } from './schema-refs.ts'

/** Whether some object, and whether some other value, could satisfy a schema. Errs toward yes. */
export interface Admission {
  readonly objects: boolean
  readonly others: boolean
}

const ANYTHING: Admission = { objects: true, others: true }
const NOTHING: Admission = { objects: false, others: false }

/** Reads what a schema says about the kind of its values; what it says about their inside is not looked at. */
export const admissionOf = (schema: Json): Admission => {
  // Each target is looked at once, and counts as anything until then: a cycle ends, a web of references stays cheap.
  const known = new Map<string, Admission>()

  const followed = (pointer: string): Admission => {
    const before = known.get(pointer)
    if (before) return before
    known.set(pointer, ANYTHING)
    const target = resolve(schema, pointer)
    const found = target ? read(target) : ANYTHING
    known.set(pointer, found)
    return found
  }

  const read = (node: Json): Admission => {
    if (node.kind === 'boolean') return node.asBoolean() ? ANYTHING : NOTHING
    if (!node.isObject || (node !== schema && isOwnBase(node))) return ANYTHING
    const pointer = node.get('$ref')?.asString()
    const constant = node.get('const')
    return both([
      byType(node.get('type')),
      constant ? byValues([constant]) : ANYTHING,
      node.has('enum') ? byValues(node.get('enum')?.elements() ?? []) : ANYTHING,
      pointer === undefined ? ANYTHING : followed(pointer),
      ...(node.get('allOf')?.elements() ?? []).map(read),
      ...['anyOf', 'oneOf'].flatMap(key => (node.has(key) ? [either(node.get(key)?.elements().map(read) ?? [])] : [])),
    ])
  }

  return read(schema)
}

const both = (parts: readonly Admission[]): Admission => ({
  objects: parts.every(part => part.objects),
  others: parts.every(part => part.others),
})

const either = (parts: readonly Admission[]): Admission => ({
  objects: parts.some(part => part.objects),
  others: parts.some(part => part.others),
})

const byType = (type: Json | undefined): Admission => {
  if (!type) return ANYTHING
  const types = type.kind === 'array' ? type.elements() : [type]
  return {
    objects: types.some(each => each.isString('object')),
    others: types.some(each => !each.isString('object')),
  }
}

const byValues = (values: readonly Json[]): Admission => ({
  objects: values.some(value => value.isObject),
  others: values.some(value => !value.isObject),
})

/** What a local JSON pointer points at; undefined for names and other documents. */
const resolve = (schema: Json, reference: string): Json | undefined => {
  if (reference === '#') return schema
  if (!reference.startsWith('#/')) return undefined
  let node: Json | undefined = schema
  for (const token of reference.slice(2).split('/')) {
    const name = unescaped(token)
    node = node?.kind === 'array' ? node.elements()[Number(name)] : node?.get(name)
  }
  return node
}

const unescaped = (token: string): string => decoded(token).replaceAll('~1', '/').replaceAll('~0', '~')

const decoded = (token: string): string => {
  try {
    return decodeURIComponent(token)
  } catch {
    return token // a stray percent sign stands for itself
  }
}
