import type { Log } from '../../../telemetry/log.ts'
import type { Instant } from '../model.ts'
import type { EmbedQuery } from '../search/passages.ts'
import type { MemoryStore } from '../store.ts'
import type { JobHandler } from '../worker.ts'
import { createModelBudget } from './budget.ts'
import { createChat } from './chat.ts'
import { createEmbedJob, prepareFor } from './embed-job.ts'
import { createQueryEmbedder } from './embed-query.ts'
import { createEmbedder, type EmbeddingOptions } from './embedder.ts'
import { createEndpoint } from './endpoint.ts'
import { createExtractJob, type ExtractionOptions } from './extract-job.ts'

export interface ModelOptions {
  readonly extraction?: ExtractionOptions | undefined
  readonly embedding?: EmbeddingOptions | undefined
  readonly now?: () => Instant
}

/** The work of the configured models for a memory. */
export interface Models {
  readonly extract?: JobHandler
  readonly embedJob?: JobHandler
  readonly embed: EmbedQuery
  /** Called before a tenant's first job: enqueues the replacement of another model's vectors. */
  readonly prepare?: (store: MemoryStore) => Promise<void>
  /** Aborts running calls; their jobs stay enqueued. */
  close(): Promise<void>
}

export const createModels = ({ extraction, embedding, now = Date.now }: ModelOptions, log: Log): Models => {
  const reader = extraction && createExtraction(extraction, embedding !== undefined, now, log)
  const embedder = embedding && createEmbedding(embedding, now, log)
  return {
    embed: async () => undefined,
    ...reader?.parts,
    ...embedder?.parts,
    close: async () => {
      await Promise.all([reader?.endpoint.close(), embedder?.endpoint.close()])
    },
  }
}

const createExtraction = (options: ExtractionOptions, embeds: boolean, now: () => Instant, log: Log) => {
  const endpoint = createEndpoint(options, now)
  const chat = createChat(endpoint)
  const spend = createModelBudget('extraction', options, now)
  return { endpoint, parts: { extract: createExtractJob({ endpoint, chat, spend, options, embeds, log }) } }
}

const createEmbedding = (options: EmbeddingOptions, now: () => Instant, log: Log) => {
  const endpoint = createEndpoint(options, now)
  const embedder = createEmbedder(endpoint, options, now)
  const spend = createModelBudget('embedding', options, now)
  const parts = {
    embedJob: createEmbedJob({ embedder, spend, options, log }),
    embed: createQueryEmbedder({ embedder, timeoutMs: options.queryTimeoutMs, log, now }),
    prepare: prepareFor(options),
  }
  return { endpoint, parts }
}
