import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import type { Figures } from './load.ts'
import type { ScenarioName } from './scenarios.ts'

/** The figures of one contestant in one round. */
export interface Cell extends Figures {
  readonly contestant: string
  readonly scenario: ScenarioName
  readonly connections: number
  readonly round: number
}

/** When and on what something was measured. */
export interface Facts {
  readonly date: string
  readonly machine: string
  readonly versions: Readonly<Record<string, string>>
}

/** All timings of a run. */
export interface Results extends Facts {
  readonly rounds: number
  readonly secondsPerTiming: number
  readonly contestants: Readonly<Record<string, string>> // name → what it is
  readonly cells: readonly Cell[]
}

const versionIn = (packageJson: string): string =>
  JSON.parse(readFileSync(new URL(packageJson, import.meta.url), 'utf8')).version

const versions = (): Record<string, string> => ({
  node: process.version.slice(1),
  dragoman: versionIn('../../package.json'),
  undici: versionIn('../node_modules/undici/package.json'),
  '@modelcontextprotocol/client': versionIn('../node_modules/@modelcontextprotocol/client/package.json'),
  '@modelcontextprotocol/server': versionIn('../node_modules/@modelcontextprotocol/server/package.json'),
  '@modelcontextprotocol/node': versionIn('../node_modules/@modelcontextprotocol/node/package.json'),
})

/** What it ran on, and how busy that was when it began. */
const machine = (): string => {
  const cores = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  const load = (loadavg()[0] ?? 0).toFixed(1)
  return `${cores.length} × ${cores[0]?.model.trim()}, ${memory} GiB, ${process.platform}, load ${load} at the start`
}

export const facts = (): Facts => ({ date: new Date().toISOString(), machine: machine(), versions: versions() })

/** The facts, for the head of a section, with the versions of those it names or of all. */
export const factsLine = ({ date, machine: where, versions: used }: Facts, names = Object.keys(used)): string =>
  [date.slice(0, 10), where, ...names.map(name => `${name} ${used[name]}`)].join(' · ')

/** For a section that only the gateway has a part in. */
export const OURS_ALONE = ['node', 'dragoman']

/** Keeps the raw values in `results/`. */
export const save = (step: string, results: Facts): void => {
  const folder = new URL('../results/', import.meta.url)
  mkdirSync(folder, { recursive: true })
  const file = new URL(`${step}-${results.date.replaceAll(/[:.]/g, '-')}.json`, folder)
  writeFileSync(file, JSON.stringify(results, null, 1))
}
