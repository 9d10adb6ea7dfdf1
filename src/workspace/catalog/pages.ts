import { Json } from '../../wire/json/json.ts'
import { sealCursor } from './cursor.ts'
import { LIST_KINDS } from './kinds.ts'
import type { ListKind, MergedList } from './view.ts'

/** How much a client gets in one page. */
export const MOST_ITEMS = 1000
export const MOST_BYTES = 1024 * 1024
const COMMA = Buffer.from(',')

/** The pages of a shelf that have been made so far. */
interface Book {
  readonly pages: Json[]
  next: number // of the entries: where the next page begins
}

const books = new WeakMap<MergedList, Book>()

/**
 * A page of the list as a result ready to be sent, undefined beyond the last. Each is made once for a shelf, when it is
 * asked for: all pages of a long list together would hold everybody up.
 */
export const pageOf = (kind: ListKind, shelf: MergedList, at: number): Json | undefined => {
  const book = books.get(shelf) ?? { pages: [], next: 0 }
  books.set(shelf, book)
  // No page is empty but the only one.
  while (book.pages.length <= at && (book.next < shelf.items.length || book.pages.length === 0))
    book.pages.push(nextPage(kind, shelf, book))
  return book.pages[at]
}

const nextPage = (kind: ListKind, shelf: MergedList, book: Book): Json => {
  const pieces = [Buffer.from(`{"${LIST_KINDS[kind].member}":[`)]
  book.next = gather(shelf, book.next, pieces)
  const isLast = book.next === shelf.items.length
  const next = isLast ? '' : sealCursor({ kind, hash: shelf.hash, page: book.pages.length + 1 })
  pieces.push(Buffer.from(isLast ? ']}' : `],"nextCursor":"${next}"}`))
  // Read once more, so that nobody has to look for its end when it is answered with.
  return Json.parse(Buffer.concat(pieces))
}

/** Adds as many entries as a page takes and says where it ends; an item too large for any has one for itself. */
const gather = ({ items: entries }: MergedList, start: number, pieces: Buffer[]): number => {
  let bytes = 0
  for (let at = start; at < Math.min(entries.length, start + MOST_ITEMS); at++) {
    const item: Buffer[] = []
    entries[at]?.definition.appendTo(item)
    bytes += item.reduce((sum, piece) => sum + piece.length, 1)
    if (at > start && bytes > MOST_BYTES) return at
    if (at > start) pieces.push(COMMA)
    pieces.push(...item)
  }
  return Math.min(entries.length, start + MOST_ITEMS)
}
