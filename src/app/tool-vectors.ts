import { setImmediate as releaseEventLoop } from 'node:timers/promises'
import { createQueryEmbedder } from '../servers/memory/extract/embed-query.ts'
import { createEmbedder, type EmbeddingOptions } from '../servers/memory/extract/embedder.ts'
import { createEndpoint } from '../servers/memory/extract/endpoint.ts'
import { backoffMs } from '../std/time.ts'
import type { Log } from '../telemetry/log.ts'
import type { ToolMeaning } from '../workspace/budget/tool-meaning.ts'

const MOST_VECTORS = 20_000
const UNUSED_MS = 60 * 60_000 // a vector that no search has used for so long makes room for others
const BATCH = 64 // texts in one request
const PAUSE = { firstMs: 10_000, longestMs: 10 * 60_000 } // after a failure
const COMPARED_AT_ONCE = 2000 // so that other requests are not held up

interface KnownVector {
  readonly vector: Float32Array // of length 1
  usedAt: number
}

/** The vectors of tools by one model, made in the background: a search ranks by words until all of its tools have one. */
export class ToolVectors {
  readonly #log: Log
  readonly #options: EmbeddingOptions
  readonly #endpoint: ReturnType<typeof createEndpoint>
  readonly #embedder: ReturnType<typeof createEmbedder>
  readonly #embedQuery: ReturnType<typeof createQueryEmbedder>
  readonly #known = new Map<string, KnownVector>()
  #model: string | undefined // of the vectors
  #work: Promise<void> | undefined
  #failures = 0
  #pausedUntil = 0

  constructor(options: EmbeddingOptions, log: Log) {
    this.#options = options
    this.#log = log
    this.#endpoint = createEndpoint(options)
    this.#embedder = createEmbedder(this.#endpoint, options)
    this.#embedQuery = createQueryEmbedder({ embedder: this.#embedder, timeoutMs: options.queryTimeoutMs, log })
  }

  /** The places of the tools, the nearest to the query first; undefined: not known yet. Never rejects. */
  async rank(query: string, tools: readonly ToolMeaning[]): Promise<readonly number[] | undefined> {
    const missing = tools.filter(({ key }) => !this.#known.has(key))
    if (missing.length > 0) {
      this.#fill(missing)
      return undefined
    }
    const embedding = await this.#embedQuery(query)
    if (!embedding) return undefined
    if (embedding.model === this.#model) return this.#nearest(unitVector(embedding.vector), tools)
    this.#known.clear() // the endpoint has another model now
    return undefined
  }

  async close(): Promise<void> {
    await this.#endpoint.close()
    await this.#work
  }

  async #nearest(query: Float32Array, tools: readonly ToolMeaning[]): Promise<readonly number[] | undefined> {
    const [now, similarities] = [Date.now(), new Float32Array(tools.length)]
    for (const [at, { key }] of tools.entries()) {
      const known = this.#known.get(key)
      if (!known) return undefined // it has been dropped meanwhile
      known.usedAt = now
      similarities[at] = dot(query, known.vector)
      if (at % COMPARED_AT_ONCE === COMPARED_AT_ONCE - 1) await releaseEventLoop()
    }
    return tools.map((_, at) => at).sort((a, b) => (similarities[b] ?? 0) - (similarities[a] ?? 0))
  }

  #fill(missing: readonly ToolMeaning[]): void {
    if (this.#work || Date.now() < this.#pausedUntil) return
    this.#work = this.#embedAll([...new Map(missing.map(tool => [tool.key, tool])).values()])
      .then(() => {
        this.#failures = 0
      })
      .catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error)
        if (this.#failures === 0)
          this.#log.warn({ reason }, 'tools are searched by words only: no vectors of their texts')
        this.#pausedUntil = Date.now() + backoffMs(PAUSE, this.#failures++)
      })
      .finally(() => {
        this.#work = undefined
      })
  }

  async #embedAll(tools: readonly ToolMeaning[]): Promise<void> {
    this.#makeRoom(tools.length)
    for (let at = 0; at < tools.length; at += BATCH) {
      const batch = tools.slice(at, at + BATCH)
      const { model, vectors } = await this.#embedder.embed(batch.map(({ text }) => text))
      if (this.#model !== model) this.#known.clear()
      this.#model = model
      for (const [place, { key }] of batch.entries())
        this.#known.set(key, { vector: unitVector(vectors[place] as Float32Array), usedAt: Date.now() })
    }
    this.#log.info({ tools: tools.length, model: this.#options.model }, 'tools embedded for search')
  }

  #makeRoom(wanted: number): void {
    if (this.#known.size + wanted <= MOST_VECTORS) return
    const oldest = Date.now() - UNUSED_MS
    for (const [key, { usedAt }] of this.#known) if (usedAt < oldest) this.#known.delete(key)
    if (this.#known.size + wanted > MOST_VECTORS) throw new Error(`more than ${MOST_VECTORS} tools are searched`)
  }
}

const dot = (one: Float32Array, other: Float32Array): number => {
  let sum = 0
  for (let at = 0; at < one.length; at++) sum += (one[at] as number) * (other[at] as number)
  return sum
}

const unitVector = (vector: Float32Array): Float32Array => {
  const length = Math.sqrt(dot(vector, vector)) || 1
  return vector.map(value => value / length)
}
