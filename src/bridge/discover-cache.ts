import { principalKey } from '../protocol/callers.ts'
import { capabilitiesFingerprint } from '../protocol/capabilities.ts'
import { deliver } from '../protocol/deliver.ts'
import type { Caller, Dispatch } from '../protocol/exchange.ts'
import { BoundedCache } from '../std/bounded-cache.ts'
import { Json } from '../wire/json/json.ts'

const DISCOVER = 'server/discover'
const MOST = 1000
const MOST_PER_PRINCIPAL = 64
const MOST_BYTES = 64 * 1024 // of one result
const MOST_MS = 60_000 // upper bound: the gateway does not notice when a server is replaced

interface KnownDiscovery {
  readonly result: Json // in the caller's revision
  readonly until: number
}

/**
 * What a modern server has answered to `server/discover`, for legacy clients: each of their sessions begins with it. It is
 * kept as long as the server lets its answer be cached, and shared as its `cacheScope` says.
 */
export class DiscoverCache {
  readonly #known = new BoundedCache<KnownDiscovery>(MOST, MOST_MS, { mostPerGroup: MOST_PER_PRINCIPAL })

  /** Answers requests without params of their own from what is known. */
  wrap(dispatch: Dispatch): Dispatch {
    return exchange => {
      const isPlain = exchange.method === DISCOVER && exchange.params === Json.empty
      const result = isPlain ? this.#find(exchange.caller) : undefined
      if (!result) return dispatch(exchange)
      void deliver(exchange.sink, { kind: 'result', result })
    }
  }

  /** Keeps a result: `native` is in the server's revision, with its caching hints, and `result` in the caller's. */
  readonly keep = (caller: Caller, native: Json, result: Json): void => {
    const ttlMs = Math.min(MOST_MS, native.get('ttlMs')?.asNumber() ?? 0)
    const isPublic = native.get('cacheScope')?.isString('public') === true
    if (!(ttlMs > 0) || (!isPublic && caller.principal === undefined) || result.size > MOST_BYTES) return
    const key = isPublic ? publicKeyOf(caller) : privateKeyOf(caller)
    const known = { result: result.compact(), until: Date.now() + ttlMs }
    this.#known.set(key, known, principalKey(caller.principal))
  }

  #find(caller: Caller): Json | undefined {
    return this.#fresh(publicKeyOf(caller)) ?? this.#fresh(privateKeyOf(caller))
  }

  #fresh(key: string): Json | undefined {
    const known = this.#known.get(key)
    if (!known || known.until > Date.now()) return known?.result
    this.#known.delete(key)
    return undefined
  }
}

/** Equal for callers that get the same public results: each revision has a form of its own. */
const publicKeyOf = ({ revision, capabilities }: Caller): string =>
  `${revision} ${capabilitiesFingerprint(capabilities)}`

/** No key of public results contains a line break. */
const privateKeyOf = (caller: Caller): string => `${principalKey(caller.principal)}\n${publicKeyOf(caller)}`
