import { Abort } from '../protocol/abort.ts'
import { rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange } from '../protocol/exchange.ts'
import { Json } from '../wire/json.ts'

/** What one legacy session listens to at a modern server: its standing exchange and the URIs it watches. */
interface Watch {
  readonly standing: Exchange
  readonly uris: Set<string>
  listen: Abort | undefined // ends the listen now in force
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
    const watch: Watch = { standing, uris: watches.get(session)?.uris ?? new Set(), listen: undefined }
    watches.set(session, watch)
    standing.signal.onAbort(reason => {
      if (watches.get(session) === watch) watches.delete(session)
      watch.listen?.abort(reason)
    })
    relisten(watch, dispatch, () => {})
  }

  const change = (exchange: Exchange, dispatch: Dispatch, apply: (uris: Set<string>, uri: string) => void): void => {
    const uri = exchange.params.get('uri')?.asString()
    const watch = watches.get(exchange.caller.session ?? '')
    const refuse = (message: string) => exchange.sink({ kind: 'failure', error: rpcError('invalidParams', message) })
    if (uri === undefined) return void refuse('`uri` must be a string')
    if (!watch) return void refuse('Subscriptions need a session: send notifications/initialized first')
    const before = watch.uris.has(uri)
    apply(watch.uris, uri)
    relisten(watch, dispatch, honoured => {
      const wanted = watch.uris.has(uri)
      if (!wanted || honoured.has(uri)) exchange.sink({ kind: 'result', result: Json.empty })
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

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'

/** Make before break: the old listen ends only when the new one is acknowledged. */
const relisten = (watch: Watch, dispatch: Dispatch, settled: (honoured: ReadonlySet<string>) => void): void => {
  const old = watch.listen
  const listen = new Abort()
  watch.listen = listen
  let acknowledged = false
  const settle = (honoured: ReadonlySet<string>) => {
    if (acknowledged) return
    acknowledged = true
    old?.abort({ kind: 'closing' })
    settled(honoured)
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
    signal: listen,
    sink: frame => {
      if (frame.kind === 'notice' && frame.method === ACKNOWLEDGED) {
        const uris = frame.params.at('notifications', 'resourceSubscriptions')?.elements() ?? []
        return settle(new Set(uris.map(uri => uri.asString() ?? '')))
      }
      if (frame.kind !== 'notice' && frame.kind !== 'question') {
        settle(new Set())
        if (watch.listen !== listen || listen.reason) return
      }
      return standing.sink(frame)
    },
  })
}
