import { alignElements } from './align-elements.ts'
import { isSameNode, type JsonMember, type JsonNode, type JsonPath, nodeAt } from './json-node.ts'

/** What the gateway did to one part of a message. */
export interface JsonChange {
  readonly kind: 'added' | 'removed' | 'changed' | 'moved'
  readonly path: JsonPath // where it was; of what was added: where it is
  readonly to?: JsonPath | undefined // of what was moved
  readonly before?: JsonNode | undefined
  readonly after?: JsonNode | undefined
}

/** One side of a line: what is printed, without its indentation. */
export interface LineSide {
  readonly depth: number
  readonly text: string
}

/** A line of both texts, or of one of them. */
export interface DiffLine {
  readonly before?: LineSide | undefined
  readonly after?: LineSide | undefined
  readonly change?: number | undefined // an index of `JsonDiff.changes`; undefined: both are equal
}

export interface JsonDiff {
  readonly lines: readonly DiffLine[]
  readonly changes: readonly JsonChange[]
}

/** A part that the gateway puts into another place: a question that becomes part of a result. */
export interface MovedPart {
  readonly from: JsonPath
  readonly to: JsonPath
}

interface SidePlace {
  readonly path: JsonPath
  readonly depth: number
  readonly label: string // `"name": `, or nothing
  readonly isLast: boolean // no comma follows
}

type Side = 'before' | 'after'
type DraftLine = { -readonly [Key in keyof DiffLine]: DiffLine[Key] }

/** Objects of which each member is a change of its own, although the whole of it was added or removed. */
const SPLIT: ReadonlySet<string | number> = new Set(['params', 'result', '_meta', 'error'])
const MOST_TEXT = 2000 // characters of a line
const LEAST_MOVED = 12 // characters of a string that is looked for elsewhere

const ROOT: SidePlace = { path: [], depth: 0, label: '', isLast: true }

/** Compares a message with what the gateway made of it, and prints both, line by line. */
export const diffJson = (before: JsonNode, after: JsonNode, moved: readonly MovedPart[] = []): JsonDiff => {
  const printer = new DiffPrinter(before, after, moved)
  printer.both(before, after, ROOT, ROOT)
  return withMoves(printer)
}

class DiffPrinter {
  readonly lines: DraftLine[] = []
  readonly changes: JsonChange[] = []
  readonly #root: JsonNode
  readonly #result: JsonNode
  readonly #moved: readonly MovedPart[]

  constructor(root: JsonNode, result: JsonNode, moved: readonly MovedPart[]) {
    this.#root = root
    this.#result = result
    this.#moved = moved
  }

  /** A value that both texts have; `change` marks its first line. */
  both(before: JsonNode, after: JsonNode, b: SidePlace, a: SidePlace, change?: number): void {
    if (before.kind === 'object' && after.kind === 'object' && before.members.length + after.members.length > 0) {
      this.#pair(line(b, '{'), line(a, '{'), change)
      this.#members(before.members, after.members, b, a)
      this.#pair(line(b, '}', b.isLast, false), line(a, '}', a.isLast, false), undefined)
    } else if (
      before.kind === 'array' &&
      after.kind === 'array' &&
      before.elements.length + after.elements.length > 0
    ) {
      this.#pair(line(b, '['), line(a, '['), change)
      this.#elements(before.elements, after.elements, b, a)
      this.#pair(line(b, ']', b.isLast, false), line(a, ']', a.isLast, false), undefined)
    } else if (isSameNode(before, after))
      this.#pair(line(b, textOf(before), b.isLast), line(a, textOf(after), a.isLast), change)
    else {
      const at = this.#add({ kind: 'changed', path: b.path, to: a.path, before, after })
      const [left, right] = [print(before, b), print(after, a)]
      for (let row = 0; row < Math.max(left.length, right.length); row++) this.#pair(left[row], right[row], at)
    }
  }

