import { createHash } from 'node:crypto'
import { convertResult } from '../../eras/convert.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { mayLinkToApp } from '../routing/uris.ts'
import { LIST_KINDS, type ListKind } from './list-kinds.ts'

/** One item of a server's list. */
export interface MemberItem {
  readonly original: string // its name, URI or URI template
  readonly native: Json // the definition as the server sent it
  readonly shown: Json // the same with the overlay, in the server's revision
}

/** One list of one server, in the server's revision; immutable. */
export interface MemberList {
  readonly hash: string // equal for equal content
  readonly bytes: number // of its items as the server sent them
  readonly revision: Revision
  readonly items: readonly MemberItem[]
  readonly mayLinkToApp: boolean // some of its tools may have an app
  /** Equal for equal definitions of the items at these positions, given in ascending order. */
  digest(picked: readonly number[]): string
  /** The definition of one item in a revision. */
  in(revision: Revision, at: number): Json
}

export const createMemberList = (
  kind: ListKind,
  revision: Revision,
  { items }: { readonly items: readonly MemberItem[] },
): MemberList => {
  const converted = new Map<Revision, (Json | undefined)[]>()
  const convert = (to: Revision, at: number): Json => {
    const known = converted.get(to) ?? new Array<Json | undefined>(items.length)
    converted.set(to, known)
    const item = known[at] ?? convertItem(kind, (items[at] as MemberItem).shown, revision, to)
    known[at] = item
    return item
  }
  const content = digestOf(items)
  return {
    hash: `${revision} ${content}`,
    bytes: items.reduce((sum, { native }) => sum + native.size, 0),
    revision,
    items,
    mayLinkToApp: kind === 'tools' && items.some(({ shown }) => mayLinkToApp(shown.toBytes())),
    digest: picked => (picked.length === items.length ? content : digestOf(picked.map(at => items[at] as MemberItem))),
    in: (to, at) => (to === revision ? (items[at] as MemberItem).shown : convert(to, at)),
  }
}

const digestOf = (items: readonly MemberItem[]): string => {
  const hash = createHash('sha256')
  for (const { shown } of items) hash.update('\n').update(shown.toBytes())
  return hash.digest('base64url')
}

/** Revisions differ in whole results, so the item is converted as a page of one item. */
export const convertItem = (kind: ListKind, item: Json, from: Revision, to: Revision): Json => {
  const { method, member } = LIST_KINDS[kind]
  const page = convertResult(method, Json.of({ [member]: [item] }), from, to)
  return page.get(member)?.elements()[0] ?? item
}

const MOST_INTERNED = 4096

/** Returns one object for equal lists: they are compared by identity, and share what is derived from them. */
export const createListInterner = () => {
  const known = new Map<string, WeakRef<MemberList>>()

  return (name: string, list: MemberList): MemberList => {
    const key = `${name}\n${list.hash}`
    const before = known.get(key)?.deref()
    if (before) return before
    if (known.size >= MOST_INTERNED) for (const [old, reference] of known) if (!reference.deref()) known.delete(old)
    known.set(key, new WeakRef(list))
    return list
  }
}
