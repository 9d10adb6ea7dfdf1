// Started with `node --import`: at each SIGUSR2 prints how many bytes have reached the old generation since the one before.
import { GCProfiler, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')
const YOUNG = /^new_/

const oldBytes = ({ heapSpaceStatistics }) =>
  heapSpaceStatistics.reduce(
    (sum, { spaceName, spaceUsedSize }) => (YOUNG.test(spaceName) ? sum : sum + spaceUsedSize),
    0,
  )

/** Moved there by scavenges, or allocated there between collections; what full collections free counts for nothing. */
const countBytes = collections => {
  const counts = { scavenges: 0, promoted: 0, allocated: 0 }
  let before
  for (const { gcType, beforeGC, afterGC } of collections) {
    if (before !== undefined) counts.allocated += Math.max(0, oldBytes(beforeGC) - before)
    before = oldBytes(afterGC)
    if (gcType !== 'Scavenge') continue
    counts.scavenges++
    counts.promoted += before - oldBytes(beforeGC)
  }
  return counts
}

let profiler
let reports = 0

const report = () => {
  const counts = countBytes(profiler?.stop().statistics ?? [])
  collect() // moves what is under way to the old generation, as in a process that has run for long
  profiler = new GCProfiler()
  profiler.start()
  process.stderr.write(`\nreport ${++reports}: ${JSON.stringify(counts)}\n`)
}

if (isMainThread) process.on('SIGUSR2', report)