  #members(before: readonly JsonMember[], after: readonly JsonMember[], b: SidePlace, a: SidePlace): void {
    const pairs = pairMembers(before, after)
    const lastBefore = pairs.findLastIndex(pair => pair.before)
    const lastAfter = pairs.findLastIndex(pair => pair.after)
    for (const [at, pair] of pairs.entries()) {
      const left = pair.before && inside(b, pair.before.key, at === lastBefore, true)
      const right = pair.after && inside(a, pair.after.key, at === lastAfter, true)
      this.#child(pair.before?.value, pair.after?.value, left, right)
    }
  }

  #elements(before: readonly JsonNode[], after: readonly JsonNode[], b: SidePlace, a: SidePlace): void {
    for (const pair of alignElements(before, after))
      this.#child(
        pair.before === undefined ? undefined : before[pair.before],
        pair.after === undefined ? undefined : after[pair.after],
        pair.before === undefined ? undefined : inside(b, pair.before, pair.before === before.length - 1, false),
        pair.after === undefined ? undefined : inside(a, pair.after, pair.after === after.length - 1, false),
      )
  }

  #child(before?: JsonNode, after?: JsonNode, b?: SidePlace, a?: SidePlace): void {
    const isMoved = (b && this.#movedFrom(b.path)) || (a && this.#movedTo(a.path))
    if (before && after && b && a && !isMoved) return this.both(before, after, b, a)
    if (before && b) this.one('before', before, b)
    if (after && a) this.one('after', after, a)
  }

  /** A value that only one of the texts has. */
  one(side: Side, node: JsonNode, place: SidePlace): void {
    const part = side === 'after' ? this.#movedTo(place.path) : this.#movedFrom(place.path)
    if (part) return this.#moveHere(side, part, place)
    if (node.kind === 'object' && node.members.length > 0 && this.#isSplit(side, place.path))
      return this.#split(side, node.members, place)
    const at = this.#add({ kind: side === 'before' ? 'removed' : 'added', path: place.path, [side]: node })
    for (const text of print(node, place)) this.#single(side, text, at)
  }

  /** A part that has moved is printed once, in the place that is deeper inside its message. */
  #moveHere(side: Side, { from, to }: MovedPart, place: SidePlace): void {
    const [before, after] = [nodeAt(this.#root, from), nodeAt(this.#result, to)]
    if ((side === 'before') !== from.length > to.length || !before || !after) return
    const other = side === 'before' ? to : from
    const there: SidePlace = { path: other, depth: other.length, label: labelOf(other), isLast: true }
    const at = this.#add({ kind: 'moved', path: from, to, before, after })
    if (side === 'before') this.both(before, after, place, there, at)
    else this.both(before, after, there, place, at)
  }

  #split(side: Side, members: readonly JsonMember[], place: SidePlace): void {
    const first = this.lines.length
    const next = this.changes.length
    this.#single(side, line(place, '{'), next)
    for (const [at, { key, value }] of members.entries())
      this.one(side, value, inside(place, key, at === members.length - 1, true))
    this.#single(side, line(place, '}', place.isLast, false), next)
    // Everything in it was moved elsewhere: the braces are what is left.
    if (this.changes.length === next && this.lines.length > first)
      this.#add({ kind: side === 'before' ? 'removed' : 'added', path: place.path })
  }

  #isSplit(side: Side, path: JsonPath): boolean {
    if (SPLIT.has(path.at(-1) ?? '')) return true
    return this.#moved.some(({ from, to }) => startsWith(side === 'before' ? from : to, path))
  }

  #movedFrom(path: JsonPath): MovedPart | undefined {
    return this.#moved.find(({ from }) => isSamePath(from, path))
  }

  #movedTo(path: JsonPath): MovedPart | undefined {
    return this.#moved.find(({ to }) => isSamePath(to, path))
  }

  #add(change: JsonChange): number {
    return this.changes.push(change) - 1
  }

  #pair(before: LineSide | undefined, after: LineSide | undefined, change: number | undefined): void {
    this.lines.push({ before, after, change })
  }

  #single(side: Side, text: LineSide, change: number): void {
    this.lines.push({ [side]: text, change })
  }
}

const isSamePath = (a: JsonPath, b: JsonPath): boolean => a.length === b.length && startsWith(a, b)
const startsWith = (path: JsonPath, start: JsonPath): boolean => start.every((step, at) => path[at] === step)

