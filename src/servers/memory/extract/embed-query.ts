import type { Log } from '../../../telemetry/log.ts'
import type { Instant } from '../model.ts'
import type { Embedding } from '../search/passages.ts'
import type { Embed } from '../tools/searching.ts'
import type { Embedder } from './embedder.ts'

export interface QueryParts {
  readonly embedder: Embedder
  readonly timeoutMs?: number | undefined
  readonly log: Log
  readonly now?: () => Instant
}

const TIMEOUT_MS = 1_000
const MOST_KEPT = 500
const LONGEST_QUERY = 2_000
const FIRST_REST_MS = 5_000
const LONGEST_REST_MS = 5 * 60_000

const within = async <Result>(ms: number, work: Promise<Result>): Promise<Result> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms).unref()
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Turns queries into vectors. A search never waits long for one: without it, it goes by words alone. */
export const createQueryEmbed = ({ embedder, timeoutMs = TIMEOUT_MS, log, now = Date.now }: QueryParts): Embed => {
  const recent = new Map<string, Embedding>() // the latest last
  let failures = 0
  let restsUntil = 0

  const keep = (query: string, embedding: Embedding): Embedding => {
    recent.delete(query)
    recent.set(query, embedding)
    const [oldest] = recent.keys()
    if (recent.size > MOST_KEPT && oldest !== undefined) recent.delete(oldest)
    return embedding
  }
  const fail = (error: unknown): undefined => {
    const message = error instanceof Error ? error.message : String(error)
    if (failures === 0) log.warn({ error: message }, 'queries get no vectors, so search goes by words alone for now')
    restsUntil = now() + Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** failures++)
    return undefined
  }
  const recover = (embedding: Embedding | undefined): Embedding | undefined => {
    if (failures > 0) log.info({}, 'queries get vectors again')
    failures = 0
    return embedding
  }
  const ask = async (query: string): Promise<Embedding | undefined> => {
    const { model, vectors } = await embedder.embed([query])
    const [vector] = vectors
    // After a change of model the old ones are of no use.
    if ([...recent.values()].at(-1)?.model !== model) recent.clear()
    return vector && keep(query, { model, vector })
  }
  return async text => {
    const query = text.trim().slice(0, LONGEST_QUERY)
    const known = recent.get(query)
    if (known) return keep(query, known)
    if (query === '' || now() < restsUntil) return undefined
    return within(timeoutMs, ask(query)).then(recover, fail)
  }
}
