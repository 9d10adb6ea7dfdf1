import type { Instant } from '../model.ts'
import { Later } from '../worker.ts'
import { tokensIn } from './budget.ts'
import { SENTENCES, tellsApart } from './calibration.ts'
import type { Endpoint } from './endpoint.ts'
import type { EmbeddingOptions } from './options.ts'

/** Vectors with the name they are kept under, in the order of the texts. */
export interface Embedded {
  readonly model: string
  readonly vectors: readonly Float32Array[]
  readonly tokens: number
}

/** Turns texts into vectors. Before its first ones the model has to show that it tells like from unlike. */
export interface Embedder {
  /** The name under which vectors are kept: the model and the length of its vectors. */
  model(signal?: AbortSignal): Promise<string>
  embed(texts: readonly string[], signal?: AbortSignal): Promise<Embedded>
}

const RETRY_MS = 30 * 60_000

const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

const vectorOf = (given: unknown): Float32Array => {
  const isVector = Array.isArray(given) && given.length > 1 && given.every(Number.isFinite)
  if (!isVector) throw new Error('The embedding endpoint answered with something that is not a vector.')
  return Float32Array.from(given as number[])
}

/** The vectors of an answer in the order of the texts, which the endpoint may have changed. */
const vectorsIn = (answer: unknown, count: number): Float32Array[] => {
  const { data } = membersOf(answer)
  if (!Array.isArray(data) || data.length !== count)
    throw new Error(`The embedding endpoint did not answer ${count} texts with as many vectors.`)
  const vectors: Float32Array[] = []
  for (const [place, item] of data.entries()) {
    const { index, embedding } = membersOf(item)
    vectors[typeof index === 'number' ? index : place] = vectorOf(embedding)
  }
  const [first] = vectors
  for (let at = 0; at < count; at++)
    if (!first || vectors[at]?.length !== first.length || vectors.length !== count)
      throw new Error('The embedding endpoint answered with vectors of different lengths or places.')
  return vectors
}

const tokensOf = (answer: unknown, texts: readonly string[]): number => {
  const { total_tokens: total, prompt_tokens: asked } = membersOf(membersOf(answer).usage)
  const counted = Number(total ?? asked)
  return counted > 0 ? Math.ceil(counted) : texts.reduce((sum, text) => sum + tokensIn(text), 0)
}

/** Waits for what others may wait for, too, so breaking off ends the waiting alone. */
const waitFor = async <Result>(work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> => {
  if (!signal) return work()
  signal.throwIfAborted()
  let leave = (): void => {}
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason)
  })
  signal.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([work(), left])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

/** The model a name of vectors is about, whatever their length. */
export const modelOf = (name: string): string => name.slice(0, name.lastIndexOf('@'))

export const createEmbedder = (
  endpoint: Endpoint,
  { model, dimensions, trusted = false }: EmbeddingOptions,
  now: () => Instant = Date.now,
): Embedder => {
  let checked: Promise<string> | undefined

  const request = async (texts: readonly string[], signal?: AbortSignal): Promise<Embedded> => {
    endpoint.ensureReady()
    const body = { model, input: texts, ...(dimensions !== undefined && { dimensions }) }
    const answer = await endpoint.post('embeddings', body, signal)
    const vectors = vectorsIn(answer, texts.length)
    const length = vectors[0]?.length ?? 0
    if (dimensions !== undefined && length !== dimensions) {
      const why = `The embedding endpoint answers with vectors of ${length} numbers, but ${dimensions} are configured.`
      throw new Later(`${why} Correct dimensions, or the model.`, now() + RETRY_MS)
    }
    return { model: `${model}@${length}`, vectors, tokens: tokensOf(answer, texts) }
  }
  const check = async (): Promise<string> => {
    const { model: name, vectors } = await request(SENTENCES)
    if (trusted || tellsApart(vectors)) return name
    const why = `The vectors of ${model} do not tell what is alike from what is not, so they would only harm search.`
    throw new Later(`${why} Use another model.`, now() + RETRY_MS)
  }
  const name = (): Promise<string> => {
    checked ??= check().catch((error: unknown) => {
      checked = undefined
      throw error
    })
    return checked
  }
  return {
    model: signal => waitFor(name, signal),
    embed: async (texts, signal) => {
      const expected = await waitFor(name, signal)
      const embedded = await request(texts, signal)
      if (embedded.model === expected) return embedded
      checked = undefined
      throw new Error(`The embedding endpoint changed its vectors from ${expected} to ${embedded.model}.`)
    },
  }
}
