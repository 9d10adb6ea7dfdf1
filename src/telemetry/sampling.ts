import type { TraceContext } from './trace-context.ts'

/** Decides whether a request is recorded as part of a trace. */
export type Sample = (parent: TraceContext | undefined, traceId: string) => boolean

/** The samplers of `OTEL_TRACES_SAMPLER`. */
export const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
export type SamplerName = (typeof SAMPLERS)[number]

const PARENT_BASED = 'parentbased_'
const RANDOM_DIGITS = 14 // W3C Trace Context: the last 7 bytes of a trace id are random
const RANGE = 16 ** RANDOM_DIGITS

/** `ratio` is the share of traces that the two ratio samplers record, from 0 to 1. */
export const createSampler = (name: SamplerName, ratio: number): Sample => {
  const isParentBased = name.startsWith(PARENT_BASED)
  const share = name.endsWith('always_on') ? 1 : name.endsWith('always_off') ? 0 : ratio
  return (parent, traceId) => (isParentBased && parent ? parent.isSampled : isWithin(traceId, share))
}

/** The same for all programs that see the trace id, so that they record the same traces. */
const isWithin = (traceId: string, share: number): boolean =>
  share >= 1 || (share > 0 && Number.parseInt(traceId.slice(-RANDOM_DIGITS), 16) < share * RANGE)
