import type { Exchange } from '../../protocol/exchange.ts'
import type { Json } from '../../wire/json/json.ts'

/** The state a client has set up at its server, so that it can be restored at a new one. */
export class SessionReplay {
  readonly #subscriptions = new Map<string, Json>()
  #level: Json | undefined

  get hasSubscriptions(): boolean {
    return this.#subscriptions.size > 0
  }

  /** Of the resources that are subscribed to. */
  get uris(): Iterable<string> {
    return this.#subscriptions.keys()
  }

  /** Takes note of a request that succeeded. */
  remember({ method, params }: Pick<Exchange, 'method' | 'params'>): void {
    if (method === 'logging/setLevel') this.#level = params.compact()
    else if (method === 'resources/subscribe') this.#subscriptions.set(uriOf(params), params.compact())
    else if (method === 'resources/unsubscribe') this.#subscriptions.delete(uriOf(params))
  }

  /** The requests to send to a new server: method and params. */
  requests(): [string, Json][] {
    const requests: [string, Json][] = [...this.#subscriptions.values()].map(params => ['resources/subscribe', params])
    if (this.#level) requests.push(['logging/setLevel', this.#level])
    return requests
  }
}

const uriOf = (params: Json): string => params.get('uri')?.asString() ?? ''
