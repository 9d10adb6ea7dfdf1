import { membersOf } from '../input-checks.ts'
import type { Instant } from '../model.ts'
import { RetryLater } from '../worker.ts'
import { type BudgetLimits, tokensIn } from './budget.ts'
import type { Endpoint, EndpointOptions } from './endpoint.ts'

/** A model that turns texts into vectors. */
export interface EmbeddingOptions extends EndpointOptions, BudgetLimits {
  readonly model: string
  readonly dimensions?: number | undefined // requested, and checked in the response
  readonly batch?: number | undefined // texts in one call
  readonly queryTimeoutMs?: number | undefined
  readonly trusted?: boolean | undefined // skips the calibration
}

/** Vectors in the order of the texts, and the name under which they are stored. */
export interface Embedded {
  readonly model: string
  readonly vectors: readonly Float32Array[]
  readonly tokens: number
}

/** Turns texts into vectors, once the model has passed the calibration. */
export interface Embedder {
  /** The name under which vectors are stored: the model and the length of its vectors. */
  model(signal?: AbortSignal): Promise<string>
  embed(texts: readonly string[], signal?: AbortSignal): Promise<Embedded>
}

const RETRY_MS = 30 * 60_000

const vectorOf = (given: unknown): Float32Array => {
  const isVector = Array.isArray(given) && given.length > 1 && given.every(Number.isFinite)
  if (!isVector) throw new Error('The embedding endpoint answered with something that is not a vector.')
  return Float32Array.from(given as number[])
}

/** The vectors of a response in the order of the texts; the endpoint may return them in another. */
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
  const { total_tokens: total, prompt_tokens: prompt } = membersOf(membersOf(answer).usage)
  const counted = Number(total ?? prompt)
  return counted > 0 ? Math.ceil(counted) : texts.reduce((sum, text) => sum + tokensIn(text), 0)
}

/** Waits until the signal aborts. Other callers share the work, so it continues. */
const waitFor = async <Result>(work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> => {
  if (!signal) return work()
  signal.throwIfAborted()
  let abort = (): void => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
  })
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work(), aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Pairs of sentences with one meaning each; a useful model places both sentences of a pair close together. */
export const SIMILAR_PAIRS: readonly (readonly [string, string])[] = [
  ['The kitten naps on the couch.', 'A young cat is asleep on the sofa.'],
  ['She resigned from her job at the bank.', 'She quit working for the financial institute.'],
  ['Our train was cancelled because of a blizzard.', 'Heavy snow stopped the railway connection we had booked.'],
  ['He is allergic to peanuts.', 'Eating nuts makes him ill.'],
  ['The database server ran out of disk space.', 'No storage was left on the machine that holds the tables.'],
  ['They got married in June.', 'Their wedding took place at the beginning of summer.'],
  ['I am learning to play the violin.', 'I take lessons on a string instrument.'],
  ['Taxes on fuel will rise next year.', 'Petrol is going to cost more as the state takes a bigger share.'],
]

/** The share of sentences that must be nearest to their counterpart; by chance it is one in fifteen. */
const LEAST_NEAREST = 0.6

const cosine = (one: Float32Array, other: Float32Array): number => {
  let [dot, left, right] = [0, 0, 0]
  for (let at = 0; at < one.length; at++) {
    const [a, b] = [one[at] ?? 0, other[at] ?? 0]
    dot += a * b
    left += a * a
    right += b * b
  }
  return dot / (Math.sqrt(left * right) || 1)
}

const nearestTo = (place: number, vectors: readonly Float32Array[]): number => {
  let [best, nearest] = [Number.NEGATIVE_INFINITY, -1]
  for (const [other, vector] of vectors.entries()) {
    const similarity = other === place ? Number.NEGATIVE_INFINITY : cosine(vectors[place] ?? vector, vector)
    if (similarity > best) [best, nearest] = [similarity, other]
  }
  return nearest
}

/** Whether most vectors of the flattened pairs are nearest to their counterpart. */
const isCalibrated = (vectors: readonly Float32Array[]): boolean => {
  const right = vectors.filter((_, place) => nearestTo(place, vectors) === (place ^ 1)).length
  return right >= vectors.length * LEAST_NEAREST
}

/** The model in the name of its vectors, without their length. */
export const modelOf = (name: string): string => name.slice(0, name.lastIndexOf('@'))

export const createEmbedder = (
  endpoint: Endpoint,
  { model, dimensions, trusted = false }: EmbeddingOptions,
  now: () => Instant = Date.now,
): Embedder => {
  let calibrated: Promise<string> | undefined

  const request = async (texts: readonly string[], signal?: AbortSignal): Promise<Embedded> => {
    endpoint.ensureReady()
    const body = { model, input: texts, ...(dimensions !== undefined && { dimensions }) }
    const answer = await endpoint.post('embeddings', body, signal)
    const vectors = vectorsIn(answer, texts.length)
    const length = vectors[0]?.length ?? 0
    if (dimensions !== undefined && length !== dimensions) {
      const why = `The embedding endpoint answers with vectors of ${length} numbers, but ${dimensions} are configured.`
      throw new RetryLater(`${why} Correct dimensions, or the model.`, now() + RETRY_MS)
    }
    return { model: `${model}@${length}`, vectors, tokens: tokensOf(answer, texts) }
  }
  const calibrate = async (): Promise<string> => {
    const { model: name, vectors } = await request(SIMILAR_PAIRS.flat())
    if (trusted || isCalibrated(vectors)) return name
    const why = `The vectors of ${model} do not place similar texts close together, so they would make search worse.`
    throw new RetryLater(`${why} Use another model.`, now() + RETRY_MS)
  }
  const name = (): Promise<string> => {
    calibrated ??= calibrate().catch((error: unknown) => {
      calibrated = undefined
      throw error
    })
    return calibrated
  }
  return {
    model: signal => waitFor(name, signal),
    embed: async (texts, signal) => {
      const expected = await waitFor(name, signal)
      const embedded = await request(texts, signal)
      if (embedded.model === expected) return embedded
      calibrated = undefined
      throw new Error(`The embedding endpoint changed its vectors from ${expected} to ${embedded.model}.`)
    },
  }
}
