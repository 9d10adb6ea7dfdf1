// `npm --prefix bench run idle`: what 10,000 SSE channels on which nothing happens cost one process.
import { setTimeout as sleep } from 'node:timers/promises'
import { nextMessage, start, stopAll, worker } from './children.ts'
import { type Channels, type IdleResults, idleSection } from './idle-report.ts'
import { publish } from './page.ts'
import type { Target } from './peer.ts'
import { kilobytesEach, PROBE_FLAGS, type Probed, probe } from './probed.ts'
import { facts, save } from './results.ts'
import type { ReaderJob } from './sse-readers.ts'
import { startProbedDragoman } from './start-dragoman.ts'

const CHANNELS = 10_000
const WARM = 500
const ROUNDS = 3
const MOST_WAIT_MS = 5_000

type Read = (job: ReaderJob) => Promise<number>

const startRaw = async (): Promise<Probed> => {
  const child = start('raw-sse', [], PROBE_FLAGS)
  return probe(await nextMessage<Target>(child), child)
}

const openOn = async (url: string): Promise<number> => {
  const text = await fetch(new URL('/metrics', url)).then(response => response.text())
  return Number(/^dragoman_channels (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
}

const untilEmpty = async (url: string): Promise<number> => {
  const deadline = Date.now() + MOST_WAIT_MS
  let left = await openOn(url)
  while (left !== 0 && Date.now() < deadline) {
    await sleep(100)
    left = await openOn(url)
  }
  return left
}

const measure = async (server: Probed, read: Read, settled: () => Promise<void>): Promise<Channels> => {
  const url = new URL('/sse', server.url).href
  await read({ url, count: WARM })
  await read({ url: undefined })
  await settled()
  const before = await server.memory()
  const opened = await read({ url, count: CHANNELS })
  if (opened !== CHANNELS) throw new Error(`only ${opened} channels are open`)
  const during = await server.memory()
  await read({ url: undefined })
  await settled()
  const after = await server.memory()
  return { each: kilobytesEach(before, during, CHANNELS), heapLeft: after.heap / before.heap }
}

const round = async (): Promise<IdleResults['rounds'][number]> => {
  try {
    const read = worker<ReaderJob, number>('sse-readers')
    const raw = await measure(await startRaw(), read, () => sleep(500))
    const ours = await startProbedDragoman({ mcpServers: { demo: { builtin: 'demo' } } })
    let left = Number.NaN
    const dragoman = await measure(ours, read, async () => {
      left = await untilEmpty(ours.url)
    })
    return { raw, dragoman, left }
  } finally {
    await stopAll()
  }
}

const known = facts()
const rounds: IdleResults['rounds'][number][] = []
for (let number = 0; number < ROUNDS; number++) rounds.push(await round())
const results: IdleResults = { ...known, channels: CHANNELS, rounds }
const section = idleSection(results)
save('idle', results)
publish({ 'Idle channels': section })
console.log(section)
