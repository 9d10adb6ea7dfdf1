import { Json } from '../../wire/json/json.ts'
import type { UsableTool } from '../routing/param-check.ts'
import { LIST_KINDS } from './kinds.ts'
import type { MemberItem, MemberListContent } from './member-list.ts'
import type { ListKind } from './view.ts'

/** How many pages of a server are read for one list. */
export const MOST_PAGES = 64
const MOST_BYTES = 32 * 1024 * 1024

/** A list read to its end, and how long its server says it holds. */
export interface ListReading extends MemberListContent {
  readonly ttlMs: number | undefined
  readonly isPublic: boolean
  readonly isComplete: boolean // false: something had to be left out
}

const AT_ONCE_MS = 10 // more would hold everybody else up
const othersHadTheirTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

type Page = (params: Json) => Promise<Json>

/** How an item is shown; or why not. */
type Show = (original: string, own: Json) => UsableTool

const AS_IT_IS: Show = (_, item) => ({ item })

/** Reads a list page after page. Whatever a server does wrong is left out and said; only a failing page fails it all. */
export const readList = async (kind: ListKind, page: Page, show: Show = AS_IT_IS): Promise<ListReading> => {
  const gathered = new Gathering(kind, show)
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const result = await page(cursor === undefined ? Json.empty : Json.of({ cursor }))
    await gathered.add(result)
    cursor = result.get('nextCursor')?.asString()
    if (cursor === undefined || gathered.isFull) break
    if (seen.has(cursor)) gathered.cut('its cursors go round in a circle')
    if (seen.size === MOST_PAGES - 1) gathered.cut(`it has more than ${MOST_PAGES} pages`)
    seen.add(cursor)
  } while (!gathered.isFull)
  return gathered.reading
}

/** What has been read so far. */
class Gathering {
  readonly #kind: ListKind
  readonly #show: Show
  readonly #items = new Map<string, MemberItem>()
  readonly #cuts: string[] = []
  readonly #hidden: string[] = []
  #bytes = 0
  #repeated = 0
  #unnamed = 0
  #ttlMs: number | undefined
  #isPublic = true

  constructor(kind: ListKind, show: Show) {
    this.#kind = kind
    this.#show = show
  }

  get isFull(): boolean {
    return this.#cuts.length > 0
  }

  get reading(): ListReading {
    const flaws = [...this.#cuts, ...this.#hidden]
    if (this.#repeated > 0) flaws.push(`${this.#repeated} of its names stand there twice; the first of each counts`)
    if (this.#unnamed > 0) flaws.push(`${this.#unnamed} of its entries have no ${LIST_KINDS[this.#kind].key}`)
    return {
      items: [...this.#items.values()],
      faults: flaws,
      ttlMs: this.#ttlMs,
      isPublic: this.#isPublic,
      isComplete: !this.isFull,
    }
  }

  cut(reason: string): void {
    this.#cuts.push(reason)
  }

  async add(page: Json): Promise<void> {
    const ttlMs = page.get('ttlMs')?.asNumber()
    if (ttlMs !== undefined && ttlMs >= 0) this.#ttlMs = Math.min(this.#ttlMs ?? ttlMs, ttlMs)
    this.#isPublic &&= page.get('cacheScope')?.isString('public') === true
    let begun = Date.now()
    // The items are kept, whatever else the server put into the message is not.
    for (const item of page.get(LIST_KINDS[this.#kind].member)?.compact().elements() ?? []) {
      if (Date.now() - begun > AT_ONCE_MS) {
        await othersHadTheirTurn()
        begun = Date.now()
      }
      this.#take(item)
      if (this.isFull) return
    }
  }

  #take(own: Json): void {
    this.#bytes += own.size // also of what is left out: it is kept with its page
    if (this.#bytes > MOST_BYTES) return this.cut(`it is larger than ${MOST_BYTES >> 20} MiB`)
    const original = own.get(LIST_KINDS[this.#kind].key)?.asString()
    if (original === undefined) this.#unnamed++
    else if (this.#items.has(original)) this.#repeated++
    else {
      const shown = this.#show(original, own)
      if ('item' in shown) this.#items.set(original, { original, native: own, shown: shown.item })
      else this.#hidden.push(`${original} is not shown: ${shown.reason}`)
    }
  }
}
