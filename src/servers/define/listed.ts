import { Json } from '../../wire/json/json.ts'
import { failure } from './failures.ts'

/** Things a server offers: fixed, or asked for each time; the same array means nothing changed. */
export type Listed<T> = readonly T[] | (() => readonly T[])

/** A list that can be searched by name and is written once per change. */
export interface Catalogue<T> {
  readonly find: (name: string) => T | undefined
  readonly all: () => readonly T[]
  readonly write: (params: Json) => Json
}

interface Item {
  readonly name: string // unique among its kind
  readonly description: Json // as the list shows it
}

/** Indexes what a server declared; two things of one name are a mistake of its author. */
export const createCatalogue = <T extends Item>(member: string, listed: Listed<T>): Catalogue<T> => {
  let current = index(member, typeof listed === 'function' ? listed() : listed)
  const refresh = () => {
    const items = typeof listed === 'function' ? listed() : listed
    if (items !== current.items) current = index(member, items)
    return current
  }
  return {
    find: name => refresh().byName.get(name),
    all: () => refresh().items,
    write: params => {
      refuseCursor(params)
      return refresh().json
    },
  }
}

const index = <T extends Item>(member: string, items: readonly T[]) => {
  const byName = new Map(items.map(item => [item.name, item]))
  if (byName.size < items.length) throw new Error(`Two ${member} of one name`)
  return { items, byName, json: Json.of({ [member]: items.map(item => item.description) }) }
}

/** Lists come in one page, so no cursor can be one of ours. */
const refuseCursor = (params: Json): void => {
  const cursor = params.get('cursor')
  if (cursor && cursor.kind !== 'null') throw failure('invalidParams', `Unknown cursor: ${cursor}`)
}

/** A required text member of the params. */
export const textMember = (params: Json, key: string): string => {
  const text = params.get(key)?.asString()
  if (text === undefined) throw failure('invalidParams', `${key} must be a string`)
  return text
}

/** The arguments of a call, `{}` where there are none. */
export const argumentsOf = (params: Json): Json => {
  const args = params.get('arguments') ?? Json.empty
  if (!args.isObject) throw failure('invalidParams', 'arguments must be an object')
  return args
}
