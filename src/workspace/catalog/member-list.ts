import { createHash } from 'node:crypto'
import { convertResult } from '../../eras/convert.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { mayLink } from '../routing/app-links.ts'
import { KINDS } from './kinds.ts'
import type { Kind } from './view.ts'

/** One thing a server lists. */
export interface Item {
  readonly original: string // its name, URI or URI template
  readonly own: Json // the definition as it came
  readonly json: Json // the same as shown here, in the words of its server
}

/** A whole list of one server, in its own words; never changes once made. */
export interface MemberList {
  readonly id: number // no other list has it
  readonly hash: string // equal for equal content
  readonly bytes: number // of its items as they came
  readonly revision: Revision
  readonly items: readonly Item[]
  readonly flaws: readonly string[] // what was wrong with it, and was left out
  readonly mayLink: boolean // some of its tools may have an app
  /** Equal for equal definitions, of all or some of its items; these are given in order. */
  digest(picked: readonly number[]): string
  /** The definition of one of its items in the words of a revision. */
  in(revision: Revision, at: number): Json
}

/** What a list is made of. */
export interface Content {
  readonly items: readonly Item[]
  readonly flaws: readonly string[]
}

let lastId = 0

export const createMemberList = (kind: Kind, revision: Revision, { items, flaws }: Content): MemberList => {
  const converted = new Map<Revision, (Json | undefined)[]>()
  const convert = (to: Revision, at: number): Json => {
    const known = converted.get(to) ?? new Array<Json | undefined>(items.length)
    converted.set(to, known)
    const item = known[at] ?? convertOne(kind, (items[at] as Item).json, revision, to)
    known[at] = item
    return item
  }
  const content = contentOf(items)
  return {
    id: ++lastId,
    hash: `${revision} ${content}`,
    bytes: items.reduce((sum, { own }) => sum + own.size, 0),
    revision,
    items,
    flaws,
    mayLink: kind === 'tools' && items.some(({ json }) => mayLink(json.toBytes())),
    digest: picked => (picked.length === items.length ? content : contentOf(picked.map(at => items[at] as Item))),
    in: (to, at) => (to === revision ? (items[at] as Item).json : convert(to, at)),
  }
}

const contentOf = (items: readonly Item[]): string => {
  const hash = createHash('sha256')
  for (const { json } of items) hash.update('\n').update(json.toBytes())
  return hash.digest('base64url')
}

/** As a page of its own, because that is what the revisions differ in. */
const convertOne = (kind: Kind, item: Json, from: Revision, to: Revision): Json => {
  const { method, member } = KINDS[kind]
  const page = convertResult(method, Json.of({ [member]: [item] }), from, to)
  return page.get(member)?.elements()[0] ?? item
}
