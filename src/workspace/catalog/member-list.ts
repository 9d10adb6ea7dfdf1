import { createHash } from 'node:crypto'
import { convertResult } from '../../eras/convert.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { mayLinkToApp } from '../routing/app-links.ts'
import { LIST_KINDS } from './kinds.ts'
import type { ListKind } from './view.ts'

/** One thing a server lists. */
export interface MemberItem {
  readonly original: string // its name, URI or URI template
  readonly native: Json // the definition as it came
  readonly shown: Json // the same as shown here, in the words of its server
}

/** A whole list of one server, in its own words; never changes once made. */
export interface MemberList {
  readonly id: number // no other list has it
  readonly hash: string // equal for equal content
  readonly bytes: number // of its items as they came
  readonly revision: Revision
  readonly items: readonly MemberItem[]
  readonly faults: readonly string[] // what was wrong with it, and was left out
  readonly mayLinkToApp: boolean // some of its tools may have an app
  /** Equal for equal definitions, of all or some of its items; these are given in order. */
  digest(picked: readonly number[]): string
  /** The definition of one of its items in the words of a revision. */
  in(revision: Revision, at: number): Json
}

/** What a list is made of. */
export interface MemberListContent {
  readonly items: readonly MemberItem[]
  readonly faults: readonly string[]
}

let lastId = 0

export const createMemberList = (
  kind: ListKind,
  revision: Revision,
  { items, faults: flaws }: MemberListContent,
): MemberList => {
  const converted = new Map<Revision, (Json | undefined)[]>()
  const convert = (to: Revision, at: number): Json => {
    const known = converted.get(to) ?? new Array<Json | undefined>(items.length)
    converted.set(to, known)
    const item = known[at] ?? convertOne(kind, (items[at] as MemberItem).shown, revision, to)
    known[at] = item
    return item
  }
  const content = contentOf(items)
  return {
    id: ++lastId,
    hash: `${revision} ${content}`,
    bytes: items.reduce((sum, { native: own }) => sum + own.size, 0),
    revision,
    items,
    faults: flaws,
    mayLinkToApp: kind === 'tools' && items.some(({ shown: json }) => mayLinkToApp(json.toBytes())),
    digest: picked => (picked.length === items.length ? content : contentOf(picked.map(at => items[at] as MemberItem))),
    in: (to, at) => (to === revision ? (items[at] as MemberItem).shown : convert(to, at)),
  }
}

const contentOf = (items: readonly MemberItem[]): string => {
  const hash = createHash('sha256')
  for (const { shown: json } of items) hash.update('\n').update(json.toBytes())
  return hash.digest('base64url')
}

/** As a page of its own, because that is what the revisions differ in. */
const convertOne = (kind: ListKind, item: Json, from: Revision, to: Revision): Json => {
  const { method, member } = LIST_KINDS[kind]
  const page = convertResult(method, Json.of({ [member]: [item] }), from, to)
  return page.get(member)?.elements()[0] ?? item
}
