import { BoundedCache } from '../../../std/bounded-cache.ts'
import { backoffMs, within } from '../../../std/time.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { Instant } from '../model.ts'
import type { Embedding, EmbedQuery } from '../search/passages.ts'
import type { Embedder } from './embedder.ts'

export interface QueryEmbedderOptions {
  readonly embedder: Embedder
  readonly timeoutMs?: number | undefined
  readonly log: Log
  readonly now?: () => Instant
}

const TIMEOUT_MS = 1_000
const MOST_CACHED = 500
const LONGEST_QUERY = 2_000
const PAUSE = { firstMs: 10_000, longestMs: 10 * 60_000 } // after a failure

/** Turns queries into vectors. A search never waits long for one: without it, it matches words only. */
export const createQueryEmbedder = ({
  embedder,
  timeoutMs = TIMEOUT_MS,
  log,
  now = Date.now,
}: QueryEmbedderOptions): EmbedQuery => {
  const cache = new BoundedCache<Embedding>(MOST_CACHED, Number.POSITIVE_INFINITY)
  let cachedModel: string | undefined
  let failures = 0
  let pausedUntil = 0

  const request = async (query: string): Promise<Embedding | undefined> => {
    const { model, vectors } = await embedder.embed([query])
    if (cachedModel !== model) cache.clear()
    cachedModel = model
    const [vector] = vectors
    if (!vector) return undefined
    cache.set(query, { model, vector })
    return cache.get(query)
  }
  const late = (): never => {
    throw new Error(`no answer within ${timeoutMs} ms`)
  }
  return async text => {
    const query = text.trim().slice(0, LONGEST_QUERY)
    const cached = cache.get(query)
    if (cached || query === '' || now() < pausedUntil) return cached
    try {
      const embedding = await within(timeoutMs, request(query), late)
      if (failures > 0) log.info({}, 'query embedding recovered')
      failures = 0
      return embedding
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      if (failures === 0) log.warn({ error: message }, 'query embedding failed; search matches words only for now')
      pausedUntil = now() + backoffMs(PAUSE, failures++)
      return undefined
    }
  }
}
