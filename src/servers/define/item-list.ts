import { Json } from '../../wire/json/json.ts'
import { failure } from './failures.ts'

/** What a server offers of one kind: fixed, or read at each request. The same array means that nothing changed. */
export type Items<T> = readonly T[] | (() => readonly T[])

interface Item {
  readonly name: string // unique in its list
  readonly description: Json // as the list result shows it
}

/** The tools, prompts, resources or templates of a server, indexed by name. */
export interface ItemList<T> {
  find(name: string): T | undefined
  all(): readonly T[]
  /** The result of the list method; written once per change. */
  toResult(params: Json): Json
}

/** Throws if two items have the same name: that is a mistake in the definition. */
export const createItemList = <T extends Item>(member: string, items: Items<T>): ItemList<T> => {
  const read = () => (typeof items === 'function' ? items() : items)
  let index = indexItems(member, read())
  const current = () => {
    const now = read()
    if (now !== index.items) index = indexItems(member, now)
    return index
  }
  return {
    find: name => current().byName.get(name),
    all: () => current().items,
    toResult: params => {
      const cursor = params.get('cursor') // lists have one page, so no cursor can be valid
      if (cursor && cursor.kind !== 'null') throw failure('invalidParams', `Unknown cursor: ${cursor}`)
      return current().result
    },
  }
}

const indexItems = <T extends Item>(member: string, items: readonly T[]) => {
  const byName = new Map(items.map(item => [item.name, item]))
  if (byName.size < items.length) throw new Error(`Two ${member} have the same name`)
  return { items, byName, result: Json.of({ [member]: items.map(item => item.description) }) }
}
