import type { Loss } from '../failures.ts'
import type { Exit } from './child.ts'

/** What was to be started, for a sentence about why it was not. */
interface Attempt {
  readonly command: string
  readonly cwd: string | undefined
  readonly hasFolder: boolean
  readonly path: string | undefined
}

/** Translates the error of a program that could not be started. */
export const lossOfStart = (error: NodeJS.ErrnoException, { command, cwd, hasFolder, path }: Attempt): Loss => {
  const unreachable = (text: string): Loss => ({
    reason: 'upstream_unreachable',
    text: `could not be started: ${text}`,
  })
  if (cwd !== undefined && !hasFolder) return unreachable(`its folder "${cwd}" does not exist`)
  if (error.code === 'ENOENT') {
    const where = /[\\/]/.test(command) ? 'there is no such file' : `PATH was searched: ${path || '(empty)'}`
    return unreachable(`"${command}" was not found (${where})`)
  }
  if (error.code === 'EACCES') return unreachable(`"${command}" may not be executed`)
  return unreachable(error.message)
}

/** What a process that ended leaves its callers with: how it ended, and its last words. */
export const lossOfExit = (exit: Exit, stderr: string, reason: 'upstream_lost' | 'upstream_unreachable'): Loss => {
  const { code, signal } = exit
  const how = signal ? `was ended by ${signal}` : `exited with code ${code ?? 'unknown'}`
  const when = reason === 'upstream_unreachable' ? ' before it answered' : ''
  return { reason, text: `${how}${when}`, stderr }
}
