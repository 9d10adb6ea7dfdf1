import { existsSync } from 'node:fs'
import { commandHint } from '../../config/foreign-keys.ts'
import type { ProcessServer } from '../../config/snapshot.ts'
import { type FailureDetails, UpstreamFailure } from '../failures.ts'
import { Child, type ChildHandler, type ProcessExit } from './child.ts'
import type { ProcessHost } from './process-host.ts'
import { environmentOf, programOf } from './program.ts'
import type { StderrListener } from './stderr.ts'

interface StartOptions {
  readonly host: ProcessHost
  readonly maxBytes: number // one line on stdout
  readonly exitMs: number
  readonly termMs: number
  readonly onStderr?: StderrListener | undefined
}

/** Starts a process of the server; rejects with UpstreamFailure. */
export const startChild = async (
  server: ProcessServer & { readonly name: string },
  { maxBytes, ...options }: StartOptions,
  handler: ChildHandler,
): Promise<Child> => {
  const { name, command, args, cwd } = server
  const tag = options.host.reaper.newTag()
  const own = server.inheritsAll ? { ...(process.env as Record<string, string>), ...server.env } : server.env
  const env = environmentOf(own, tag, process.env, process.platform)
  const program = programOf(command, args, { platform: process.platform, env, exists: existsSync })
  if (!program) throw new UpstreamFailure(name, notStarted('a batch file cannot be given arguments with line breaks'))
  try {
    return await Child.start({ program, cwd, env, tag, maxLineBytes: maxBytes, ...options }, handler)
  } catch (error) {
    throw new UpstreamFailure(name, failureOfStart(error as NodeJS.ErrnoException, server, env.PATH ?? env.Path))
  }
}

const failureOfStart = (
  error: NodeJS.ErrnoException,
  { command, args, cwd }: ProcessServer,
  path: string | undefined,
): FailureDetails => {
  if (cwd !== undefined && !existsSync(cwd)) return notStarted(`its folder "${cwd}" does not exist`)
  if (error.code === 'ENOENT') {
    const hint = commandHint(command, args)
    if (hint !== undefined) return notStarted(`"${command}" ${hint}`)
    const where = /[\\/]/.test(command) ? 'there is no such file' : `PATH was searched: ${path || '(empty)'}`
    return notStarted(`"${command}" was not found (${where})`)
  }
  return notStarted(error.code === 'EACCES' ? `"${command}" may not be executed` : error.message)
}

const notStarted = (why: string): FailureDetails => ({
  reason: 'upstream_unreachable',
  text: `could not be started: ${why}`,
})

/** The failure of the calls of a process that has ended. */
export const failureOfExit = (
  { code, signal }: ProcessExit,
  stderr: string,
  reason: 'upstream_lost' | 'upstream_unreachable',
): FailureDetails => {
  const how = signal ? `was ended by ${signal}` : `exited with code ${code ?? 'unknown'}`
  const when = reason === 'upstream_unreachable' ? ' before it answered' : ''
  return { reason, text: `${how}${when}`, stderr }
}
