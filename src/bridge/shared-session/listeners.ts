import { NEVER } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

const FLAGS: ReadonlyMap<string, string> = new Map([
  ['notifications/tools/list_changed', 'toolsListChanged'],
  ['notifications/prompts/list_changed', 'promptsListChanged'],
  ['notifications/resources/list_changed', 'resourcesListChanged'],
])
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const UPDATED = 'notifications/resources/updated'
const PATIENCE_MS = 5000 // for a server to accept a subscription

interface Listener {
  readonly exchange: Exchange
  readonly uris: Set<string>
}

interface Watch {
  listeners: number
  readonly accepted: Promise<boolean>
}

/** The modern listeners on one legacy session: each hears what it asked for, each URI is subscribed once. */
export class Listeners {
  readonly #dispatch: Dispatch
  readonly #all = new Set<Listener>()
  readonly #watched = new Map<string, Watch>()
  #honoured: Json = Json.empty // list flags the server stands for
  #isKnown: Promise<void>
  #know: () => void = () => {}

  constructor(dispatch: Dispatch) {
    this.#dispatch = dispatch
    this.#isKnown = new Promise(resolve => {
      this.#know = resolve
    })
  }

  get size(): number {
    return this.#all.size
  }

  add(exchange: Exchange, left: () => void): void {
    const listener: Listener = { exchange, uris: new Set() }
    this.#all.add(listener)
    exchange.signal.onAbort(() => {
      this.#remove(listener)
      left()
    })
    void this.#acknowledge(listener)
  }

  tell(method: string, params: Json): void {
    if (method === ACKNOWLEDGED) {
      this.#honoured = params.get('notifications') ?? Json.empty
      return this.#know()
    }
    for (const listener of this.#all)
      if (this.#wants(listener, method, params))
        void deliver(listener.exchange.sink, { kind: 'notice', method, params })
  }

  /** The session is over; a listener is told so and may come back. */
  end(): void {
    for (const listener of [...this.#all]) {
      this.#all.delete(listener)
      void deliver(listener.exchange.sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
    }
    this.#watched.clear()
  }

  #wants({ exchange, uris }: Listener, method: string, params: Json): boolean {
    const flag = FLAGS.get(method)
    if (flag !== undefined) return exchange.params.at('notifications', flag)?.asBoolean() === true
    const uri = params.get('uri')?.asString()
    // An update may name a part of what was subscribed to.
    return (
      method === UPDATED &&
      uri !== undefined &&
      [...uris].some(watched => uri === watched || uri.startsWith(`${watched}/`))
    )
  }

  /** Says first of all what will be honoured. */
  async #acknowledge(listener: Listener): Promise<void> {
    const { exchange } = listener
    const wanted = exchange.params.get('notifications') ?? Json.empty
    const named = (wanted.get('resourceSubscriptions')?.elements() ?? []).flatMap(uri => uri.asString() ?? [])
    const uris = [...new Set(named)]
    await Promise.all([within(PATIENCE_MS, this.#isKnown), ...uris.map(uri => this.#watch(listener, uri))])
    if (!this.#all.has(listener)) return
    const flags = this.#honoured.entries().filter(([flag]) => wanted.get(flag)?.asBoolean() === true)
    const notifications = {
      ...Object.fromEntries(flags),
      ...(uris.length > 0 && { resourceSubscriptions: [...listener.uris] }),
    }
    void deliver(exchange.sink, { kind: 'notice', method: ACKNOWLEDGED, params: Json.of({ notifications }) })
  }

  async #watch(listener: Listener, uri: string): Promise<void> {
    const { exchange } = listener
    const watch = this.#watched.get(uri) ?? { listeners: 0, accepted: this.#say('resources/subscribe', uri, exchange) }
    this.#watched.set(uri, watch)
    watch.listeners++
    if ((await watch.accepted) && this.#all.has(listener)) listener.uris.add(uri)
    else this.#forget(uri, exchange)
  }

  #remove(listener: Listener): void {
    if (!this.#all.delete(listener)) return
    for (const uri of listener.uris) this.#forget(uri, listener.exchange)
  }

  #forget(uri: string, exchange: Exchange): void {
    const watch = this.#watched.get(uri)
    if (!watch || --watch.listeners > 0) return
    this.#watched.delete(uri)
    void this.#say('resources/unsubscribe', uri, exchange)
  }

  #say(method: string, uri: string, { caller }: Exchange): Promise<boolean> {
    return new Promise(resolve => {
      const timer = setTimeout(() => resolve(false), PATIENCE_MS)
      timer.unref()
      this.#dispatch({
        kind: 'request',
        method,
        params: Json.of({ uri }),
        caller,
        signal: NEVER,
        sink: frame => {
          if (frame.kind !== 'result' && frame.kind !== 'failure') return
          clearTimeout(timer)
          resolve(frame.kind === 'result')
        },
      })
    })
  }
}

/** Settles with the work, or without it when it takes too long. */
const within = (ms: number, work: Promise<void>): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    timer.unref()
    void work.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
