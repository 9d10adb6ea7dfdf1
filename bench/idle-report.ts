import { figure, spread, table } from './markdown.ts'
import type { Memory } from './probed.ts'
import { type Facts, factsLine, OURS_ALONE } from './results.ts'
import { summarize } from './statistics.ts'

/** What idle channels cost one server. */
export interface Channels {
  readonly each: Memory // KB per channel
  readonly heapLeft: number // heap when all are closed, as a multiple of the heap before
}

export interface IdleResults extends Facts {
  readonly channels: number
  readonly rounds: readonly { readonly raw: Channels; readonly dragoman: Channels; readonly left: number }[]
}

const MOST_KB = 20

/** The section on idle channels. */
export const idleSection = (results: IdleResults): string => {
  const { rounds } = results
  const rows = (['raw', 'dragoman'] as const).map(name => {
    const of = (read: (channels: Channels) => number) => summarize(rounds.map(round => read(round[name])))
    return [
      name === 'raw' ? 'raw node:http' : name,
      spread(of(({ each }) => each.rss)),
      spread(of(({ each }) => each.heap)),
      `${figure(of(({ heapLeft }) => heapLeft).median)} ×`,
    ]
  })
  const ours = summarize(rounds.map(({ dragoman }) => dragoman.each.rss)).median
  const ratio = (of: keyof Memory): string =>
    figure(summarize(rounds.map(({ dragoman, raw }) => dragoman.each[of] / raw.each[of])).median)
  const left = Math.max(...rounds.map(round => round.left))
  return `${factsLine(results, OURS_ALONE)}

${results.channels.toLocaleString('en')} channels (\`GET /sse\`) opened on one process and left alone, beside as many on a raw node:http server that
sends one event and remembers the channel; ${rounds.length} rounds with fresh processes, memory after a forced collection, KB of 1,000
bytes, median with lowest and highest.

${table(['server', 'RSS KB per channel', 'heap KB per channel', 'heap when all are closed'], rows)}

An idle channel costs ${figure(ours)} KB (bar: ≤ ${MOST_KB}, ${ours <= MOST_KB ? 'met' : '**missed**'}): ${ratio('rss')} × the RSS and ${ratio('heap')} × the heap of raw node:http. Channels
that \`/metrics\` counts after all clients have left: ${left}${left === 0 ? '' : ' (**should be 0**)'}.`
}
