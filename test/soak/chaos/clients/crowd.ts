import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom, subSeed } from '../../fuzz/random.ts'
import type { Ledger, NumberedCall } from '../ledger.ts'
import { JOBS } from '../servers/servers.ts'
import type { ChaosClient, ClientContext, Connect } from './client.ts'
import { connectPipeV1, connectPipeV2 } from './pipe.ts'
import { connectRawSession } from './raw-session.ts'
import { connectRawStateless } from './raw-stateless.ts'
import { connectV1Channel, connectV1Session } from './sdk-v1.ts'
import { connectV2Stateless } from './sdk-v2.ts'
import { connectTaskSession, connectTaskStateless } from './task-clients.ts'

interface Dialect {
  readonly name: string
  readonly connect: Connect
  readonly share: number
  readonly hasTasks?: boolean
}

/** Of twenty clients, how many are of each dialect; a `dragoman stdio` is a process. */
const DIALECTS: readonly Dialect[] = [
  { name: '2025 tasks', connect: connectTaskSession, share: 1, hasTasks: true },
  { name: '2026 tasks', connect: connectTaskStateless, share: 1, hasTasks: true },
  { name: '2025 raw', connect: connectRawSession, share: 4 },
  { name: '2025 SDK v1', connect: connectV1Session, share: 4 },
  { name: 'HTTP+SSE SDK v1', connect: connectV1Channel, share: 3 },
  { name: '2026 raw', connect: connectRawStateless, share: 3 },
  { name: '2026 SDK v2', connect: connectV2Stateless, share: 3 },
  { name: 'stdio', connect: connectPipeV1, share: 0.5 },
  { name: 'stdio SDK v2', connect: connectPipeV2, share: 0.5 },
]

/** Where the crowd connects. */
export interface Station {
  readonly origin: string
  readonly data: readonly string[] // of the gateways
  readonly run: string
  readonly servers: readonly string[] // each is a workspace; `all` has them all
}

export interface Crowd {
  readonly size: number
  /** Lets running calls end; then asks every session whether it still answers. */
  stop(): Promise<void>
  /** Ends every session. */
  leave(): Promise<void>
}

const REFUSED_MS = 500 // until a client that found no gateway tries again

interface CrowdOptions {
  readonly clients: number
  readonly seed: number
  readonly paceMs: number // between two calls of one client, on average
  readonly ledger: Ledger
}

/** The dialects of so many clients, each at least once if there are enough. */
const dialectsFor = (count: number): Dialect[] => {
  const wanted = DIALECTS.flatMap(dialect => Array(Math.max(1, Math.round((dialect.share * count) / 20))).fill(dialect))
  return Array.from({ length: count }, (_, at) => wanted[at % wanted.length] as Dialect)
}

/** What a client calls next. */
const nextCall = (random: ReturnType<typeof createRandom>): Omit<NumberedCall, 'number'> => {
  const choice = random.next()
  if (choice < 0.4) return { tool: 'work', ms: 0, events: 0 }
  if (choice < 0.65) return { tool: 'work', ms: 20 + random.below(800), events: 0 }
  if (choice < 0.9) return { tool: 'work', ms: 50 + random.below(900), events: 5 }
  return { tool: 'ask', ms: 0, events: 0 }
}

/** What a client with tasks calls next: a tool that needs a task, or one that any server has. */
const nextTask = (random: ReturnType<typeof createRandom>): Omit<NumberedCall, 'number'> =>
  random.next() < 0.5
    ? { tool: 'job', ms: 200 + random.below(2_500), events: 0 }
    : { tool: 'work', ms: random.below(1_200), events: 0 }

const AT_ONCE = 10 // processes and handshakes that begin together

/** Runs these tasks, a few at a time, and keeps their order. */
const inTurn = async <T>(tasks: readonly (() => Promise<T>)[]): Promise<T[]> => {
  const done: T[] = []
  let next = 0
  const work = async (): Promise<void> => {
    for (let at = next++; at < tasks.length; at = next++) done[at] = await (tasks[at] as () => Promise<T>)()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return done
}

/** Connects the clients, which call until they are stopped. */
export const gather = async (station: Station, { clients, seed, paceMs, ledger }: CrowdOptions): Promise<Crowd> => {
  const workspaces = [...station.servers, 'all']
  let isStopped = false

  const live = async (
    client: ChaosClient,
    context: ClientContext,
    plan: typeof nextCall,
    at: number,
  ): Promise<void> => {
    const random = createRandom(subSeed(seed, at))
    await sleep(random.below(paceMs))
    while (!isStopped) {
      const next = plan(random)
      const call = ledger.begin(context.name, client.canBeAsked?.() === false ? { ...next, tool: 'work' } : next)
      const outcome = await client.call(call)
      ledger.end(call, outcome)
      await sleep(outcome.kind === 'refused' ? Math.max(paceMs, REFUSED_MS) : random.below(2 * paceMs))
    }
  }

  const connected = await inTurn(
    dialectsFor(clients).map((dialect, at) => async () => {
      const { hasTasks = false } = dialect
      const workspace = hasTasks ? 'all' : (workspaces[at % workspaces.length] ?? 'all')
      const server = station.servers[at % station.servers.length]
      const context: ClientContext = {
        ...station,
        name: `client ${at} (${dialect.name}, ${workspace})`,
        data: station.data[at % station.data.length] ?? '',
        workspace,
        toolName: tool => (workspace === 'all' ? `${tool === 'job' ? JOBS : server}__${tool}` : tool),
        ledger,
      }
      return { context, client: await dialect.connect(context), plan: hasTasks ? nextTask : nextCall }
    }),
  )
  const lives = Promise.all(connected.map(({ client, context, plan }, at) => live(client, context, plan, at)))
  lives.catch(() => {}) // reported by `stop`
  return {
    size: connected.length,
    stop: async () => {
      isStopped = true
      await lives
      for (const { client, context } of connected) {
        const why = await client.whyDead()
        if (why !== undefined) ledger.sessionLost(`${context.name}, at the end: ${why}`, context.name)
      }
    },
    leave: async () => void (await Promise.all(connected.map(({ client }) => client.close().catch(() => {})))),
  }
}
