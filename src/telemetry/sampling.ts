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
  const end =
    share < 1
      ? Math.ceil(share * RANGE)
          .toString(16)
          .padStart(RANDOM_DIGITS, '0')
      : undefined
  return (parent, traceId) =>
    isParentBased && parent
      ? parent.isSampled
      : end === undefined || isBefore(traceId, traceId.length - RANDOM_DIGITS, end)
}

/**
 * Whether the digits from there on are those of a smaller number. The same for all programs that see the trace id, so that they
 * record the same traces. The first digits tell nearly always, and to read the number takes ten times as long.
 */
const isBefore = (traceId: string, start: number, end: string): boolean => {
  for (let at = 0; at < RANDOM_DIGITS; at++) {
    const difference = traceId.charCodeAt(start + at) - end.charCodeAt(at) // in ASCII, 9 is before a
    if (difference !== 0) return difference < 0
  }
  return false
}
