import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { start as startClock } from '../../support/servers/clock-server.ts'
import type { Programs } from './programs.ts'

/** Three other servers, of other kinds than each other, that share a workspace with the one the suite is about. */
export interface Companions {
  /** What the gateway's configuration says about them, by name. */
  readonly entries: Readonly<Record<string, object>>
  close(): Promise<void>
}

/** Everything they list; the suite's own servers have none of these names. */
const OFFERED: ReadonlySet<string> = new Set([
  ...['list_dir', 'read_file', 'find_file', 'search_for_pattern', 'file:///readme.txt'],
  ...['list_notes', 'sum_up_notes', 'notes://today'],
  ...['tell_time', 'plan_day', 'clock://now'],
])

/** One tool of each. */
const TOOLS: readonly string[] = ['list_dir', 'list_notes', 'tell_time']

/** Starts them: one inside the gateway, a legacy one over a pipe, a modern one over HTTP. */
export const startCompanions = async (folder: string, programs: Programs): Promise<Companions> => {
  const root = join(folder, 'files')
  await mkdir(root)
  await writeFile(join(root, 'readme.txt'), 'A file.\n')
  const clock = await startClock()
  return {
    entries: {
      files: { builtin: 'files', root },
      notes: { command: process.execPath, args: [programs('support/servers/notes-stdio.js')] },
      clock: { url: clock.url },
    },
    close: clock.close,
  }
}

/** A list without what the companions put there. */
export const withoutCompanions = (listed: readonly string[]): string[] => listed.filter(name => !OFFERED.has(name))

/** Says who of the companions is missing from a list of tools: without them, nothing is proved about workspaces. */
export const assertCompanions = (tools: readonly string[]): void => {
  const missing = TOOLS.filter(name => !tools.includes(name))
  if (missing.length > 0) throw new Error(`The workspace does not show ${missing}, only ${tools}`)
}

/** Says what is wrong with the list of a workspace above its budget: it shows the gateway's tools, and finds the companions'. */
export const assertBudget = (tools: readonly string[], found: string): void => {
  const listed = TOOLS.filter(name => tools.includes(name))
  if (listed.length > 0 || !tools.includes('search_tools'))
    throw new Error(`The workspace is not above its budget: it lists ${tools}`)
  if (!found.includes('tell_time')) throw new Error(`The workspace does not find tell_time, only ${found}`)
}
