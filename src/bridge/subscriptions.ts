import { Abort } from '../protocol/cancellation.ts'
import { deliver } from '../protocol/deliver.ts'
import { rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange } from '../protocol/exchange.ts'
import { Json } from '../wire/json/json.ts'

/** What one legacy session listens to at a modern server: its standing exchange and the URIs it watches. */
interface Watch {
  readonly standing: Exchange
  readonly uris: Set<string>
  readonly listens: Listen[] // the one in force, then those that shall replace it
  isAcknowledged: boolean
}

interface Listen {
  readonly abort: Abort
  readonly settle: (honoured: ReadonlySet<string>) => void
}

/** Keeps what legacy sessions watch at one modern server, as `subscriptions/listen` exchanges of our own. */
export interface Subscriptions {
  begin(standing: Exchange, dispatch: Dispatch): void
  watch(exchange: Exchange, dispatch: Dispatch): void
  unwatch(exchange: Exchange, dispatch: Dispatch): void
}

export const createSubscriptions = (): Subscriptions => {
  const watches = new Map<string, Watch>()

  const begin = (standing: Exchange, dispatch: Dispatch): void => {
    const session = standing.caller.session ?? ''
    const watch: Watch = { standing, uris: watches.get(session)?.uris ?? new Set(), listens: [], isAcknowledged: false }
    watches.set(session, watch)
    standing.signal.onAbort(reason => {
      if (watches.get(session) === watch) watches.delete(session)
      for (const { abort } of watch.listens.splice(0)) abort.abort(reason)
    })
    relisten(watch, dispatch, () => {})
  }

  const change = (exchange: Exchange, dispatch: Dispatch, apply: (uris: Set<string>, uri: string) => void): void => {
    const uri = exchange.params.get('uri')?.asString()
    const watch = watches.get(exchange.caller.session ?? '')
    const refuse = (message: string): void =>
      void deliver(exchange.sink, { kind: 'failure', error: rpcError('invalidParams', message) })
    if (uri === undefined) return refuse('`uri` must be a string')
    if (!watch) return refuse('Subscriptions need a session: send notifications/initialized first')
    const before = watch.uris.has(uri)
    apply(watch.uris, uri)
    relisten(watch, dispatch, honoured => {
      const wanted = watch.uris.has(uri)
      if (!wanted || honoured.has(uri)) void deliver(exchange.sink, { kind: 'result', result: Json.empty })
      else {
        if (!before) watch.uris.delete(uri)
        refuse(`The server does not offer subscriptions to ${uri}`)
      }
    })
  }

  return {
    begin,
    watch: (exchange, dispatch) => change(exchange, dispatch, (uris, uri) => uris.add(uri)),
    unwatch: (exchange, dispatch) => change(exchange, dispatch, (uris, uri) => uris.delete(uri)),
  }
}

const PATIENCE_MS = 5000 // for a server to acknowledge a listen: until then the caller of `resources/subscribe` waits
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'

/** Make before break: the old listen ends only when the new one is acknowledged. */
const relisten = (watch: Watch, dispatch: Dispatch, settled: (honoured: ReadonlySet<string>) => void): void => {
  let isSettled = false
  const settle = (honoured: ReadonlySet<string>) => {
    if (isSettled) return
    isSettled = true
    clearTimeout(late)
    settled(honoured)
  }
  const listen: Listen = { abort: new Abort(), settle }
  const late = setTimeout(() => {
    settle(new Set())
    const at = watch.listens.indexOf(listen)
    if (at < 0 || watch.listens.length === 1) return // the only one may still be acknowledged
    watch.listens.splice(at, 1)
    listen.abort.abort({ kind: 'expired' })
  }, PATIENCE_MS)
  late.unref()
  watch.listens.push(listen)
  const acknowledged = (honoured: ReadonlySet<string>): void => {
    const at = watch.listens.indexOf(listen)
    if (at < 0) return // it was given up, or a newer one is in force
    settle(honoured)
    // Acknowledgements may overtake each other: the newer list holds what an older one asked for.
    for (const older of at > 0 ? watch.listens.splice(0, at) : []) {
      older.settle(honoured)
      older.abort.abort({ kind: 'closing' })
    }
  }
  const { standing } = watch
  const notifications = (standing.params.get('notifications') ?? Json.empty).with('resourceSubscriptions', [
    ...watch.uris,
  ])
  dispatch({
    ...standing,
    params: standing.params.with(
      'notifications',
      watch.uris.size > 0 ? notifications : notifications.without('resourceSubscriptions'),
    ),
    signal: listen.abort,
    sink: frame => {
      if (frame.kind === 'notice' && frame.method === ACKNOWLEDGED) {
        const uris = frame.params.at('notifications', 'resourceSubscriptions')?.elements() ?? []
        acknowledged(new Set(uris.map(uri => uri.asString() ?? '')))
        if (watch.isAcknowledged) return
        watch.isAcknowledged = true
        return standing.sink(frame) // the first says that somebody is there; of the others the session knows nothing
      }
      if (frame.kind !== 'notice' && frame.kind !== 'question') {
        const at = watch.listens.indexOf(listen)
        if (at >= 0) watch.listens.splice(at, 1)
        settle(new Set())
        if (at < 0 || watch.listens.length > 0) return // another is in force, or will be
      }
      return standing.sink(frame)
    },
  })
}
