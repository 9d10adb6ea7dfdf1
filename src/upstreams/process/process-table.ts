import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { SingleFlight } from '../../std/single-flight.ts'
import { TAG_VARIABLE } from './program.ts'

const PAGE_BYTES = 4096
const MAX_DEPTH = 16
const BATCH = 50 // processes read before the event loop runs other work
const TAG_PREFIX = `\0${TAG_VARIABLE}=`

/** The running processes of this machine, read from /proc. Concurrent callers share a scan: many ask when a gateway closes. */
export class ProcessTable {
  readonly #readTags = shareNext(() =>
    scan(pid => {
      const environ = `\0${read(`/proc/${pid}/environ`)}`
      const at = environ.indexOf(TAG_PREFIX)
      if (at < 0) return undefined
      const from = at + TAG_PREFIX.length
      const end = environ.indexOf('\0', from)
      return environ.slice(from, end < 0 ? undefined : end)
    }),
  )

  readonly #readGroups = shareNext(() =>
    scan(pid => {
      const stat = read(`/proc/${pid}/stat`)
      const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return state === 'Z' || group === undefined ? undefined : Number(group)
    }),
  )

  /** Ids of the processes whose environment holds the tag; Linux only, elsewhere none. */
  async findTagged(tag: string): Promise<number[]> {
    return [...(await this.#readTags())].filter(([, tags]) => tags.includes(tag)).map(([pid]) => pid)
  }

  /** Whether a process of that group runs; zombies do not count. True where the platform has no /proc. */
  async isGroupAlive(group: number): Promise<boolean> {
    return process.platform !== 'linux' || [...(await this.#readGroups()).values()].includes(group)
  }
}

/** A caller during a run shares the run after it: the current one may have passed what the caller looks for. */
const shareNext = <T>(work: () => Promise<T>): (() => Promise<T>) => {
  const current = new SingleFlight<T>()
  let next: Promise<T> | undefined
  const run = (): Promise<T> => {
    if (!current.running) return current.run(work)
    next ??= current.running.then(() => {
      next = undefined
      return run()
    })
    return next
  }
  return run
}

const scan = async <T>(readOne: (pid: string) => T | undefined): Promise<ReadonlyMap<number, T>> => {
  const found = new Map<number, T>()
  if (process.platform !== 'linux') return found
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  for (const [i, pid] of pids.entries()) {
    if (i % BATCH === BATCH - 1) await new Promise(setImmediate)
    const value = readOne(pid)
    if (value !== undefined) found.set(Number(pid), value)
  }
  return found
}

const buffer = Buffer.allocUnsafeSlow(64 * 1024)

/** Empty for a process that has ended or belongs to another user. Synchronous, because /proc never waits for a disk. */
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
  } catch {
    // the process has ended, or belongs to another user
  }
  return text
}

/** Resident bytes of a process and all its descendants; undefined where the platform has no /proc. */
export const readMemory = (pid: number, depth = 0): number | undefined => {
  const statm = read(`/proc/${pid}/statm`)
  if (statm === '') return undefined
  const own = Number(statm.split(' ')[1]) * PAGE_BYTES
  if (depth >= MAX_DEPTH) return own
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean)
  return children.reduce((sum, child) => sum + (readMemory(Number(child), depth + 1) ?? 0), own)
}
