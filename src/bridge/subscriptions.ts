import { Abort } from '../protocol/cancellation.ts'
import { deliver } from '../protocol/deliver.ts'
import { rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { NOTIFICATIONS } from '../protocol/notifications.ts'
import { Json } from '../wire/json/json.ts'

const ACKNOWLEDGE_MS = 5000 // for a server to acknowledge a listen: until then `resources/subscribe` waits
const BEGIN_MS = 5000 // for the listen of a session to begin, which may need a connection first

/** The subscriptions of legacy sessions at one modern server, kept as `subscriptions/listen` requests. */
export class LegacySubscriptions {
  readonly #sessions = new Map<string, SessionSubscriptions>()
  readonly #waiting = new Map<string, Set<() => void>>() // for the listen of a session to begin

  /** Serves the `subscriptions/listen` of a session, which the front opens when the session begins. */
  listen(exchange: Exchange, dispatch: Dispatch): void {
    if (exchange.signal.reason) return // a listener that comes too late: a modern server has no session that it ends
    const id = exchange.caller.session ?? ''
    const session = new SessionSubscriptions(exchange, dispatch, this.#sessions.get(id)?.uris)
    this.#sessions.set(id, session)
    exchange.signal.onAbort(reason => {
      if (this.#sessions.get(id) === session) this.#sessions.delete(id)
      session.end(reason)
    })
    session.listen()
    for (const begin of [...(this.#waiting.get(id) ?? [])]) begin()
  }

  subscribe(exchange: Exchange): void {
    this.#change(exchange, (uris, uri) => uris.add(uri))
  }

  unsubscribe(exchange: Exchange): void {
    this.#change(exchange, (uris, uri) => uris.delete(uri))
  }

  #change(exchange: Exchange, apply: (uris: Set<string>, uri: string) => void): void {
    const uri = exchange.params.get('uri')?.asString()
    const session = this.#sessions.get(exchange.caller.session ?? '')
    const refuse = (message: string): void =>
      void deliver(exchange.sink, { kind: 'failure', error: rpcError('invalidParams', message) })
    if (uri === undefined) return refuse('`uri` must be a string')
    if (!session)
      return this.#whenListening(
        exchange,
        () => this.#change(exchange, apply),
        () => refuse('The session does not listen yet: send notifications/initialized first, or try again later'),
      )
    const { uris } = session
    const wasSubscribed = uris.has(uri)
    apply(uris, uri)
    session.listen(honoured => {
      if (!uris.has(uri) || honoured.has(uri))
        return void deliver(exchange.sink, { kind: 'result', result: Json.empty })
      if (!wasSubscribed) uris.delete(uri)
      refuse(`The server does not offer subscriptions to ${uri}`)
    })
  }

  #whenListening({ caller, signal }: Exchange, begun: () => void, late: () => void): void {
    const id = caller.session ?? ''
    const waiting = this.#waiting.get(id) ?? new Set()
    const stop = (): void => {
      clearTimeout(timer)
      waiting.delete(begin)
      if (waiting.size === 0) this.#waiting.delete(id)
      stopListening()
    }
    const begin = (): void => {
      stop()
      begun()
    }
    const timer = setTimeout(() => {
      stop()
      late()
    }, BEGIN_MS).unref()
    const stopListening = signal.onAbort(stop)
    this.#waiting.set(id, waiting.add(begin))
  }
}

interface ListenRequest {
  readonly abort: Abort
  /** Reports the URIs that the server honours; the first report counts. */
  readonly settle: (honoured: ReadonlySet<string>) => void
}

const NONE: ReadonlySet<string> = new Set()

/** What one legacy session listens to. */
class SessionSubscriptions {
  readonly uris: Set<string>
  readonly #exchange: Exchange
  readonly #dispatch: Dispatch
  readonly #requests: ListenRequest[] = [] // the one in force, then those that will replace it
  #isAcknowledged = false

  constructor(exchange: Exchange, dispatch: Dispatch, uris: Set<string> = new Set()) {
    this.#exchange = exchange
    this.#dispatch = dispatch
    this.uris = uris
  }

  end(reason: Parameters<Abort['abort']>[0]): void {
    for (const { abort } of this.#requests.splice(0)) abort.abort(reason)
  }

  /** Sends a listen for the URIs of now; the old one ends only when the new one is acknowledged. */
  listen(onSettled: (honoured: ReadonlySet<string>) => void = () => {}): void {
    let isSettled = false
    const settle = (honoured: ReadonlySet<string>): void => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      onSettled(honoured)
    }
    const request: ListenRequest = { abort: new Abort(), settle }
    const timer = setTimeout(() => {
      settle(NONE)
      if (this.#requests.length === 1) return // the only one may still be acknowledged
      if (this.#remove(request)) request.abort.abort({ kind: 'expired' })
    }, ACKNOWLEDGE_MS).unref()
    this.#requests.push(request)
    this.#dispatch({
      ...this.#exchange,
      params: this.#params(),
      signal: request.abort,
      sink: frame => this.#receive(frame, request),
    })
  }

  #params(): Json {
    const { params } = this.#exchange
    const wanted = params.get('notifications') ?? Json.empty
    const uris = [...this.uris]
    const field = 'resourceSubscriptions'
    return params.with('notifications', uris.length > 0 ? wanted.with(field, uris) : wanted.without(field))
  }

  #receive(frame: Frame, request: ListenRequest): void | Promise<void> {
    if (frame.kind === 'notice' && frame.method === NOTIFICATIONS.acknowledged) {
      const uris = frame.params.at('notifications', 'resourceSubscriptions')?.elements() ?? []
      this.#acknowledged(request, new Set(uris.map(uri => uri.asString() ?? '')))
      if (this.#isAcknowledged) return // the session knows of one listen only
      this.#isAcknowledged = true
    } else if (frame.kind !== 'notice' && frame.kind !== 'question') {
      const wasPending = this.#remove(request)
      request.settle(NONE)
      if (!wasPending || this.#requests.length > 0) return // another one is in force, or will be
    }
    return this.#exchange.sink(frame)
  }

  #acknowledged(request: ListenRequest, honoured: ReadonlySet<string>): void {
    const at = this.#requests.indexOf(request)
    if (at < 0) return // it has expired, or a newer one is in force
    request.settle(honoured)
    // Acknowledgements may overtake each other: the newer list includes what an older request asked for.
    for (const older of this.#requests.splice(0, at)) {
      older.settle(honoured)
      older.abort.abort({ kind: 'closing' })
    }
  }

  #remove(request: ListenRequest): boolean {
    const at = this.#requests.indexOf(request)
    if (at >= 0) this.#requests.splice(at, 1)
    return at >= 0
  }
}
