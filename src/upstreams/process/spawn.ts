import { existsSync } from 'node:fs'
import type { ProcessServer } from '../../config/snapshot.ts'
import { UpstreamFailure } from '../failures.ts'
import { Child, type ChildReader } from './child.ts'
import { type Machine, type Program, programOf } from './command.ts'
import { environmentOf } from './environment.ts'
import { lossOfStart } from './failures.ts'
import { newMark } from './guardian.ts'
import type { StderrTap } from './stderr-log.ts'

interface Options {
  readonly maxBytes: number
  readonly exitMs: number
  readonly termMs: number
  readonly onStderr?: StderrTap | undefined
}

const BATCH_ARGUMENTS = 'could not be started: a batch file cannot be given arguments with line breaks'

/** Starts a process of that server; rejects with UpstreamFailure, in words that say what to change. */
export const startChild = async (
  server: ProcessServer & { readonly name: string },
  { maxBytes, ...options }: Options,
  reader: ChildReader,
): Promise<Child> => {
  const { name, command, args, cwd } = server
  const mark = newMark()
  const env = environmentOf(server.env, mark, process.env, process.platform)
  const machine: Machine = { platform: process.platform, env, exists: existsSync }
  const program: Program | undefined = programOf(command, args, machine)
  if (!program) throw new UpstreamFailure(name, { reason: 'upstream_unreachable', text: BATCH_ARGUMENTS })
  try {
    return await Child.start({ program, cwd, env, mark, maxLineBytes: maxBytes, ...options }, reader)
  } catch (error) {
    const hasFolder = cwd === undefined || existsSync(cwd)
    const path = env.PATH ?? env.Path
    throw new UpstreamFailure(name, lossOfStart(error as NodeJS.ErrnoException, { command, cwd, hasFolder, path }))
  }
}
