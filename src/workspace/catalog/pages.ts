import { randomBytes } from 'node:crypto'
import { Json } from '../../wire/json/json.ts'
import { type SealKey, seal, unseal } from '../../wire/seal.ts'
import { LIST_KINDS, type ListKind } from './list-kinds.ts'
import type { MergedList } from './merged-list.ts'

/** The size of a page. */
export const PAGE_ITEMS = 1000
export const PAGE_BYTES = 1024 * 1024
const COMMA = Buffer.from(',')

interface PagesSoFar {
  readonly pages: Json[]
  next: number // the position of the first item of the next page
}

const pagesByList = new WeakMap<MergedList, PagesSoFar>()

/**
 * One page of a list as a result, undefined beyond the last page. Each page is built once, when it is requested: all pages
 * of a long list together would block the event loop.
 */
export const pageOf = (kind: ListKind, list: MergedList, at: number): Json | undefined => {
  const soFar = pagesByList.get(list) ?? { pages: [], next: 0 }
  pagesByList.set(list, soFar)
  // No page is empty except the page of an empty list.
  while (soFar.pages.length <= at && (soFar.next < list.items.length || soFar.pages.length === 0))
    soFar.pages.push(buildPage(kind, list, soFar))
  return soFar.pages[at]
}

const buildPage = (kind: ListKind, list: MergedList, soFar: PagesSoFar): Json => {
  const pieces = [Buffer.from(`{"${LIST_KINDS[kind].member}":[`)]
  soFar.next = appendItems(list, soFar.next, pieces)
  const isLast = soFar.next === list.items.length
  const cursor = isLast ? '' : sealCursor({ kind, hash: list.hash, page: soFar.pages.length + 1 })
  pieces.push(Buffer.from(isLast ? ']}' : `],"nextCursor":"${cursor}"}`))
  // Parsed once here: no response has to look for its end.
  return Json.parse(Buffer.concat(pieces))
}

/** Appends the items of one page and returns where the next one begins; an item larger than a page has its own page. */
const appendItems = ({ items }: MergedList, start: number, pieces: Buffer[]): number => {
  const end = Math.min(items.length, start + PAGE_ITEMS)
  let bytes = 0
  for (let at = start; at < end; at++) {
    const item: Buffer[] = []
    items[at]?.definition.appendTo(item)
    bytes += item.reduce((sum, piece) => sum + piece.length, 1)
    if (at > start && bytes > PAGE_BYTES) return at
    if (at > start) pieces.push(COMMA)
    pieces.push(...item)
  }
  return end
}

/** A position in a list, as the client's cursor carries it. */
interface ListCursor {
  readonly kind: ListKind
  readonly hash: string // of the list
  readonly page: number
}

/** Cursors need not outlive the process: the lists do not either. */
const cursorKey: SealKey = { id: 'l', key: randomBytes(32) }

const sealCursor = ({ kind, hash, page }: ListCursor): string => seal(cursorKey, JSON.stringify([kind, hash, page]))

/** Reads a cursor; undefined if this process did not make it. */
export const openCursor = (cursor: string): ListCursor | undefined => {
  const text = unseal(cursorKey, cursor)
  if (!text) return undefined
  const [kind, hash, page] = JSON.parse(text.toString()) as [ListKind, string, number]
  return { kind, hash, page }
}
