import { Json } from '../../wire/json/json.ts'
import { seal, unseal } from '../../wire/seal.ts'
import { LIST_KINDS, type ListKind } from './list-kinds.ts'
import type { ShownList } from './merged-list.ts'

/** The size of a page. */
export const PAGE_ITEMS = 1000
export const PAGE_BYTES = 1024 * 1024
const COMMA = Buffer.from(',')

interface PagesSoFar {
  readonly pages: Json[]
  next: number // the position of the first item of the next page
}

/** A position in a list, as the client's cursor carries it. */
interface ListCursor {
  readonly kind: ListKind
  readonly hash: string // of the list
  readonly page: number
}

const KEY_ID = 'l'

/** The pages of lists, with cursors that every replica with the same keys can read. */
export class ListPages {
  readonly #keys: readonly [Uint8Array, ...Uint8Array[]]
  readonly #pages = new WeakMap<ShownList, PagesSoFar>()

  /** The first key seals cursors, all of them open one. */
  constructor(keys: readonly [Uint8Array, ...Uint8Array[]]) {
    this.#keys = keys
  }

  /**
   * One page of a list as a result, undefined beyond the last page. Each page is built once, when it is requested: all pages
   * of a long list together would block the event loop.
   */
  pageOf(kind: ListKind, list: ShownList, at: number): Json | undefined {
    const soFar = this.#pages.get(list) ?? { pages: [], next: 0 }
    this.#pages.set(list, soFar)
    // No page is empty except the page of an empty list.
    while (soFar.pages.length <= at && (soFar.next < list.items.length || soFar.pages.length === 0))
      soFar.pages.push(this.#buildPage(kind, list, soFar))
    return soFar.pages[at]
  }

  /** Reads a cursor; undefined if no replica made it. */
  openCursor(cursor: string): ListCursor | undefined {
    for (const key of this.#keys) {
      const text = unseal({ id: KEY_ID, key }, cursor)
      if (!text) continue
      const [kind, hash, page] = JSON.parse(text.toString()) as [ListKind, string, number]
      return { kind, hash, page }
    }
    return undefined
  }

  #buildPage(kind: ListKind, list: ShownList, soFar: PagesSoFar): Json {
    const pieces = [Buffer.from(`{"${LIST_KINDS[kind].member}":[`)]
    soFar.next = appendItems(list, soFar.next, pieces)
    const isLast = soFar.next === list.items.length
    const cursor = isLast ? '' : this.#sealCursor({ kind, hash: list.hash, page: soFar.pages.length + 1 })
    pieces.push(Buffer.from(isLast ? ']}' : `],"nextCursor":"${cursor}"}`))
    // Parsed once here: no response has to look for its end.
    return Json.parse(Buffer.concat(pieces))
  }

  #sealCursor({ kind, hash, page }: ListCursor): string {
    return seal({ id: KEY_ID, key: this.#keys[0] }, JSON.stringify([kind, hash, page]))
  }
}

/** Appends the items of one page and returns where the next one begins; an item larger than a page has its own page. */
const appendItems = ({ items }: ShownList, start: number, pieces: Buffer[]): number => {
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
