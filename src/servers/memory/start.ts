import type { Upstream } from '../../protocol/exchange.ts'
import type { MemoryOperations } from '../../protocol/memory-operations.ts'
import type { Log } from '../../telemetry/log.ts'
import { communitiesJob } from './extract/communities.ts'
import type { EmbeddingOptions } from './extract/embedder.ts'
import type { ExtractionOptions } from './extract/extract-job.ts'
import { createModels } from './extract/models.ts'
import { summariseJob } from './extract/summaries.ts'
import { createMemoryServer, type TenantBy } from './memory.ts'
import { openStores, type StorePlace } from './open-stores.ts'
import { createMemoryOperations } from './operations/operations.ts'
import { createRemember } from './remember.ts'
import { createWorker } from './worker.ts'

export interface MemoryOptions extends StorePlace {
  readonly tenant: TenantBy
  readonly group: string // the default group
  readonly extraction?: ExtractionOptions | undefined
  readonly embeddings?: EmbeddingOptions | undefined
  readonly version: string
  readonly log: Log
}

/** A memory server, and what it does for the admin API. */
export interface MemoryServer extends Upstream {
  readonly operations: MemoryOperations
}

/** Starts a memory server with its background work. */
export const startMemory = (options: MemoryOptions): MemoryServer => {
  const { tenant: tenantBy, group, extraction, embeddings, version, log } = options
  const models = createModels({ extraction, embedding: embeddings }, log)
  const stores = openStores(options)
  const { extract, embedJob: embed } = models
  const handlers = {
    communities: communitiesJob,
    summarise: summariseJob,
    ...(extract && { extract }),
    ...(embed && { embed }),
  }
  const worker = createWorker({ stores, handlers, log, prepare: models.prepare })
  const shared = {
    stores,
    group,
    remember: createRemember({ extracts: extraction !== undefined, embeds: embeddings !== undefined }),
    embed: models.embed,
    embeds: embeddings !== undefined,
    wake: worker.wake,
  }
  const server = createMemoryServer({ ...shared, tenantBy, version })
  worker.resume().catch((error: unknown) => log.warn({ err: error }, 'background work on memory was not resumed'))
  return {
    open: server.open,
    operations: createMemoryOperations(shared),
    close: async () => {
      await models.close() // aborted jobs stay enqueued
      await worker.close()
      await server.close()
    },
  }
}
