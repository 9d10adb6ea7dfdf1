import type { CompileSettings } from '../plan.ts'
import { type ApiDocument, BrokenReference, type LocatedPart } from './api-document.ts'
import { type ApiObject, isApiObject, memberOf, memberPairs, textItems, textMember } from './shape.ts'
import { convertSwaggerOperation } from './swagger.ts'

/** One operation of a document, in the words of 3.x. */
export interface ApiOperation {
  readonly method: string // in capitals
  readonly path: string
  readonly base: string // of the file it is in
  readonly members: ApiObject
  readonly parameters: readonly LocatedPart[] // of the path and its own, followed
  readonly servers: unknown // of the operation or its path; undefined: those of the document
}

const METHODS: ReadonlySet<string> = new Set(['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'query'])

/** Calls `found` for each operation that the settings choose, and `skipped` for those that cannot be read. */
export const eachOperation = (
  document: ApiDocument,
  settings: Pick<CompileSettings, 'include' | 'exclude'>,
  found: (operation: ApiOperation) => void,
  skipped: (place: string, reason: string) => void,
): void => {
  const isChosen = createOperationFilter(settings)
  for (const [path, given] of memberPairs(memberOf(document.root, 'paths'))) {
    if (!path.startsWith('/')) continue // an extension
    const item = followOrSkip(document, document.at(given), path, skipped)
    if (!item) continue
    for (const [key, value] of [
      ...memberPairs(item.value),
      ...memberPairs(memberOf(item.value, 'additionalOperations')),
    ]) {
      const method = key.toUpperCase()
      if (!isApiObject(value) || !(METHODS.has(key) || isAdditional(item.value, key, value))) continue
      const names = { method, path, tags: textItems(value.tags), id: textMember(value, 'operationId') }
      if (!isChosen(names)) continue
      try {
        found(readOperation(document, { value, base: item.base }, item.value, { method, path }))
      } catch (error) {
        if (!(error instanceof BrokenReference)) throw error
        skipped(`${method} ${path}`, error.message)
      }
    }
  }
}

const isAdditional = (item: unknown, key: string, value: unknown): boolean =>
  memberOf(memberOf(item, 'additionalOperations'), key) === value && /^[A-Z]+$/.test(key)

const followOrSkip = (
  document: ApiDocument,
  part: LocatedPart,
  place: string,
  skipped: (place: string, reason: string) => void,
): LocatedPart | undefined => {
  try {
    return document.follow(part)
  } catch (error) {
    if (!(error instanceof BrokenReference)) throw error
    skipped(place, error.message)
    return undefined
  }
}

/** Throws BrokenReference. */
const readOperation = (
  document: ApiDocument,
  { value, base }: LocatedPart,
  item: unknown,
  { method, path }: { readonly method: string; readonly path: string },
): ApiOperation => {
  const own = parametersIn(document, memberOf(value, 'parameters'), base)
  const names = new Set(own.map(keyOfParameter))
  const shared = parametersIn(document, memberOf(item, 'parameters'), base)
  const all = [...shared.filter(parameter => !names.has(keyOfParameter(parameter))), ...own]
  const servers = memberOf(value, 'servers') ?? memberOf(item, 'servers')
  const given = value as ApiObject
  if (!document.isSwagger) return { method, path, base, members: given, parameters: all, servers }
  const { operation, parameters } = convertSwaggerOperation(document, given, all)
  return { method, path, base, members: operation, parameters, servers: undefined }
}

const parametersIn = (document: ApiDocument, list: unknown, base: string): LocatedPart[] =>
  Array.isArray(list) ? list.map(value => document.follow({ value, base })) : []

const keyOfParameter = ({ value }: LocatedPart): string => `${memberOf(value, 'in')} ${memberOf(value, 'name')}`

interface OperationNames {
  readonly method: string
  readonly path: string
  readonly tags: readonly string[]
  readonly id: string | undefined
}

/**
 * A pattern is `tag:NAME`, `id:OPERATION_ID`, a path, or a method and a path: `GET /pets/*`. `*` stands for any characters.
 * Everything is chosen that fits one pattern of `include`, if there are any, and none of `exclude`.
 */
const createOperationFilter = ({
  include,
  exclude,
}: Pick<CompileSettings, 'include' | 'exclude'>): ((names: OperationNames) => boolean) => {
  const [wanted, unwanted] = [include.map(readPattern), exclude.map(readPattern)]
  return names => (wanted.length === 0 || wanted.some(fits => fits(names))) && !unwanted.some(fits => fits(names))
}

const readPattern = (pattern: string): ((names: OperationNames) => boolean) => {
  const [, kind, rest = ''] = /^(tag|id):(.*)$/s.exec(pattern) ?? []
  if (kind === 'tag') return ({ tags }) => tags.some(tag => wildcard(rest).test(tag))
  if (kind === 'id') return ({ id }) => id !== undefined && wildcard(rest).test(id)
  const [, method, path = '*'] = /^\s*(?:([A-Za-z]+)(?:\s+|$))?(\S+)?\s*$/.exec(pattern) ?? []
  const fitting = wildcard(path)
  return names => (method === undefined || names.method === method.toUpperCase()) && fitting.test(names.path)
}

const wildcard = (text: string): RegExp =>
  new RegExp(`^${text.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`, 's')
