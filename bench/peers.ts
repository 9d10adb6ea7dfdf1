// `node bench/start.mjs peers [--rounds N] [--ms N] [--only a,b]`: other gateways beside this one, turn by turn.
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startContestant, startUpstream, stopAll, worker } from './children.ts'
import type { Ready } from './contestant.ts'
import { untilAnswered } from './first-answer.ts'
import type { Figures, Job } from './load.ts'
import type { OpenFigures, OpenJob } from './open-sessions.ts'
import { publish, render } from './page.ts'
import type { Peer, Target } from './peer.ts'
import { installedVersions } from './peer-programs.ts'
import { type PeerRound, type PeersResults, type PeerTiming, peersSection } from './peers-report.ts'
import { facts, save } from './results.ts'
import { SCENARIOS } from './scenarios.ts'
import { rotate, type Time, warmUp } from './warm-up.ts'

/** Each contestant, and the gateway of ours that it is compared with. */
const BESIDE: Readonly<Record<string, string | undefined>> = {
  'bytes-proxy': 'dragoman',
  dragoman: undefined,
  'dragoman-2025': undefined,
  'dragoman-stdio': undefined,
  'dragoman-stdio-2025': undefined,
  nginx: 'dragoman',
  agentgateway: 'dragoman-2025',
  'mcp-proxy-go': 'dragoman-2025',
  'fastmcp-py': 'dragoman-2025',
  'sdk-v2-proxy': 'dragoman',
  'mcp-proxy-npm': 'dragoman-stdio',
  'mcp-proxy-npm-2025': 'dragoman-stdio-2025',
  'mcp-proxy-py': 'dragoman-stdio-2025',
  supergateway: 'dragoman-stdio-2025',
}
const CONNECTIONS = 16
const WHOLE = { rounds: 5, milliseconds: 600 }
const PASSES = 3
const WARM = { calls: 4_000, leastMs: 1_200, mostMs: 4_500 }
const SESSIONS = { most: 400, milliseconds: 2_000 }

const { values } = parseArgs({
  options: { rounds: { type: 'string' }, ms: { type: 'string' }, only: { type: 'string' } },
})
const rounds = Number(values.rounds ?? WHOLE.rounds)
const milliseconds = Number(values.ms ?? WHOLE.milliseconds)
// A short form warms up as briefly as it measures.
const warm = milliseconds < WHOLE.milliseconds ? { calls: 0, leastMs: milliseconds, mostMs: milliseconds } : WARM
const names = values.only?.split(',') ?? Object.keys(BESIDE)
const unknown = names.filter(name => !(name in BESIDE))
if (unknown.length > 0)
  throw new Error(`no contestant ${unknown.join(', ')}; there are ${Object.keys(BESIDE).join(', ')}`)
const isWhole = values.only === undefined && rounds >= WHOLE.rounds && milliseconds >= WHOLE.milliseconds

const skipped: Record<string, string> = {}
const contestants: Record<string, string> = {}

const skip = (name: string, why: string): void => {
  skipped[name] = why
  console.error(`skipped ${name}: ${why}`)
}

/** One contestant fails alone: the others are timed, and the page says why it is missing. */
const orSkip = async (name: string, work: () => Promise<void>): Promise<void> => {
  try {
    await work()
  } catch (error) {
    skip(name, (error as Error).message.replaceAll(/\s+/g, ' ').trim().slice(0, 200))
    await sleep(milliseconds) // the load's other connections finish their turn
  }
}

for (const name of names) {
  const { peer } = (await import(`./peers/${name}.js`)) as { peer: Peer }
  if (peer.missing !== undefined) skip(name, peer.missing)
}
const available = (): string[] => names.filter(name => !(name in skipped))

const cells: PeerTiming[] = []
const others: PeerRound[] = []

const begin = async (name: string, round: number, upstream: Target, time: Time): Promise<Ready> => {
  const target = await startContestant(name, upstream)
  const start = await untilAnswered(target)
  await warmUp(target, time, CONNECTIONS, warm)
  const open = worker<OpenJob, OpenFigures>('open-sessions')
  const opened = target.dialect === 'legacy' ? await open({ target, connections: CONNECTIONS, ...SESSIONS }) : undefined
  others.push({ contestant: name, round, start, sessionMicros: opened?.cpuMicrosPerSession })
  contestants[name] = target.about
  console.error(`${round + 1}  ${name.padEnd(20)} started in ${start.wallMs.toFixed(0)} ms`)
  return target
}

const timeRound = async (round: number): Promise<void> => {
  const ready = new Map<string, Ready>()
  try {
    const upstream = await startUpstream()
    const time: Time = worker<Job, Figures>('load')
    for (const name of available())
      await orSkip(name, async () => void ready.set(name, await begin(name, round, upstream, time)))
    for (let pass = 0; pass < PASSES; pass++)
      for (const { name: scenario } of SCENARIOS)
        for (const [name, target] of rotate([...ready], round + pass)) {
          if (name in skipped) continue
          await orSkip(name, async () => {
            const { dialect } = target
            const figures = await time({ target, dialect, scenario, connections: CONNECTIONS, milliseconds })
            cells.push({ contestant: name, scenario, connections: CONNECTIONS, round, pass, ...figures })
            console.error(
              `${round + 1}.${pass + 1}  ${scenario.padEnd(5)} ${name.padEnd(20)} ${figures.cpuMicrosPerCall.toFixed(0).padStart(6)} µs/call`,
            )
          })
        }
  } finally {
    await stopAll()
  }
}

const known = facts()
for (let round = 0; round < rounds; round++) await timeRound(round)
const beside = Object.fromEntries(Object.entries(BESIDE).flatMap(([name, ours]) => (ours ? [[name, ours]] : [])))
const results: PeersResults = {
  ...known,
  versions: { ...known.versions, ...installedVersions() },
  rounds,
  passes: PASSES,
  secondsPerTiming: milliseconds / 1000,
  connections: CONNECTIONS,
  contestants,
  beside,
  skipped,
  cells,
  others,
}
const section = peersSection(results)
save('peers', results)
if (isWhole) publish(section)
console.log(render(section))
