import { setTimeout as sleep } from 'node:timers/promises'
import { CONVERSATIONS, type Place } from './clients.ts'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'
import type { Figures } from './harness.ts'
import { startPipeClient } from './pipe-client.ts'
import { createRandom, subSeed } from './random.ts'
import { startFuzzServers } from './servers.ts'

interface Options {
  readonly seed: number
  readonly seconds: number
  readonly waves?: number // after each, everything must be as before
  readonly atOnce?: number // conversations
  readonly onWave?: (text: string) => void
}

/** What a run did, and what it found; nothing is good. */
export interface Outcome {
  readonly conversations: number
  readonly faults: readonly string[]
}

const MOST_FAULTS = 10
const SETTLE_MS = 20_000
const HEAP_GROWTH = 1.15
const HEAP_SLACK = 4 << 20

const LIMITS = {
  sessionIdleMs: 1000,
  orphanMs: 500,
  questionTtlMs: 1500,
  keepAliveMs: 500,
  stallMs: 2000,
  shutdownMs: 500,
}
const DEMO = { demo: { builtin: 'demo' } }
const QUIET = { limits: LIMITS, mcpServers: DEMO, workspaces: { demo: { servers: ['demo'] } } }

/** All servers, each alone, some together, and some together under rules. */
const busy = (entries: Readonly<Record<string, object>>) => {
  const alone = Object.fromEntries(['demo', ...Object.keys(entries)].map(name => [name, { servers: [name] }]))
  const workspaces = {
    ...alone,
    several: { servers: ['demo', 'modern-all', 'streamable-all', 'pipe-calls'] },
    ruled: {
      servers: ['demo', 'modern-calls', 'streamable-all', 'sse-all'],
      policy: { deny: { resources: ['test://b*'], tools: ['demo/example-add'] } },
      tools: { 'modern-calls/t': { title: 'T', arguments: { fixed: { a: 'y' }, default: { b: 1 } } } },
    },
  }
  return { ...QUIET, mcpServers: { ...DEMO, ...entries }, workspaces }
}

/** Damaged traffic at both faces of a gateway, for so long. */
export const fuzz = async ({ seed, seconds, waves = 2, atOnce = 32, onWave = () => {} }: Options): Promise<Outcome> => {
  const servers = await startFuzzServers(createRandom(subSeed(seed, 0)))
  const gateway = await startGatewayProcess(QUIET)
  const faults: string[] = []
  let conversations = 0
  try {
    const before = await gateway.figures()
    const heaps: number[] = []
    for (let wave = 0; wave < waves && faults.length === 0; wave++) {
      const config = busy(servers.entries)
      await gateway.swap(config)
      const found = await runWave(
        gateway,
        Object.keys(config.workspaces),
        subSeed(seed, 1, wave),
        seconds / waves,
        atOnce,
      )
      conversations += found.conversations
      faults.push(...found.faults, ...gateway.errors)
      if (gateway.errors.some(error => error.startsWith('the gateway ended'))) break
      const ran = Date.now()
      await gateway.swap(QUIET)
      const after = await settle(gateway, before)
      faults.push(...leaks(before, after))
      heaps.push(after.heapBytes)
      onWave(
        `wave ${wave + 1}: ${found.conversations} conversations, heap ${(after.heapBytes / 2 ** 20).toFixed(1)} MiB, settled in ${Date.now() - ran} ms`,
      )
    }
    const [first = 0, last = first] = [heaps[0], heaps.at(-1)]
    if (last > first * HEAP_GROWTH + HEAP_SLACK) faults.push(`the heap grew from ${first} to ${last} bytes`)
  } finally {
    await gateway.stop()
    await servers.close()
  }
  return { conversations, faults: [...new Set(faults)].slice(0, MOST_FAULTS) }
}

const runWave = async (
  gateway: GatewayProcess,
  workspaces: readonly string[],
  seed: number,
  seconds: number,
  atOnce: number,
): Promise<Outcome> => {
  const faults: string[] = []
  const pick = createRandom(subSeed(seed, 2))
  const pipes = await Promise.all([0, 1].map(() => startPipeClient(gateway.origin, pick.pick(workspaces))))
  const end = Date.now() + seconds * 1000
  let conversations = 0
  const worker = async (number: number): Promise<void> => {
    for (let turn = 0; Date.now() < end && faults.length < MOST_FAULTS && gateway.errors.length === 0; turn++) {
      const own = subSeed(seed, 3, number, turn)
      const random = createRandom(own)
      const sent: string[] = []
      const pipe = pipes[number % pipes.length] as (typeof pipes)[number]
      const place: Place = {
        origin: gateway.origin,
        workspace: random.pick(workspaces),
        random,
        damage: random.pick([0, 0.3, 0.6]),
        pipe,
        note: bytes => sent.push(bytes.toString().slice(0, 1500)),
      }
      conversations++
      try {
        await random.pick(CONVERSATIONS)(place)
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error)
        faults.push(`${why}\n  workspace ${place.workspace}, seed ${own}, sent:\n  ${sent.join('\n  ')}`)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, (_, number) => worker(number)))
  await Promise.all(pipes.map(pipe => pipe.close()))
  return { conversations, faults: [...faults, ...pipes.flatMap(({ errors }) => errors)] }
}

const isBack = (before: Figures, now: Figures): boolean => leaks(before, now).length === 0

const settle = async (gateway: GatewayProcess, before: Figures): Promise<Figures> => {
  const deadline = Date.now() + SETTLE_MS
  let now = await gateway.figures()
  while (!isBack(before, now) && Date.now() < deadline) {
    await sleep(250)
    now = await gateway.figures()
  }
  return now
}

/** What is still there although every client and every other server has gone. */
const leaks = (before: Figures, after: Figures): string[] => {
  const held = Object.entries(after.load).filter(([, count]) => count > 0)
  const kinds = Object.entries(after.resources).filter(([kind, count]) => count > (before.resources[kind] ?? 0))
  return [
    ...held.map(([what, count]) => `${count} ${what} are left`),
    ...kinds.map(([kind, count]) => `${count} ${kind} are left, there were ${before.resources[kind] ?? 0}`),
  ]
}
