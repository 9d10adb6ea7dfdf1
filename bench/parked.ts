// `npm --prefix bench run parked`: what a call costs that waits for a person, and what stays of those nobody comes back to.
import { setTimeout as sleep } from 'node:timers/promises'
import { nextMessage, start, stopAll, worker } from './children.ts'
import { publish } from './page.ts'
import type { ClientJob } from './parked-client.ts'
import { type Abandoned, type ParkedResults, parkedSection, type Resumed } from './parked-report.ts'
import type { Target } from './peer.ts'
import { kilobytesEach } from './probed.ts'
import { facts, save } from './results.ts'
import { startProbedDragoman } from './start-dragoman.ts'

const AT_ONCE = 1_000
const ABANDONED = 10_000
const WARM = 200
const TTL_MS = 20_000
const SETTLE_MS = 25_000 // after the last one has expired
const UPSTREAM_IDLE_MS = 5_000 // what Node gives a server that says nothing else
const HEAP_BACK = 1.1

interface Stage {
  readonly gateway: Awaited<ReturnType<typeof startProbedDragoman>>
  readonly clients: (job: ClientJob) => Promise<number>
  readonly waiting: () => Promise<number> // calls that the upstream has not finished
}

const withStage = async <T>(
  limits: Readonly<Record<string, number>>,
  act: (stage: Stage) => Promise<T>,
): Promise<T> => {
  try {
    const upstream = start('parked-upstream', [String(UPSTREAM_IDLE_MS)])
    const { url } = await nextMessage<Target>(upstream)
    const gateway = await startProbedDragoman({ mcpServers: { asking: { url, era: 'legacy' } }, limits })
    const clients = worker<ClientJob, number>('parked-client')
    const waiting = (): Promise<number> => {
      upstream.send('waiting')
      return nextMessage<number>(upstream)
    }
    await clients({ kind: 'park', url: gateway.url, count: WARM })
    await clients({ kind: 'resume', url: gateway.url })
    await sleep(500)
    return await act({ gateway, clients, waiting })
  } finally {
    await stopAll()
  }
}

const resumeAll = async ({ gateway, clients, waiting }: Stage): Promise<Resumed> => {
  const { url } = gateway
  const before = await gateway.memory()
  const parked = await clients({ kind: 'park', url, count: AT_ONCE })
  await sleep(500)
  const each = kilobytesEach(before, await gateway.memory(), AT_ONCE)
  const upstreamCalls = await waiting()
  const right = await clients({ kind: 'resume', url })
  return { parked, upstreamCalls, each, right }
}

const abandonAll = async ({ gateway, clients, waiting }: Stage): Promise<Abandoned> => {
  const { url } = gateway
  const before = await gateway.memory()
  const started = Date.now()
  for (let parked = 0; parked < ABANDONED; parked += AT_ONCE) await clients({ kind: 'park', url, count: AT_ONCE })
  await clients({ kind: 'abandon' })
  const parkedMs = Date.now() - started
  const atOnce = await waiting()
  const during = await gateway.memory()
  const deadline = Date.now() + TTL_MS + SETTLE_MS
  let [left, after] = [await waiting(), await gateway.memory()]
  while ((left > 0 || after.heap > before.heap * HEAP_BACK) && Date.now() < deadline) {
    await sleep(1_000)
    left = await waiting()
    if (left === 0) after = await gateway.memory()
  }
  const each = kilobytesEach(before, during, atOnce)
  return { parked: ABANDONED, parkedMs, ttlMs: TTL_MS, atOnce, each, left, heap: { before, during, after } }
}

const known = facts()
const resumed = await withStage({}, resumeAll)
const abandoned = await withStage({ questionTtlMs: TTL_MS }, abandonAll)
const results: ParkedResults = { ...known, upstreamIdleMs: UPSTREAM_IDLE_MS, resumed, abandoned }
const section = parkedSection(results)
save('parked', results)
publish({ 'Parked calls': section })
console.log(section)
