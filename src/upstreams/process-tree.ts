import { readdir, readFile } from 'node:fs/promises'
import { MARK } from './process-environment.ts'

const PAGE = 4096
const MOST_DEPTH = 16

type Marks = ReadonlyMap<number, string>

let running: Promise<Marks> | undefined
let next: Promise<Marks> | undefined

/** The processes that carry a mark, by the environment they were started with; Linux only, elsewhere none. */
export const findMarked = async (mark: string): Promise<number[]> =>
  [...(await readMarks())].filter(([, marks]) => marks.includes(mark)).map(([pid]) => pid)

/** Many ask at once when a gateway closes: whoever asks during a look around gets the next one. */
const readMarks = (): Promise<Marks> => {
  if (running) {
    next ??= running.then(() => {
      next = undefined
      return readMarks()
    })
    return next
  }
  running = lookAround().finally(() => {
    running = undefined
  })
  return running
}

const lookAround = async (): Promise<Marks> => {
  const found = await Promise.all((await listProcesses()).map(readMark))
  return new Map(found.filter(entry => entry !== undefined))
}

const listProcesses = async (): Promise<string[]> => {
  if (process.platform !== 'linux') return []
  const names = await readdir('/proc').catch(() => [])
  return names.filter(name => /^\d+$/.test(name))
}

const NEEDLE = `${MARK}=`

const readMark = async (pid: string): Promise<readonly [number, string] | undefined> => {
  const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '') // gone, or somebody else's
  const at = environ.startsWith(NEEDLE) ? 0 : environ.indexOf(`\0${NEEDLE}`) + 1
  if (at === 0 && !environ.startsWith(NEEDLE)) return undefined
  const end = environ.indexOf('\0', at)
  return [Number(pid), environ.slice(at + NEEDLE.length, end < 0 ? undefined : end)]
}

/** True if somebody of that group lives; those that wait for their parent to notice do not. Elsewhere always true. */
export const hasLiving = async (group: number): Promise<boolean> => {
  if (process.platform !== 'linux') return true
  const stats = await Promise.all(
    (await listProcesses()).map(pid => readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')),
  )
  return stats.some(stat => {
    const [state, , groupOf] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state !== 'Z' && Number(groupOf) === group
  })
}

/** Resident bytes of a process and everything below it; undefined where the system does not tell. */
export const readMemory = async (pid: number, depth = 0): Promise<number | undefined> => {
  const statm = await readFile(`/proc/${pid}/statm`, 'latin1').catch(() => undefined)
  if (statm === undefined) return undefined
  const own = Number(statm.split(' ')[1]) * PAGE
  if (depth >= MOST_DEPTH) return own
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'latin1').catch(() => '')
  const below = await Promise.all(
    children
      .split(' ')
      .filter(Boolean)
      .map(child => readMemory(Number(child), depth + 1)),
  )
  return below.reduce<number>((sum, bytes) => sum + (bytes ?? 0), own)
}