const inside = (place: SidePlace, step: string | number, isLast: boolean, hasLabel: boolean): SidePlace => ({
  path: [...place.path, step],
  depth: place.depth + 1,
  label: hasLabel ? `${JSON.stringify(step)}: ` : '',
  isLast,
})

const labelOf = (path: JsonPath): string => {
  const step = path.at(-1)
  return typeof step === 'string' ? `${JSON.stringify(step)}: ` : ''
}

const line = ({ depth, label }: SidePlace, text: string, isLast = true, hasLabel = true): LineSide => ({
  depth,
  text: `${hasLabel ? label : ''}${text}${isLast ? '' : ','}`,
})

const textOf = (node: JsonNode): string => {
  if (node.kind !== 'scalar') return node.kind === 'object' ? '{}' : '[]'
  const { text } = node
  return text.length > MOST_TEXT
    ? `${text.slice(0, MOST_TEXT)}… (${text.length.toLocaleString('en')} characters)`
    : text
}

/** A value as lines. */
const print = (node: JsonNode, place: SidePlace): LineSide[] => {
  const { isLast } = place
  if (node.kind === 'object' && node.members.length > 0) {
    const inner = node.members.flatMap(({ key, value }, at) =>
      print(value, inside(place, key, at === node.members.length - 1, true)),
    )
    return [line(place, '{'), ...inner, line(place, '}', isLast, false)]
  }
  if (node.kind === 'array' && node.elements.length > 0) {
    const inner = node.elements.flatMap((element, at) =>
      print(element, inside(place, at, at === node.elements.length - 1, false)),
    )
    return [line(place, '['), ...inner, line(place, ']', isLast, false)]
  }
  return [line(place, textOf(node), isLast)]
}

interface MemberPair {
  readonly before?: JsonMember | undefined
  readonly after?: JsonMember | undefined
}

/** The members of both, in the order of the first; what the second adds follows the member before it. */
const pairMembers = (before: readonly JsonMember[], after: readonly JsonMember[]): readonly MemberPair[] => {
  const known = new Set(before.map(({ key }) => key))
  const same = new Map<string, JsonMember[]>() // of the second, by key: keys may occur twice
  const added = new Map<string, MemberPair[]>() // by the key before them
  let anchor = ''
  const first: MemberPair[] = []
  let behind = first
  for (const member of after) {
    if (!known.has(member.key)) {
      behind.push({ after: member })
      continue
    }
    anchor = member.key
    same.set(anchor, [...(same.get(anchor) ?? []), member])
    behind = added.get(anchor) ?? []
    added.set(anchor, behind)
  }
  const pairs = before.flatMap((member): MemberPair[] => {
    const followers = added.get(member.key) ?? []
    added.delete(member.key)
    return [{ before: member, after: same.get(member.key)?.shift() }, ...followers]
  })
  return [...first, ...pairs, ...[...same.values()].flat().map(member => ({ after: member }))]
}

/** A part that was removed in one place and added, equal, in another has moved. */
const withMoves = ({ lines, changes }: DiffPrinter): JsonDiff => {
  const target = new Map<number, number>() // what was added → the move that it is part of
  const merged = changes.map((change, from): JsonChange => {
    const { before, path } = change
    if (change.kind !== 'removed' || !before || !isNotable(before)) return change
    const to = changes.findIndex(
      ({ kind, after }, at) => kind === 'added' && !target.has(at) && after !== undefined && isSameNode(before, after),
    )
    if (to < 0) return change
    target.set(to, from)
    return { kind: 'moved', path, to: changes[to]?.path, before, after: before }
  })
  if (target.size === 0) return { lines, changes }
  const kept = merged.filter((_, at) => !target.has(at))
  const places = new Map(merged.map((change, at) => [at, kept.indexOf(change)]))
  const moved = lines.map(each =>
    each.change === undefined ? each : { ...each, change: places.get(target.get(each.change) ?? each.change) },
  )
  return { lines: moved, changes: kept }
}

const isNotable = (node: JsonNode): boolean => {
  if (node.kind === 'object') return node.members.length > 0
  return node.kind === 'array' ? node.elements.length > 0 : node.text.length >= LEAST_MOVED
}
