import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { MARK } from './environment.ts'

const PAGE = 4096
const MOST_DEPTH = 16
const AT_A_TIME = 50 // processes looked at before others have their turn

/** The processes that carry a mark, by the environment they were started with; Linux only, elsewhere none. */
export const findMarked = async (mark: string): Promise<number[]> =>
  [...(await readMarks())].filter(([, marks]) => marks.includes(mark)).map(([pid]) => pid)

/** True if somebody of that group lives; those that wait for their parent to notice do not. Elsewhere always true. */
export const hasLiving = async (group: number): Promise<boolean> =>
  process.platform !== 'linux' || [...(await readGroups()).values()].includes(group)

/** Many ask at once when a gateway closes: whoever asks during a look around shares the next one. */
const inTurns = <T>(look: () => Promise<T>): (() => Promise<T>) => {
  let running: Promise<T> | undefined
  let next: Promise<T> | undefined
  const turn = (): Promise<T> => {
    if (running) {
      next ??= running.then(() => {
        next = undefined
        return turn()
      })
      return next
    }
    running = look().finally(() => {
      running = undefined
    })
    return running
  }
  return turn
}

/** Something about every process there is, for those that have it. */
const lookAround = async <T>(about: (pid: string) => T | undefined): Promise<ReadonlyMap<number, T>> => {
  const found = new Map<number, T>()
  if (process.platform !== 'linux') return found
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  for (const [i, pid] of pids.entries()) {
    if (i % AT_A_TIME === AT_A_TIME - 1) await new Promise(setImmediate)
    const known = about(pid)
    if (known !== undefined) found.set(Number(pid), known)
  }
  return found
}

const NEEDLE = `\0${MARK}=`

const readMarks = inTurns(() =>
  lookAround(pid => {
    const environ = `\0${read(`/proc/${pid}/environ`)}`
    const at = environ.indexOf(NEEDLE)
    if (at < 0) return undefined
    const from = at + NEEDLE.length
    const end = environ.indexOf('\0', from)
    return environ.slice(from, end < 0 ? undefined : end)
  }),
)

const readGroups = inTurns(() =>
  lookAround(pid => {
    const stat = read(`/proc/${pid}/stat`)
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' || group === undefined ? undefined : Number(group)
  }),
)

const buffer = Buffer.allocUnsafeSlow(64 * 1024)

/** Empty for a process that is gone, or somebody else's. Synchronous, for nothing here waits for a disk. */
const read = (file: string): string => {
  let text = ''
  try {
    const descriptor = openSync(file, 'r')
    try {
      for (let length = 1; length > 0; text += buffer.toString('latin1', 0, length))
        length = readSync(descriptor, buffer)
    } finally {
      closeSync(descriptor)
    }
  } catch {}
  return text
}

/** Resident bytes of a process and everything below it; undefined where the system does not tell. */
export const readMemory = (pid: number, depth = 0): number | undefined => {
  const statm = read(`/proc/${pid}/statm`)
  if (statm === '') return undefined
  const own = Number(statm.split(' ')[1]) * PAGE
  if (depth >= MOST_DEPTH) return own
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean)
  return children.reduce((sum, child) => sum + (readMemory(Number(child), depth + 1) ?? 0), own)
}
