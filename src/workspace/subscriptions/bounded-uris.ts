import type { Exchange } from '../../protocol/exchange.ts'

const MOST_URIS = 1000 // a legacy server gets a request for each, and again after each restart
const LISTS = 'notifications'
const URIS = 'resourceSubscriptions'

/** The listen with the first of its URIs, each once; the acknowledgement tells the client which these are. */
export const withBoundedUris = (exchange: Exchange): Exchange => {
  const notifications = exchange.params.get(LISTS)
  const list = notifications?.get(URIS)
  if (!notifications?.isObject || list?.kind !== 'array') return exchange
  const uris = list.elements()
  if (uris.length <= MOST_URIS) return exchange
  const distinct = new Map(uris.map(uri => [uri.toString(), uri]))
  const first = [...distinct.values()].slice(0, MOST_URIS)
  return { ...exchange, params: exchange.params.with(LISTS, notifications.with(URIS, first)) }
}
