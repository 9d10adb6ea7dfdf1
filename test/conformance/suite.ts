import { mkdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { startNode } from './children.ts'
import { type Outcome, readOutcomes, requiredScenarios, unrun } from './outcomes.ts'

/** The revisions the suite holds requirements for. */
export type SuiteRevision = '2025-11-25' | '2026-07-28'

/** What one run of the suite found: the required scenarios, and those it ran besides. */
export interface SuiteResult {
  readonly required: readonly Outcome[]
  readonly others: readonly Outcome[]
}

const ROOT = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'))
const HOOK = new URL('./node20-hook.mjs', import.meta.url).href
const SUITE_MS = 180_000

/** How one run of the suite is asked for. */
export interface SuiteRun {
  readonly url: string
  readonly revision: SuiteRevision
  /** Only this scenario. */
  readonly scenario: string | undefined
  /** Where the suite writes; a new folder. */
  readonly folder: string
  /** Called with the name of every scenario as it begins. */
  readonly onScenario: (name: string) => void
}

/** Runs the official suite against a server. */
export const runSuite = async (run: SuiteRun): Promise<SuiteResult> => {
  await mkdir(run.folder, { recursive: true })
  const scope = run.scenario
    ? ['--scenario', run.scenario, '--spec-version', run.revision]
    : ['--requirements', run.revision]
  const child = startNode(
    ['--import', HOOK, join(ROOT, 'dist/index.js'), 'server', '--url', run.url, ...scope, '-o', run.folder],
    text => {
      for (const [, name] of text.matchAll(/Running scenario: (\S+)/g)) run.onScenario(String(name))
    },
  )
  const impatience = setTimeout(() => void child.stop(), SUITE_MS)
  await child.ended
  clearTimeout(impatience)
  const outcomes = await readOutcomes(run.folder)
  const required = run.scenario ? [run.scenario] : await readRequired(run.revision)
  return {
    required: required.map(name => outcomes.get(name) ?? unrun(name, `was not run:\n${child.tail()}`)),
    others: [...outcomes.values()].filter(({ scenario }) => !required.includes(scenario)),
  }
}

/** The names of the scenarios a revision requires of a server. */
export const readRequired = async (revision: SuiteRevision): Promise<string[]> =>
  requiredScenarios(await readFile(join(ROOT, 'requirements', `${revision}.yaml`), 'utf8'))
