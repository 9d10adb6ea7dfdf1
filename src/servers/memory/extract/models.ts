import type { Log } from '../../../telemetry/log.ts'
import type { Instant } from '../model.ts'
import type { MemoryStore } from '../store.ts'
import type { Embed } from '../tools/searching.ts'
import type { Handle } from '../worker.ts'
import { createBudget } from './budget.ts'
import { createChat } from './chat.ts'
import { createEmbedJob, prepareFor } from './embed-job.ts'
import { createQueryEmbed } from './embed-query.ts'
import { createEmbedder } from './embedder.ts'
import { createEndpoint } from './endpoint.ts'
import { createExtractJob } from './extract-job.ts'
import type { EmbeddingOptions, ExtractionOptions } from './options.ts'

export interface ModelOptions {
  readonly extraction?: ExtractionOptions | undefined
  readonly embedding?: EmbeddingOptions | undefined
  readonly now?: () => Instant
}

/** What models do for a memory; without options, nothing. */
export interface Models {
  readonly extract?: Handle // of jobs of the kind `extract`
  readonly embedJob?: Handle // of jobs of the kind `embed`
  readonly embed: Embed
  /** Looks at a memory when it is first worked on: vectors of another model are replaced. */
  readonly prepare?: (store: MemoryStore) => Promise<void>
  /** Breaks off calls; their jobs wait and are done another time. */
  close(): Promise<void>
}

const NOTHING: Omit<Models, 'close'> = { embed: async () => undefined }

/** Sets up the models that are configured. */
export const createModels = ({ extraction, embedding, now = Date.now }: ModelOptions, log: Log): Models => {
  const reader = extraction && extractionBy(extraction, embedding !== undefined, now, log)
  const embedder = embedding && embeddingBy(embedding, now, log)
  return {
    ...NOTHING,
    ...reader?.parts,
    ...embedder?.parts,
    close: async () => {
      await Promise.all([reader?.endpoint.close(), embedder?.endpoint.close()])
    },
  }
}

const extractionBy = (options: ExtractionOptions, embeds: boolean, now: () => Instant, log: Log) => {
  const endpoint = createEndpoint(options, now)
  const chat = createChat(endpoint, options.parameters)
  const spend = createBudget('extraction', options.budget, now)
  return { endpoint, parts: { extract: createExtractJob({ endpoint, chat, spend, options, embeds, log }) } }
}

const embeddingBy = (options: EmbeddingOptions, now: () => Instant, log: Log) => {
  const endpoint = createEndpoint(options, now)
  const embedder = createEmbedder(endpoint, options, now)
  const spend = createBudget('embedding', options.budget, now)
  const parts = {
    embedJob: createEmbedJob({ embedder, spend, options, log }),
    embed: createQueryEmbed({ embedder, timeoutMs: options.queryTimeoutMs, log, now }),
    prepare: prepareFor(options),
  }
  return { endpoint, parts }
}
