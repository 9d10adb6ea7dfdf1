import { readMemory } from './tree.ts'

/** When a process is not kept any longer; 0: never. */
export interface Bounds {
  readonly idleMs: number
  readonly lifetimeMs: number
  readonly memoryBytes: number
}

/** Why a process should go. */
export type Due = 'idle' | 'old' | 'large'

const LONGEST_MS = 10_000
const SHORTEST_MS = 20

interface Subject {
  readonly pid: number
  readonly startedAt: number
  idleSince(): number | undefined // undefined: somebody is using it
}

/** Looks after a process from time to time, and says so when it should go; the returned function ends that. */
export const watchVitals = (subject: Subject, bounds: Bounds, due: (why: Due) => void): (() => void) => {
  const look = (): void => {
    const now = Date.now()
    if (bounds.memoryBytes > 0 && (readMemory(subject.pid) ?? 0) > bounds.memoryBytes) return due('large')
    const idleSince = subject.idleSince()
    if (bounds.idleMs > 0 && idleSince !== undefined && now - idleSince > bounds.idleMs) return due('idle')
    if (bounds.lifetimeMs > 0 && now - subject.startedAt > bounds.lifetimeMs) due('old')
  }
  const times = [bounds.idleMs / 4, bounds.lifetimeMs / 4].filter(ms => ms > 0)
  const timer = setInterval(look, Math.max(SHORTEST_MS, Math.min(LONGEST_MS, ...times)))
  timer.unref()
  return () => clearInterval(timer)
}
