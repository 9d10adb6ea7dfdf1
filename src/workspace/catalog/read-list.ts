import { type CursorEnd, CursorWalk, MAX_PAGES } from '../../protocol/send-request.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { UsableTool } from '../routing/call-headers.ts'
import { LIST_KINDS, type ListKind } from './list-kinds.ts'
import type { MemberItem } from './member-list.ts'

const MOST_BYTES = 32 * 1024 * 1024
const BUSY_MS = 10 // the longest time in which the event loop is not released
const releaseEventLoop = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** A list read to its end, with its caching hints. */
export interface ListReading {
  readonly items: readonly MemberItem[]
  readonly faults: readonly string[] // why items were left out
  readonly ttlMs: number | undefined
  readonly isPublic: boolean
  readonly isComplete: boolean // false: the list was cut off
  readonly rest: Json // the other members of the result, without the cursor
}

export const EMPTY_READING: ListReading = {
  items: [],
  faults: [],
  ttlMs: undefined,
  isPublic: false,
  isComplete: true,
  rest: Json.empty,
}

/** The definition of an item as clients see it, or the reason to hide it. */
export type ShowItem = (original: string, native: Json) => UsableTool

/** What a server did wrong when it ended a list other than with a last page. */
export const CURSOR_FAULTS: Readonly<Record<Exclude<CursorEnd, 'last'>, string>> = {
  repeated: 'its cursors repeat',
  'too many': `it has more than ${MAX_PAGES} pages`,
}

/** Reads a list page by page. Invalid items are left out and reported; a page that fails rejects. */
export const readList = async (
  kind: ListKind,
  fetchPage: (params: Json) => Promise<Json>,
  show: ShowItem = (_, item) => ({ item }),
): Promise<ListReading> => {
  const reader = new ListReader(kind, show)
  const walk = new CursorWalk()
  let params = Json.empty
  for (;;) {
    const page = await fetchPage(params)
    await reader.add(page)
    const next = walk.next(page)
    if (reader.isCut || next === 'last') break
    if (typeof next === 'string') {
      reader.cut(CURSOR_FAULTS[next])
      break
    }
    params = Json.of(next)
  }
  return reader.reading
}

class ListReader {
  readonly #kind: ListKind
  readonly #show: ShowItem
  readonly #items = new Map<string, MemberItem>()
  readonly #cuts: string[] = []
  readonly #hidden: string[] = []
  #bytes = 0
  #duplicates = 0
  #unnamed = 0
  #ttlMs: number | undefined
  #isPublic = true
  #rest = Json.empty

  constructor(kind: ListKind, show: ShowItem) {
    this.#kind = kind
    this.#show = show
  }

  get isCut(): boolean {
    return this.#cuts.length > 0
  }

  get reading(): ListReading {
    const faults = [...this.#cuts, ...this.#hidden]
    if (this.#duplicates > 0) faults.push(`${this.#duplicates} duplicate names; the first of each is used`)
    if (this.#unnamed > 0) faults.push(`${this.#unnamed} items without "${LIST_KINDS[this.#kind].key}"`)
    const items = [...this.#items.values()]
    const [ttlMs, isPublic, rest] = [this.#ttlMs, this.#isPublic, this.#rest]
    return { items, faults, ttlMs, isPublic, isComplete: !this.isCut, rest }
  }

  cut(reason: string): void {
    this.#cuts.push(reason)
  }

  async add(page: Json): Promise<void> {
    const ttlMs = page.get('ttlMs')?.asNumber()
    if (ttlMs !== undefined && ttlMs >= 0) this.#ttlMs = Math.min(this.#ttlMs ?? ttlMs, ttlMs)
    this.#isPublic &&= page.get('cacheScope')?.isString('public') === true
    for (const [key, value] of page.without(LIST_KINDS[this.#kind].member, 'nextCursor').entries())
      if (!this.#rest.has(key)) this.#rest = this.#rest.with(key, value.compact())
    let begun = Date.now()
    // The items are kept, the rest of the message is not.
    for (const item of page.get(LIST_KINDS[this.#kind].member)?.compact().elements() ?? []) {
      if (Date.now() - begun > BUSY_MS) {
        await releaseEventLoop()
        begun = Date.now()
      }
      this.#addItem(item)
      if (this.isCut) return
    }
  }

  #addItem(native: Json): void {
    this.#bytes += native.size // also of items left out: they are kept with their page
    if (this.#bytes > MOST_BYTES) return this.cut(`it is larger than ${MOST_BYTES >> 20} MiB`)
    const original = native.get(LIST_KINDS[this.#kind].key)?.asString()
    if (original === undefined) this.#unnamed++
    else if (this.#items.has(original)) this.#duplicates++
    else {
      const shown = this.#show(original, native)
      if ('item' in shown) this.#items.set(original, { original, native, shown: shown.item })
      else this.#hidden.push(`${original} is hidden: ${shown.reason}`)
    }
  }
}

const MOST_REPORTED = 10 // faults in one message

/** Called when a server starts to return a list that is cut off, and with undefined when it no longer does. */
export type OnListFault = (server: string, reason: string | undefined) => void

/** Reports the faults of a list that was read. */
export type ReportListFaults = (
  server: string,
  kind: ListKind,
  reading: Pick<ListReading, 'faults' | 'isComplete'>,
) => void

/** Logs the faults of each list once, until they change. */
export const createListFaultReport = (log: Log, onListFault: OnListFault = () => {}): ReportListFaults => {
  const known = new Map<string, { readonly server: string; readonly reason: string; readonly isComplete: boolean }>()

  return (server, kind, { faults, isComplete }) => {
    const key = `${kind}\n${server}`
    const before = known.get(key)
    const reason = faults.length > 0 ? `its list of ${kind}: ${faults.slice(0, MOST_REPORTED).join('; ')}` : undefined
    if (reason === before?.reason) return
    if (reason === undefined) known.delete(key)
    else {
      known.set(key, { server, reason, isComplete })
      log.warn({ server, kind, faults }, 'server returned an invalid list')
    }
    const worst = [...known.values()].find(fault => fault.server === server && !fault.isComplete)
    if (!isComplete || before?.isComplete === false) onListFault(server, worst?.reason)
  }
}
