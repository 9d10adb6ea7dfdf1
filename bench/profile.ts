// `npm --prefix bench run profile [-- --scenario big] [--seconds 10] [--era legacy]`: where the gateway's time goes.
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startUpstream, stopAll, worker } from './children.ts'
import type { Figures, Job } from './load.ts'
import type { ScenarioName } from './scenarios.ts'
import { startDragoman } from './start-dragoman.ts'

interface Profile {
  readonly nodes: readonly { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[]
  readonly samples: readonly number[]
}

const folder = fileURLToPath(new URL('../results/profiles/', import.meta.url))

const newestProfile = (): Profile => {
  const names = readdirSync(folder).filter(name => name.endsWith('.cpuprofile'))
  return JSON.parse(readFileSync(`${folder}${names.sort().at(-1)}`, 'utf8'))
}

const place = (url: string): string => url.replace(/^file:\/\/.*\/(?=dist\/|node_modules\/)/, '')

// The profile is written when the process ends by itself.
const end = async (pid: number): Promise<void> => {
  process.kill(pid, 'SIGTERM')
  for (let waited = 0; existsSync(`/proc/${pid}/fd/0`) && waited < 15_000; waited += 100) await sleep(100)
}

/** Share of the samples each function was on top in, largest first. Idle time counts for nothing. */
const selfTimes = ({ nodes, samples }: Profile): [where: string, share: number][] => {
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => [
      id,
      `${functionName || '(anonymous)'}${url ? ` ${place(url)}:${lineNumber + 1}` : ''}`,
    ]),
  )
  const busy = samples.map(id => names.get(id) ?? '').filter(name => name !== '(idle)')
  const counts = new Map<string, number>()
  for (const name of busy) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].map(([name, count]): [string, number] => [name, count / busy.length]).sort((a, b) => b[1] - a[1])
}

const { values } = parseArgs({
  options: {
    scenario: { type: 'string', default: 'echo' },
    seconds: { type: 'string', default: '6' },
    era: { type: 'string', default: 'modern' },
  },
})
const era = values.era === 'legacy' ? 'legacy' : 'modern'
mkdirSync(folder, { recursive: true })
try {
  const upstream = await startUpstream()
  const time = worker<Job, Figures>('load')
  const target = await startDragoman({ url: upstream.url, era }, ['--cpu-prof', `--cpu-prof-dir=${folder}`])
  const job = { target, dialect: era, scenario: values.scenario as ScenarioName, connections: 16 } as const
  const figures = await time({ ...job, milliseconds: Number(values.seconds) * 1000 })
  await end(target.pid)
  console.log(`${figures.calls} calls, ${figures.cpuMicrosPerCall.toFixed(1)} µs of CPU each, profiled`)
  for (const [where, share] of selfTimes(newestProfile()).slice(0, 45)) {
    console.log(
      `${(share * 100).toFixed(1).padStart(5)} %  ${(share * figures.cpuMicrosPerCall).toFixed(1).padStart(6)} µs  ${where}`,
    )
  }
} finally {
  await stopAll()
}
