import { spawn } from 'node:child_process'

/** A command line with what it needs of the environment. */
export interface Command {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** How a command ended. */
export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Set if the command could not be started or was ended for taking too long. */
  readonly failure?: string
}

const KEPT = 200_000

/** Runs a command to its end; after `ms` it is killed. Never throws. */
export const runCommand = ({ command, args, env, cwd }: Command, ms: number): Promise<CommandResult> =>
  new Promise(resolve => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
      ...(cwd !== undefined && { cwd }),
    })
    const kill = (): void => void child.kill('SIGKILL')
    process.once('exit', kill)
    const output = { stdout: '', stderr: '' }
    let failure: string | undefined
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] = (output[name] + text).slice(-KEPT)
      })
    }
    const timer = setTimeout(() => {
      failure = `killed after ${ms / 1000} s`
      kill()
      // A grandchild may hold the pipes open: the result does not wait for it.
      child.stdout.destroy()
      child.stderr.destroy()
    }, ms)
    const settle = (code: number | null): void => {
      clearTimeout(timer)
      process.off('exit', kill)
      resolve({ code, ...output, ...(failure !== undefined && { failure }) })
    }
    child.once('error', error => {
      failure = error.message
      settle(null)
    })
    child.once('close', settle)
  })

/** The last lines of what a command printed, for a message. */
export const tailOf = ({ stdout, stderr, failure }: CommandResult, lines = 5): string =>
  [failure ?? '', ...`${stdout}\n${stderr}`.trim().split('\n').slice(-lines)].filter(Boolean).join('\n')
