import type { Exchange } from '../../protocol/exchange.ts'
import type { Json } from '../../wire/json/json.ts'

/** What a session has told its server for good, so that a server that takes over can be told again. */
export class SessionReplay {
  readonly #subscriptions = new Map<string, Json>()
  #level: Json | undefined

  /** True while a resource is watched. */
  get isWatching(): boolean {
    return this.#subscriptions.size > 0
  }

  /** Takes note of a request that succeeded. */
  remember({ method, params }: Exchange): void {
    const uri = params.get('uri')?.asString() ?? ''
    if (method === 'logging/setLevel') this.#level = params.compact()
    else if (method === 'resources/subscribe') this.#subscriptions.set(uri, params.compact())
    else if (method === 'resources/unsubscribe') this.#subscriptions.delete(uri)
  }

  /** The requests to send to a new server, method and params. */
  again(): [string, Json][] {
    const again: [string, Json][] = [...this.#subscriptions.values()].map(params => ['resources/subscribe', params])
    if (this.#level) again.push(['logging/setLevel', this.#level])
    return again
  }
}
