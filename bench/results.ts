import { readFileSync } from 'node:fs'
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

/** A whole run, as it is written to `results/`. */
export interface Results {
  readonly date: string
  readonly machine: string
  readonly versions: Readonly<Record<string, string>>
  readonly rounds: number
  readonly secondsPerTiming: number
  readonly contestants: Readonly<Record<string, string>> // name → what it is
  readonly cells: readonly Cell[]
}

const versionIn = (packageJson: string): string =>
  JSON.parse(readFileSync(new URL(packageJson, import.meta.url), 'utf8')).version

export const versions = (): Record<string, string> => ({
  node: process.version.slice(1),
  dragoman: versionIn('../../package.json'),
  undici: versionIn('../node_modules/undici/package.json'),
  '@modelcontextprotocol/client': versionIn('../node_modules/@modelcontextprotocol/client/package.json'),
  '@modelcontextprotocol/server': versionIn('../node_modules/@modelcontextprotocol/server/package.json'),
  '@modelcontextprotocol/node': versionIn('../node_modules/@modelcontextprotocol/node/package.json'),
})

/** What it ran on, and how busy that was when it began. */
export const machine = (): string => {
  const cores = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  const load = (loadavg()[0] ?? 0).toFixed(1)
  return `${cores.length} × ${cores[0]?.model.trim()}, ${memory} GiB, ${process.platform}, load ${load} at the start`
}
