import type { EntityChange, MemoryOperations } from '../../../protocol/memory-operations.ts'
import { OperationError, type OperationRefusal } from '../../../protocol/operation-error.ts'
import { checkLength, LONGEST, RequestError } from '../input-checks.ts'
import type { Remember } from '../remember.ts'
import { retryJobs } from '../retry-jobs.ts'
import type { EmbedQuery } from '../search/passages.ts'
import { type MemoryStore, type MemoryStores, StoreError, type StoreFailure } from '../store.ts'
import { readEntityDetails, readEpisode, readTimeline, scopeGroups, searchMemory } from './browse.ts'
import { BY_CONSOLE, episodeInput, factEdit, forgetNow, importUpload, planForget } from './change.ts'
import { exportChunks } from './export-stream.ts'
import { readGraph } from './graph.ts'
import { readMemoryJobs, readMemoryStats } from './state.ts'

export interface MemoryOperationsOptions {
  readonly stores: MemoryStores
  readonly group: string // the default group
  readonly remember: Remember
  readonly embed: EmbedQuery
  readonly embeds: boolean // vectors are computed for what is written
  readonly wake: (tenant: string) => void // there may be background work for this tenant
}

/** What a memory server does for the admin API, on the memory's own thread. */
export const createMemoryOperations = (options: MemoryOperationsOptions): MemoryOperations => {
  const { stores, group, remember, embed, embeds, wake } = options
  const importing = new Set<string>()

  const write = <T>(tenant: string, work: (store: MemoryStore) => Promise<T>): Promise<T> =>
    explained(async () => {
      const result = await stores.with(tenant, work)
      wake(tenant)
      return result
    })
  /** Nothing is created for a tenant that has stored nothing. */
  const checkTenant = async (tenant: string): Promise<void> => {
    if (!(await stores.tenants()).includes(tenant))
      throw new OperationError('missing', `Nothing has been stored in the memory of ${tenantText(tenant)} yet`)
  }
  const read = <T>(tenant: string, work: (store: MemoryStore) => Promise<T>): Promise<T> =>
    explained(async () => {
      await checkTenant(tenant)
      return stores.with(tenant, work)
    })
  const edit = async <T>(tenant: string, work: (store: MemoryStore) => Promise<T>): Promise<T> => {
    await checkTenant(tenant)
    return write(tenant, work)
  }
  const embedAgain = async (store: MemoryStore, among: string): Promise<void> => {
    if (embeds) await store.enqueue(among, { kind: 'embed' })
  }

  return {
    tenants: () => explained(() => stores.tenants()),
    stats: tenant => read(tenant, readMemoryStats),
    search: (tenant, query, scope, limit) => read(tenant, store => searchMemory(store, embed, query, scope, limit)),
    timeline: (tenant, query) => read(tenant, store => readTimeline(store, query)),
    episode: (tenant, id) => read(tenant, store => readEpisode(store, id)),
    entity: (tenant, id, scope) => read(tenant, store => readEntityDetails(store, id, scope)),
    graph: (tenant, scope, limit) => read(tenant, store => readGraph(store, scope, limit)),
    jobs: tenant => read(tenant, readMemoryJobs),
    exported: async (tenant, scope) => {
      await checkTenant(tenant)
      explainedNow(() => scopeGroups(scope))
      return ReadableStream.from(exportChunks(stores, tenant, scope))
    },
    add: (tenant, memory) =>
      write(tenant, async store => {
        const { episode } = await remember(store, episodeInput(memory, group), BY_CONSOLE)
        return readEpisode(store, episode.uuid)
      }),
    changeEntity: (tenant, id, change) =>
      edit(tenant, async store => {
        checkEntityChange(change)
        const { group: among } = await store.editEntity(id, change, BY_CONSOLE)
        await embedAgain(store, among)
        return readEntityDetails(store, id)
      }),
    changeFact: (tenant, id, change) =>
      edit(tenant, async store => {
        const { group: among } = await store.editFact(id, factEdit(change), BY_CONSOLE)
        await embedAgain(store, among)
      }),
    deleteFact: (tenant, id) => edit(tenant, store => store.deleteFact(id, BY_CONSOLE)),
    deleteEpisode: (tenant, id) => edit(tenant, store => store.deleteEpisode(id, BY_CONSOLE)),
    planForget: (tenant, request) => read(tenant, store => planForget(store, request)),
    forget: (tenant, request) => edit(tenant, store => forgetNow(store, request)),
    imported: async (tenant, upload) => {
      if (importing.has(tenant))
        throw new OperationError('busy', 'Another import into this memory is running; wait for it')
      importing.add(tenant)
      try {
        return await write(tenant, store => importUpload(upload, { store, remember, group }))
      } finally {
        importing.delete(tenant)
      }
    },
    retry: (tenant, job) => edit(tenant, store => retryJobs(store, job)),
  }
}

const MOST_LABELS = 50

const checkEntityChange = ({ name, summary, labels = [] }: EntityChange): void => {
  checkLength('name', name, LONGEST.name)
  checkLength('summary', summary, LONGEST.sentence)
  for (const label of labels) checkLength('label', label, LONGEST.name)
  if (labels.length > MOST_LABELS) throw new RequestError(`labels: at most ${MOST_LABELS} fit, not ${labels.length}`)
}

const tenantText = (tenant: string): string => tenant.replace(':', ' ')

const REFUSALS: Readonly<Partial<Record<StoreFailure, OperationRefusal>>> = {
  invalid: 'invalid',
  missing: 'missing',
  busy: 'busy',
  closed: 'busy',
}

const explain = (error: unknown): unknown => {
  if (error instanceof RequestError) return new OperationError('invalid', error.message)
  return error instanceof StoreError ? new OperationError(REFUSALS[error.kind] ?? 'failed', error.message) : error
}

const explainedNow = <T>(work: () => T): T => {
  try {
    return work()
  } catch (error) {
    throw explain(error)
  }
}

const explained = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw explain(error)
  }
}
