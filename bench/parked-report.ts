import { figure, table } from './markdown.ts'
import type { Memory } from './probed.ts'
import { type Facts, factsLine, OURS_ALONE } from './results.ts'

/** Calls parked at once and all answered. */
export interface Resumed {
  readonly parked: number
  readonly upstreamCalls: number // that the upstream had under way meanwhile
  readonly each: Memory // KB per parked call
  readonly right: number // results that belonged to their own call and its own answer
}

/** Calls parked and left to expire. */
export interface Abandoned {
  readonly parked: number
  readonly parkedMs: number // to park them all
  readonly ttlMs: number
  readonly atOnce: number // of them parked when the last one was
  readonly each: Memory
  readonly left: number // upstream calls not freed in the end
  readonly heap: { readonly before: Memory; readonly during: Memory; readonly after: Memory }
}

export interface ParkedResults extends Facts {
  readonly upstreamIdleMs: number // after which the upstream closes connections
  readonly resumed: Resumed
  readonly abandoned: Abandoned
}

const HEAP_BACK = 1.1

const count = (value: number): string => value.toLocaleString('en')
const mebibytes = (bytes: number): string => figure(bytes / 2 ** 20)
const verdict = (isMet: boolean): string => (isMet ? 'met' : '**missed**')

/** The section on parked calls. */
export const parkedSection = (results: ParkedResults): string => {
  const { resumed, abandoned } = results
  const { before, during, after } = abandoned.heap
  const growth = after.heap / before.heap
  const rows = [
    [
      'answered',
      count(resumed.parked),
      count(resumed.upstreamCalls),
      figure(resumed.each.rss),
      figure(resumed.each.heap),
    ],
    [
      'abandoned',
      count(abandoned.parked),
      count(abandoned.atOnce),
      figure(abandoned.each.rss),
      figure(abandoned.each.heap),
    ],
  ]
  return `${factsLine(results, OURS_ALONE)}

Calls of a 2026-07-28 client that a 2025-11-25 server over Streamable HTTP holds while it waits for the answer to an
elicitation: the client has its \`input_required\` and no connection, the gateway keeps the upstream call. Clients, gateway
and upstream are processes of their own; memory of the gateway after a forced collection, KB of 1,000 bytes. A parked call
holds an upstream connection, which is part of its memory; once free, connections stay as long as the upstream keeps idle
ones: ${results.upstreamIdleMs / 1000} s here, Node’s default.

${table(['parked calls', 'parked', 'at once', 'RSS KB per call', 'heap KB per call'], rows)}

- Answered: ${count(resumed.parked)} calls parked at once, each with its own question; all resumed with distinct answers, ${count(resumed.right)} results
  matched call and answer (bar: all, ${verdict(resumed.right === resumed.parked)}).
- Abandoned: ${count(abandoned.parked)} calls parked in waves of 1,000 within ${figure(abandoned.parkedMs / 1000)} s; questions expire after ${abandoned.ttlMs / 1000} s. Upstream calls
  left in the end: ${abandoned.left} (bar: 0, ${verdict(abandoned.left === 0)}). Heap ${mebibytes(before.heap)} MiB before, ${mebibytes(during.heap)} MiB with them, ${mebibytes(after.heap)} MiB afterwards (bar:
  within 10 %, ${verdict(growth <= HEAP_BACK)}).`
}
