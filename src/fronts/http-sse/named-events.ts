import type { Sse } from '../../config/snapshot.ts'

/** Events that a channel may carry besides `endpoint` and those that hold a JSON-RPC message. */
export interface NamedEvents {
  readonly lifecycle: boolean // `lifecycle`, and `error` before the gateway ends a broken channel
  readonly ping: 'never' | 'oldest' | 'always' // oldest: only while the client speaks 2024-11-05
}

/**
 * The 2024-11-05 transport defines `endpoint` and `message` only, and some of its clients fail on any other event.
 * A GET of `/mcp/<workspace>` belongs to a dialect that has more. `?events=` replaces what the endpoint would send.
 */
export const chooseNamedEvents = (
  openedBy: 'sse' | 'mcp',
  query: URLSearchParams,
  configured: Sse['events'] = [],
): NamedEvents => {
  const asked = query.getAll('events').flatMap(names => names.split(',').map(name => name.trim()))
  if (asked.length > 0) return asNamed(asked)
  return openedBy === 'mcp' ? { lifecycle: true, ping: 'oldest' } : asNamed(configured)
}

const asNamed = (names: readonly string[]): NamedEvents => ({
  lifecycle: names.includes('lifecycle'),
  ping: names.includes('ping') ? 'always' : 'never',
})
