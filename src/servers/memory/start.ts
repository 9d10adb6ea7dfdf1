import type { Upstream } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import { regroupJob, summariseJob } from './background.ts'
import type { TenantBy } from './desk.ts'
import { createModels, type Models } from './extract/models.ts'
import type { EmbeddingOptions, ExtractionOptions } from './extract/options.ts'
import { memory } from './memory.ts'
import { openStores, type StorePlace } from './open-stores.ts'
import { createRemember } from './remember.ts'
import { createWorker } from './worker.ts'

/** What a model may use for each memory. */
interface Spending {
  readonly dailyTokens?: number | undefined
  readonly callsPerMinute?: number | undefined
}

export interface MemoryOptions extends StorePlace {
  readonly tenant: TenantBy
  readonly group: string
  readonly extraction?: (ExtractionOptions & Spending) | undefined
  readonly embeddings?: EmbeddingOptions | undefined
  readonly version: string
  readonly log: Log
}

/** Opens a memory with all that works for it in the background. */
export const startMemory = (options: MemoryOptions): Upstream => {
  const { tenant: tenantBy, group, extraction, embeddings, version, log } = options
  const models = createModels({ extraction: extraction && withBudget(extraction), embedding: embeddings }, log)
  const stores = openStores(options)
  const worker = createWorker({ stores, handlers: handlersOf(models), log, prepare: models.prepare })
  const server = memory({
    stores,
    tenantBy,
    group,
    version,
    remember: createRemember({ extracts: extraction !== undefined, embeds: embeddings !== undefined }),
    embed: models.embed,
    embeds: embeddings !== undefined,
    wake: worker.wake,
  })
  worker.resume().catch((error: unknown) => log.warn({ err: error }, 'background work on memory could not be taken up'))
  return {
    open: server.open,
    close: async () => {
      await models.close() // what they are asked for now is asked again another time
      await worker.close()
      await server.close()
    },
  }
}

const withBudget = ({
  dailyTokens,
  callsPerMinute,
  ...extraction
}: ExtractionOptions & Spending): ExtractionOptions => ({
  ...extraction,
  budget: { tokensPerDay: dailyTokens, callsPerMinute },
})

const handlersOf = ({ extract, embedJob }: Models) => ({
  communities: regroupJob,
  summarise: summariseJob,
  ...(extract && { extract }),
  ...(embedJob && { embed: embedJob }),
})
