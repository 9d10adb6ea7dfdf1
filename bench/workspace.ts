// `node bench/start.mjs workspace [--rounds N]`: what a call costs with one, twenty and two hundred servers.
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { nextMessage, start, startContestant, stopAll, worker } from './children.ts'
import type { Ready } from './contestant.ts'
import type { Figures, Job } from './load.ts'
import { calledNames, TOOLS } from './many-servers.ts'
import { publish } from './page.ts'
import type { Target } from './peer.ts'
import { facts, save } from './results.ts'
import { type WorkspaceCell, type WorkspaceResults, workspaceSection } from './workspace-report.ts'

interface Case {
  readonly contestant: string
  readonly about: string
  readonly names: readonly string[]
}

const CASES: Readonly<Record<string, Case>> = {
  direct: {
    contestant: 'workspace-direct',
    about: 'one server, its names as they are',
    names: calledNames(1, 'one', 'plain'),
  },
  '1': { contestant: 'workspace-1', about: 'one server', names: calledNames(1, 'one', 'prefix') },
  '20': { contestant: 'workspace-20', about: '20 servers, one is called', names: calledNames(20, 'one', 'prefix') },
  '200': { contestant: 'workspace-200', about: '200 servers, one is called', names: calledNames(200, 'one', 'prefix') },
  '20-all': {
    contestant: 'workspace-20',
    about: '20 servers, all are called',
    names: calledNames(20, 'all', 'prefix'),
  },
  '200-all': {
    contestant: 'workspace-200',
    about: '200 servers, 50 are called',
    names: calledNames(200, 'all', 'prefix'),
  },
}
const LEAST_ROUNDS = 7
const CONNECTIONS = 16
const TIMING_MS = 800
const WARM_MS = 1_500 // of each turn
const WARM_TURNS = 4
const MOST_WAIT_MS = 60_000

type Time = (job: Job) => Promise<Figures>

const jobOf = (target: Ready, { names }: Case, milliseconds: number): Job => ({
  target,
  dialect: target.dialect,
  scenario: 'echo',
  connections: CONNECTIONS,
  milliseconds,
  names,
})

/** How many tools are listed, on all pages together. */
const countTools = async (url: string): Promise<number> => {
  let [count, cursor] = [0, undefined as string | undefined]
  do {
    const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' }
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { cursor, _meta } })
    const sent = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers }
    const response = await fetch(url, { method: 'POST', headers: sent, body })
    const { result } = (await response.json()) as { result?: { tools: unknown[]; nextCursor?: string } }
    if (!result) return 0 // a cursor of a list that has changed since
    count += result.tools.length
    cursor = result.nextCursor
  } while (cursor !== undefined)
  return count
}

const untilListed = async ({ url }: Target): Promise<void> => {
  const deadline = Date.now() + MOST_WAIT_MS
  let count = await countTools(url)
  while (count < TOOLS) {
    if (Date.now() > deadline) throw new Error(`only ${count} of ${TOOLS} tools are listed at ${url}`)
    await sleep(200)
    count = await countTools(url)
  }
}

const rotate = <T>(list: readonly T[], by: number): T[] => [
  ...list.slice(by % list.length),
  ...list.slice(0, by % list.length),
]

/** As long for each gateway, however many cases it has a part in: V8 goes on optimising for seconds. */
const warmUp = async (target: Ready, contestant: string, time: Time): Promise<void> => {
  const cases = Object.values(CASES).filter(each => each.contestant === contestant)
  for (let turn = 0; turn < WARM_TURNS; turn++) await time(jobOf(target, cases[turn % cases.length] as Case, WARM_MS))
}

const timeRound = async (round: number): Promise<WorkspaceCell[]> => {
  const ready = new Map<string, Ready>()
  const cells: WorkspaceCell[] = []
  try {
    const upstream = await nextMessage<Target>(start('many-upstream'))
    const time: Time = worker<Job, Figures>('load')
    for (const contestant of new Set(Object.values(CASES).map(each => each.contestant))) {
      const target = await startContestant(contestant, upstream)
      ready.set(contestant, target)
      await untilListed(target)
      await warmUp(target, contestant, time)
    }
    for (const [name, each] of rotate(Object.entries(CASES), round)) {
      const cell = { name, round, ...(await time(jobOf(ready.get(each.contestant) as Ready, each, TIMING_MS))) }
      cells.push(cell)
      console.error(`${round + 1}  ${each.about.padEnd(34)} ${cell.cpuMicrosPerCall.toFixed(1).padStart(7)} µs/call`)
    }
  } finally {
    await stopAll()
  }
  return cells
}

const { values } = parseArgs({ options: { rounds: { type: 'string' } } })
const rounds = Number(values.rounds ?? LEAST_ROUNDS)
const known = facts()
const cells: WorkspaceCell[] = []
for (let round = 0; round < rounds; round++) cells.push(...(await timeRound(round)))
const results: WorkspaceResults = {
  ...known,
  rounds,
  secondsPerTiming: TIMING_MS / 1000,
  connections: CONNECTIONS,
  cases: Object.fromEntries(Object.entries(CASES).map(([name, { about }]) => [name, about])),
  cells,
}
const section = workspaceSection(results)
save('workspace', results)
if (rounds >= LEAST_ROUNDS) publish({ 'Many servers': section })
console.log(section)
