import { readdirSync, readFileSync } from 'node:fs'
import { startProgram } from '../cli/program.ts'

/** Starts the built program with several workers and waits until all of them serve. */
export const startWorkers = async (args: readonly string[], count = 2) => {
  const program = startProgram(['serve', '--port', '0', '--workers', String(count), ...args])
  const [, origin = ''] = await program.saw(/listening on (http:\S+)/)
  await ready(program, count - 1)
  return { ...program, origin, url: `${origin}/mcp`, workers: () => workersOf(program.pid) }
}

export type WorkerGateway = Awaited<ReturnType<typeof startWorkers>>

/** Waits until that many workers have become ready since the start. */
export const ready = (program: Pick<WorkerGateway, 'saw'>, times: number) =>
  program.saw(new RegExp(`(?:"worker ready"[^]*){${times}}`), 'stderr')

/** The processes that the main process has started with its own arguments. */
const workersOf = (main: number): number[] => childrenOf(main).filter(pid => commandOf(pid).includes('--workers'))

const childrenOf = (parent: number): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && parentOf(name) === parent)
    .map(Number)

const parentOf = (pid: string): number => {
  const stat = read(`/proc/${pid}/stat`)
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

const commandOf = (pid: number): string => read(`/proc/${pid}/cmdline`)

const read = (file: string): string => {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return '' // it has ended
  }
}

/** Whether a process runs: one that its parent has not waited for yet has ended. */
export const isRunning = (pid: number): boolean => {
  const stat = read(`/proc/${pid}/stat`)
  return stat !== '' && stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z'
}
