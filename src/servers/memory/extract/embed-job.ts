import type { Log } from '../../../telemetry/log.ts'
import type { MemoryStore, NewVector, VectorKind } from '../store.ts'
import type { JobHandler } from '../worker.ts'
import { type Spend, tokensIn } from './budget.ts'
import { type Embedder, type EmbeddingOptions, modelOf } from './embedder.ts'
import { RejectedRequest } from './endpoint.ts'

/** A row and the text to embed. */
interface TextRow {
  readonly kind: VectorKind
  readonly rowId: number
  readonly text: string
}

interface EmbedWork {
  readonly store: MemoryStore
  readonly model: string
  readonly signal: AbortSignal
}

export interface EmbedJobOptions {
  readonly embedder: Embedder
  readonly spend: Spend
  readonly options: EmbeddingOptions
  readonly log: Log
}

const EMBEDDED = 'embedded' // the store's key for the model whose vectors all rows have
const KINDS: readonly VectorKind[] = ['doc', 'fact', 'entity']
const BATCH = 64
const PAGE = 512
const MOST_EPISODES = 32 // in one batch
const MOST_LISTED = 1_000
const MOST_ROWS = 4_096 // of one job, so that other jobs get their turn
const LONGEST_TEXT = 6_000
const SHORT_TEXT = 800
const ZERO = new Float32Array(2) // near to no other vector

const embeddedBy = async (store: MemoryStore): Promise<string | undefined> => {
  const known = await store.amend(EMBEDDED, stored => stored)
  return typeof known === 'string' ? known : undefined
}

/** The rows that belong to the episodes. */
const idsOf = async (store: MemoryStore, episodes: readonly string[]): Promise<Record<VectorKind, number[]>> => {
  const docs = await store.docsOfEpisodes(episodes)
  const { entities, facts } = await store.episodeGraph(episodes)
  const ids = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id)
  return { doc: ids(docs), fact: ids(facts), entity: ids(entities) }
}

/** The job's episode and those of the next jobs: together they fill a batch, and the next jobs find nothing to do. */
const episodesFrom = async (store: MemoryStore, episode: string): Promise<string[]> => {
  const jobs = await store.jobs({ groups: 'all', limit: MOST_EPISODES, states: ['waiting'] })
  const next = jobs.flatMap(job => (job.kind === 'embed' && job.episode !== undefined ? [job.episode] : []))
  return [...new Set([episode, ...next])]
}

/** Computes the vectors that are missing for the configured model. */
export const createEmbedJob = ({ embedder, spend, options, log }: EmbedJobOptions): JobHandler => {
  const size = options.batch ?? BATCH

  const vectorsOf = async (
    { store, signal }: EmbedWork,
    texts: readonly string[],
  ): Promise<readonly Float32Array[]> => {
    await embedder.model(signal)
    const estimate = texts.reduce((sum, text) => sum + tokensIn(text), 0)
    const { vectors } = await spend(store, estimate, () => embedder.embed(texts, signal))
    return vectors
  }
  /** The vector of a text that the endpoint rejected: that of its beginning, or else zero. */
  const embedRejected = async (work: EmbedWork, { kind, rowId, text }: TextRow): Promise<readonly Float32Array[]> => {
    try {
      return await vectorsOf(work, [text.slice(0, SHORT_TEXT)])
    } catch (error) {
      if (!(error instanceof RejectedRequest)) throw error
      log.warn({ kind, row: rowId, error: error.message }, 'text not embedded: the endpoint rejected it')
      return [ZERO]
    }
  }
  const put = async (work: EmbedWork, rows: readonly TextRow[]): Promise<void> => {
    const { store, model } = work
    const [row] = rows
    if (!row) return
    try {
      const vectors = await vectorsOf(
        work,
        rows.map(({ text }) => text.slice(0, LONGEST_TEXT)),
      )
      await store.putVectors(vectors.map((vector, at) => newVector(rows[at] ?? row, model, vector)))
    } catch (error) {
      if (!(error instanceof RejectedRequest)) throw error
      if (rows.length === 1) {
        const [vector = ZERO] = await embedRejected(work, row)
        return store.putVectors([newVector(row, model, vector)])
      }
      // One of the texts is the cause, or there are too many at once.
      const half = Math.ceil(rows.length / 2)
      await put(work, rows.slice(0, half))
      await put(work, rows.slice(half))
    }
  }
  /** Embeds the rows without a vector, of those given or of all; returns whether all are done. */
  const embedMissing = async (work: EmbedWork, among?: Record<VectorKind, number[]>): Promise<boolean> => {
    const { store, model } = work
    let left = MOST_ROWS
    for (const kind of KINDS) {
      for (;;) {
        const found = await store.unembedded(kind, model, Math.min(PAGE, left), among?.[kind])
        if (found.length === 0) break
        const rows = found.map(({ rowId, text }) => ({ kind, rowId, text }))
        for (let at = 0; at < rows.length; at += size) await put(work, rows.slice(at, at + size))
        left -= rows.length
        if (left <= 0) return false
      }
    }
    return true
  }

  return async (store, { group, episode }, _lease, signal) => {
    const model = await embedder.model(signal)
    const isCurrent = (await embeddedBy(store)) === model
    const isOwn = isCurrent && episode !== undefined
    const among = isOwn ? await idsOf(store, await episodesFrom(store, episode)) : undefined
    if (!(await embedMissing({ store, model, signal }, among)))
      return void (await store.enqueue(group, { kind: 'embed' }))
    if (isCurrent) return
    const dropped = await store.dropVectorsExcept(model)
    await store.amend(EMBEDDED, () => model)
    log.info({ model, dropped }, 'embedding model changed')
  }
}

const newVector = ({ kind, rowId }: TextRow, model: string, vector: Float32Array): NewVector => ({
  kind,
  rowId,
  model,
  vector,
})

/** Whether the vectors are those of another model, incomplete or complete. */
const vectorState = async (
  store: MemoryStore,
  { model, dimensions }: EmbeddingOptions,
): Promise<'other' | 'partial' | 'complete'> => {
  const known = await embeddedBy(store)
  if (known === undefined || modelOf(known) !== model) return 'other'
  if (dimensions !== undefined && known !== `${model}@${dimensions}`) return 'other'
  for (const kind of KINDS) if ((await store.unembedded(kind, known, 1)).length > 0) return 'partial'
  return 'complete'
}

/** Enqueues a job for a tenant whose vectors are of another model or incomplete, as after an import. */
export const prepareFor =
  (options: EmbeddingOptions) =>
  async (store: MemoryStore): Promise<void> => {
    const state = await vectorState(store, options)
    const [group] = await store.groups()
    if (group === undefined || state === 'complete') return
    const jobs = await store.jobs({ groups: 'all', limit: MOST_LISTED })
    // Any embed job replaces the vectors of another model; only one without an episode embeds all rows.
    const fit = jobs.filter(({ kind, episode }) => kind === 'embed' && (state === 'other' || episode === undefined))
    if (fit.some(job => job.state !== 'failed')) return
    const [failed] = fit
    if (failed) await store.retry(failed.id)
    else await store.enqueue(group, { kind: 'embed' })
  }
