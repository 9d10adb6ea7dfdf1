import { isJsonType } from '../media-types.ts'
import type { ApiDocument } from './api-document.ts'
import { BrokenReference } from './api-document.ts'
import type { ApiOperation } from './operations.ts'
import { SchemaTooLarge, SchemaWriter } from './schema-writer.ts'
import { isApiObject, memberOf, memberPairs } from './shape.ts'

/** What the successes of an operation look like. */
export interface SuccessShape {
  readonly accept: string
  readonly isJsonOnly: boolean
  readonly outputSchema?: object | undefined // undefined: not every success is an object that can be described
}

const MOST_PARTS = 2000
const MOST_BYTES = 32 * 1024 // a model reads it with every tool
const ANYTHING = '*/*;q=0.1'
const EVENTS = 'text/event-stream'

export const readSuccesses = (document: ApiDocument, { members, base }: ApiOperation): SuccessShape => {
  const responses = memberPairs(members.responses).filter(([status]) => /^2(\d\d|XX)$/i.test(status))
  const used = responses.length > 0 ? responses : memberPairs(members.responses).filter(([key]) => key === 'default')
  const contents = used.map(([, value]) => {
    const response = followed(document, value, base)
    return { content: memberPairs(memberOf(response?.value, 'content')), base: response?.base ?? base }
  })
  const types = contents.flatMap(({ content }) => content.map(([type]) => type))
  // Where JSON is one of several types, it is asked for.
  const isJsonOnly = contents.length > 0 && contents.every(({ content }) => content.some(([type]) => isJsonType(type)))
  const [first] = contents
  const isOne = isJsonOnly && contents.length === 1
  const outputSchema = isOne && first ? outputOf(document, jsonOf(first.content), first.base) : undefined
  return { accept: acceptOf(types), isJsonOnly, outputSchema }
}

const followed = (document: ApiDocument, value: unknown, base: string) => {
  try {
    return document.follow({ value, base })
  } catch (error) {
    if (error instanceof BrokenReference) return undefined // the tool works without knowing its answers
    throw error
  }
}

const jsonOf = (content: readonly (readonly [string, unknown])[]): unknown =>
  content.find(([type]) => isJsonType(type))?.[1]

const MOST_TYPES = 10

/** JSON first. Event streams come after whole answers, which are simpler. */
const acceptOf = (types: readonly string[]): string => {
  const usable = [...new Set(types)].filter(type => /^[\w!#$&^.+*/;= -]+$/.test(type))
  const rank = (type: string): number => (isJsonType(type) ? 0 : type.startsWith(EVENTS) ? 2 : 1)
  const wanted = usable.toSorted((a, b) => rank(a) - rank(b)).slice(0, MOST_TYPES)
  if (wanted.length === 0) return `application/json, ${ANYTHING}`
  const best = Math.min(...wanted.map(rank))
  const weighted = wanted.map(type => (rank(type) === best ? type : `${type};q=0.${8 - rank(type)}`))
  return [...weighted, ...(wanted.includes('*/*') ? [] : [ANYTHING])].join(', ')
}

/** Undefined if the schema is no object, or cannot be shown. */
const outputOf = (document: ApiDocument, media: unknown, base: string): object | undefined => {
  const schema = memberOf(media, 'schema')
  if (!isApiObject(schema)) return undefined
  const writer = new SchemaWriter(document, 'output', MOST_PARTS)
  try {
    const target = document.follow({ value: schema, base })
    const written = writer.write({ value: target.value, base: target.base })
    if (!isApiObject(written) || written.type !== 'object') return undefined
    const whole = { ...written, ...(Object.keys(writer.defs).length > 0 && { $defs: writer.defs }) }
    return JSON.stringify(whole).length <= MOST_BYTES ? whole : undefined
  } catch (error) {
    if (error instanceof SchemaTooLarge || error instanceof BrokenReference) return undefined
    throw error
  }
}
