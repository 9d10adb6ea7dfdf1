import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { CursorWalk } from '../../protocol/send-request.ts'
import { Json } from '../../wire/json/json.ts'
import { LIST_KINDS, type ListKind, listKindOf } from './list-kinds.ts'
import { PAGE_BYTES, PAGE_ITEMS } from './pages.ts'
import { CURSOR_FAULTS, type ReportListFaults } from './read-list.ts'

/**
 * Follows the cursors of a server's lists, because many clients never request a second page. Beyond the size of one page,
 * or when a page fails, the client gets the pages so far and the server's cursor, and can continue itself.
 */
export const mergePages =
  (server: string, send: Dispatch, report: ReportListFaults): Dispatch =>
  exchange => {
    const kind = exchange.kind === 'request' ? listKindOf(exchange.method) : undefined
    if (!kind || hasCursor(exchange.params)) return send(exchange)
    const merge = new PageMerge(kind, exchange, send, faults =>
      report(server, kind, { faults, isComplete: faults.length === 0 }),
    )
    merge.request(exchange.params)
  }

const hasCursor = (params: Json): boolean => (params.get('cursor') ?? NULL).kind !== 'null'
const NULL = Json.of(null)

class PageMerge {
  readonly #kind: ListKind
  readonly #exchange: Exchange
  readonly #send: Dispatch
  readonly #report: (faults: readonly string[]) => void
  readonly #pages: Json[] = []
  readonly #walk = new CursorWalk()
  #items = 0
  #bytes = 0
  #isOver = false // the client has its answer, or a frame that its sink could not take

  constructor(kind: ListKind, exchange: Exchange, send: Dispatch, report: (faults: readonly string[]) => void) {
    this.#kind = kind
    this.#exchange = exchange
    this.#send = send
    this.#report = report
  }

  request(params: Json): void {
    this.#send({ ...this.#exchange, params, sink: frame => this.#take(frame, params.get('cursor')) })
  }

  #take(frame: Frame, cursor: Json | undefined): void | Promise<void> {
    if (this.#isOver || frame.kind === 'notice' || frame.kind === 'question') return this.#exchange.sink(frame)
    const isFirst = this.#pages.length === 0
    const page = frame.kind === 'result' ? frame.result : undefined
    const list = page?.get(LIST_KINDS[this.#kind].member)
    if (!page || list?.kind !== 'array') return isFirst ? this.#exchange.sink(frame) : this.#end(cursor)
    const next = this.#walk.next(page)
    if (isFirst && next === 'last') {
      this.#report([])
      return this.#exchange.sink(frame)
    }
    this.#pages.push(page)
    this.#items += list.elements().length
    this.#bytes += list.toBytes().length
    if (next === 'repeated') {
      this.#report([CURSOR_FAULTS.repeated])
      return this.#end(undefined, true)
    }
    if (typeof next === 'string' || this.#items >= PAGE_ITEMS || this.#bytes >= PAGE_BYTES) {
      this.#report([])
      return this.#end(next === 'last' ? undefined : page.get('nextCursor'))
    }
    if (!this.#exchange.signal.reason) this.request(withCursor(this.#exchange.params, next.cursor))
  }

  #end(next: Json | undefined, hasRepeated = false): void | Promise<void> {
    this.#isOver = true
    const { member, key } = LIST_KINDS[this.#kind]
    const items = this.#pages.flatMap(page => page.get(member)?.elements() ?? [])
    const result = mergeResults(this.#pages, next).with(member, Json.of(hasRepeated ? distinct(items, key) : items))
    return this.#exchange.sink({ kind: 'result', result })
  }
}

/** Without the progress token: progress that starts again with each page would look like a step back. */
const withCursor = (params: Json, cursor: string): Json => {
  const meta = params.get('_meta')
  const rest = meta?.has('progressToken') ? params.with('_meta', meta.without('progressToken')) : params
  return rest.with('cursor', cursor)
}

/** A server whose cursors repeat may have sent the same page twice. */
const distinct = (items: readonly Json[], key: string): readonly Json[] => {
  const seen = new Set<string | undefined>()
  return items.filter(item => {
    const name = item.get(key)?.asString()
    return !seen.has(name) && seen.add(name)
  })
}

/** The first result with the shortest `ttlMs`, the narrowest scope, and the members that only later results have. */
const mergeResults = (pages: readonly Json[], next: Json | undefined): Json => {
  let merged = pages[0] as Json
  for (const page of pages)
    for (const [key, value] of page.entries()) if (!merged.has(key)) merged = merged.with(key, value)
  const ttls = pages.flatMap(page => page.get('ttlMs')?.asNumber() ?? [])
  const shortest = Math.min(...ttls)
  if (ttls.length > 0 && merged.get('ttlMs')?.asNumber() !== shortest) merged = merged.with('ttlMs', shortest)
  if (pages.some(page => page.get('cacheScope')?.isString('private'))) merged = merged.with('cacheScope', 'private')
  return next ? merged.with('nextCursor', next) : merged.without('nextCursor')
}
