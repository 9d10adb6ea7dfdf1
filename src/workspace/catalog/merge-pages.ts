import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { LIST_KINDS, listKindOf } from './kinds.ts'
import type { ReportListFaults } from './list-faults.ts'
import { MOST_BYTES, MOST_ITEMS } from './pages.ts'
import { MOST_PAGES } from './read-list.ts'
import type { ListKind } from './view.ts'

/**
 * Follows the cursors of a server's lists, because many clients never ask for a second page. Beyond the size of one page,
 * or when a page fails, the client gets what was read and the server's cursor, and can go on by itself.
 */
export const mergePages = (server: string, send: Dispatch, report: ReportListFaults): Dispatch => {
  return exchange => {
    const kind = exchange.kind === 'request' ? listKindOf(exchange.method) : undefined
    if (!kind || hasCursor(exchange.params)) return send(exchange)
    const merge = new Merge(kind, exchange, (params, sink) => send({ ...exchange, params, sink }))
    merge.ask(exchange.params, flaws => report(server, kind, { faults: flaws, isComplete: flaws.length === 0 }))
  }
}

const hasCursor = (params: Json): boolean => (params.get('cursor') ?? NULL).kind !== 'null'
const NULL = Json.of(null)

class Merge {
  readonly #kind: ListKind
  readonly #exchange: Exchange
  readonly #send: (params: Json, sink: Exchange['sink']) => void
  readonly #pages: Json[] = []
  readonly #seen = new Set<string>()
  #items = 0
  #bytes = 0
  #isOver = false // the client has its answer, or a frame that its sink could not take

  constructor(kind: ListKind, exchange: Exchange, send: (params: Json, sink: Exchange['sink']) => void) {
    this.#kind = kind
    this.#exchange = exchange
    this.#send = send
  }

  ask(params: Json, ended: (flaws: readonly string[]) => void): void {
    this.#send(params, frame => this.#take(frame, params.get('cursor'), ended))
  }

  #take(frame: Frame, cursor: Json | undefined, ended: (flaws: readonly string[]) => void): void | Promise<void> {
    const isFirst = this.#pages.length === 0
    if (this.#isOver || frame.kind === 'notice' || frame.kind === 'question') return this.#exchange.sink(frame)
    const page = frame.kind === 'result' ? frame.result : undefined
    const list = page?.get(LIST_KINDS[this.#kind].member)
    if (!page || list?.kind !== 'array') return isFirst ? this.#exchange.sink(frame) : this.#end(cursor)
    const next = page.get('nextCursor')
    const text = next?.asString()
    if (isFirst && text === undefined) {
      ended([])
      return this.#exchange.sink(frame)
    }
    this.#pages.push(page)
    this.#items += list.elements().length
    this.#bytes += list.toBytes().length
    if (text !== undefined && this.#seen.has(text)) {
      ended(['its cursors go round in a circle'])
      return this.#end(undefined, true)
    }
    const isFull =
      this.#items >= MOST_ITEMS || this.#bytes >= MOST_BYTES || this.#pages.length >= MOST_PAGES || text === undefined
    if (isFull) {
      ended([])
      return this.#end(text === undefined ? undefined : next)
    }
    this.#seen.add(text)
    if (!this.#exchange.signal.reason) this.ask(withCursor(this.#exchange.params, text), ended)
  }

  #end(next: Json | undefined, isRepeated = false): void | Promise<void> {
    this.#isOver = true
    const { member, key } = LIST_KINDS[this.#kind]
    const entries = this.#pages.flatMap(page => page.get(member)?.elements() ?? [])
    const result = mergeResults(this.#pages, next).with(member, Json.of(isRepeated ? distinct(entries, key) : entries))
    return this.#exchange.sink({ kind: 'result', result })
  }
}

/** The progress of a further page would look like a step back. */
const withCursor = (params: Json, cursor: string): Json => {
  const meta = params.get('_meta')
  const rest = meta?.has('progressToken') ? params.with('_meta', meta.without('progressToken')) : params
  return rest.with('cursor', cursor)
}

/** A server whose cursors repeat may have sent the same page again. */
const distinct = (entries: readonly Json[], key: string): readonly Json[] => {
  const seen = new Set<string | undefined>()
  return entries.filter(entry => {
    const name = entry.get(key)?.asString()
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
