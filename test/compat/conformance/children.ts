import { type ChildProcess, spawn } from 'node:child_process'

const running = new Set<ChildProcess>()
const TAIL_LINES = 20

/** A child process whose output is looked at while it runs. */
export interface Child {
  /** Everything it has printed, on both streams. */
  output(): string
  /** The last lines it printed, for an error message. */
  tail(): string
  /** Resolves with the exit code when it has ended. */
  readonly ended: Promise<number | null>
  /** Ends it, first politely. */
  stop(): Promise<void>
}

/** Starts Node on a program; the child never outlives this process. */
export const startNode = (args: readonly string[], onOutput: (text: string) => void = () => undefined): Child => {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const take = (chunk: Buffer) => {
    output += chunk.toString()
    onOutput(chunk.toString())
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  running.add(child)
  const ended = new Promise<number | null>(resolve => {
    child.once('error', () => resolve(null))
    child.once('close', code => resolve(code))
  }).finally(() => running.delete(child))
  return {
    output: () => output,
    tail: () => output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n'),
    ended,
    stop: async () => {
      child.kill('SIGTERM')
      const impatience = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await ended
      clearTimeout(impatience)
    },
  }
}

/** Ends whatever is still running when this process ends, also by Ctrl-C. */
export const endChildrenOnExit = (): void => {
  process.once('exit', () => {
    for (const child of running) child.kill('SIGKILL')
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
}
