import type { Log } from '../../../telemetry/log.ts'
import type { MemoryStore, NewVector, VectorKind } from '../store.ts'
import type { Handle } from '../worker.ts'
import { type Spend, tokensIn } from './budget.ts'
import { type Embedder, modelOf } from './embedder.ts'
import { Refused } from './endpoint.ts'
import type { EmbeddingOptions } from './options.ts'

/** A row and the text that its vector is of. */
interface Row {
  readonly kind: VectorKind
  readonly rowId: number
  readonly text: string
}

/** What a job works on, until the signal is aborted. */
interface Work {
  readonly store: MemoryStore
  readonly model: string
  readonly signal: AbortSignal
}

export interface EmbedParts {
  readonly embedder: Embedder
  readonly spend: Spend
  readonly options: EmbeddingOptions
  readonly log: Log
}

/** Under which the store keeps whose vectors all of its rows have. */
const EMBEDDED = 'embedded'
const KINDS: readonly VectorKind[] = ['doc', 'fact', 'entity']
const BATCH = 64
const PAGE = 512
const MOST_TOGETHER = 32
const MOST_LISTED = 1_000
const MOST_ROWS = 4_096 // of one job; other work gets its turn then
const LONGEST_TEXT = 6_000
const SHORT_TEXT = 800
const NOTHING_NEAR = new Float32Array(2)

const embeddedBy = async (store: MemoryStore): Promise<string | undefined> => {
  const known = await store.amend(EMBEDDED, kept => kept)
  return typeof known === 'string' ? known : undefined
}

/** The rows that hang on some episodes. */
const idsOf = async (store: MemoryStore, episodes: readonly string[]): Promise<Record<VectorKind, number[]>> => {
  const docs = await store.docsOfEpisodes(episodes)
  const { entities, facts } = await store.episodeGraph(episodes)
  const ids = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id)
  return { doc: ids(docs), fact: ids(facts), entity: ids(entities) }
}

/** The job's episode and those whose turn comes next: together they fill a batch, and later find nothing to do. */
const episodesFrom = async (store: MemoryStore, episode: string): Promise<string[]> => {
  const jobs = await store.jobs({ groups: 'all', limit: MOST_TOGETHER, states: ['waiting'] })
  const next = jobs.flatMap(job => (job.kind === 'embed' && job.episode !== undefined ? [job.episode] : []))
  return [...new Set([episode, ...next])]
}

/** Keeps every row's vector up to date with the configured model. */
export const createEmbedJob = ({ embedder, spend, options, log }: EmbedParts): Handle => {
  const size = options.batch ?? BATCH

  const vectorsOf = async ({ store, signal }: Work, texts: readonly string[]): Promise<readonly Float32Array[]> => {
    await embedder.model(signal)
    const estimate = texts.reduce((sum, text) => sum + tokensIn(text), 0)
    const { vectors } = await spend(store, estimate, () => embedder.embed(texts, signal))
    return vectors
  }
  /** One text the endpoint does not take: its beginning, or else a vector that is near to nothing. */
  const stubborn = async (work: Work, { kind, rowId, text }: Row): Promise<readonly Float32Array[]> => {
    try {
      return await vectorsOf(work, [text.slice(0, SHORT_TEXT)])
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      log.warn({ kind, row: rowId, error: error.message }, 'a text gets no vector: the embedding endpoint refuses it')
      return [NOTHING_NEAR]
    }
  }
  const put = async (work: Work, rows: readonly Row[]): Promise<void> => {
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
      if (!(error instanceof Refused)) throw error
      if (rows.length === 1) {
        const [vector = NOTHING_NEAR] = await stubborn(work, row)
        return store.putVectors([newVector(row, model, vector)])
      }
      // One of them is to blame, or there are too many at once.
      const half = Math.ceil(rows.length / 2)
      await put(work, rows.slice(0, half))
      await put(work, rows.slice(half))
    }
  }
  /** Gives vectors to whatever has none, among the rows named or all; true when nothing is left. */
  const sweep = async (work: Work, among?: Record<VectorKind, number[]>): Promise<boolean> => {
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
    if (!(await sweep({ store, model, signal }, among))) return void (await store.enqueue(group, { kind: 'embed' }))
    if (isCurrent) return
    const dropped = await store.dropVectorsExcept(model)
    await store.amend(EMBEDDED, () => model)
    log.info({ model, dropped }, 'a memory has vectors of this model now')
  }
}

const newVector = ({ kind, rowId }: Row, model: string, vector: Float32Array): NewVector => ({
  kind,
  rowId,
  model,
  vector,
})

/** Whether a memory's vectors are those of the configured model, all of them, or not yet all. */
const stateOf = async (
  store: MemoryStore,
  { model, dimensions }: EmbeddingOptions,
): Promise<'other' | 'partial' | 'complete'> => {
  const known = await embeddedBy(store)
  if (known === undefined || modelOf(known) !== model) return 'other'
  if (dimensions !== undefined && known !== `${model}@${dimensions}`) return 'other'
  for (const kind of KINDS) if ((await store.unembedded(kind, known, 1)).length > 0) return 'partial'
  return 'complete'
}

/** Puts work on the list for a memory that has vectors of another model, or not all: what was imported has none. */
export const prepareFor =
  (options: EmbeddingOptions) =>
  async (store: MemoryStore): Promise<void> => {
    const state = await stateOf(store, options)
    const [group] = await store.groups()
    if (group === undefined || state === 'complete') return
    const jobs = await store.jobs({ groups: 'all', limit: MOST_LISTED })
    // Any such job replaces vectors of another model, but only one without an episode looks beyond its own.
    const fit = jobs.filter(({ kind, episode }) => kind === 'embed' && (state === 'other' || episode === undefined))
    if (fit.some(job => job.state !== 'failed')) return
    const [failed] = fit
    if (failed) await store.retry(failed.id)
    else await store.enqueue(group, { kind: 'embed' })
  }
