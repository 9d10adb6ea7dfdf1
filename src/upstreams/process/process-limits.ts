import { UpstreamFailure } from '../failures.ts'
import { readMemory } from './process-table.ts'

/** Holds one process of a server. */
export interface ProcessOwner {
  readonly lastUsed: number
  readonly isBusy: boolean
  /** Ends the process; the owner starts another when it needs one. */
  endProcess(): void
}

/** Limits the processes of one server: when all are taken, the idle process that was used least recently ends. */
export class ProcessLimit {
  readonly #server: string
  readonly #limit: number
  readonly #owners = new Set<ProcessOwner>()

  constructor(server: string, limit: number) {
    this.#server = server
    this.#limit = limit
  }

  /** Throws UpstreamFailure if the limit is reached and every process is busy. */
  reserve(owner: ProcessOwner): void {
    if (this.#owners.size >= this.#limit) this.#evict()
    this.#owners.add(owner)
  }

  release(owner: ProcessOwner): void {
    this.#owners.delete(owner)
  }

  #evict(): void {
    const idle = [...this.#owners].filter(({ isBusy }) => !isBusy)
    const oldest = idle.sort((a, b) => a.lastUsed - b.lastUsed)[0]
    if (oldest) {
      this.#owners.delete(oldest)
      return oldest.endProcess()
    }
    const text = `has ${this.#limit} processes already, and all of them are busy: try again later`
    throw new UpstreamFailure(this.#server, { reason: 'upstream_busy', text })
  }
}

/** When a process is ended; 0: never. */
export interface UsageLimits {
  readonly idleMs: number
  readonly lifetimeMs: number
  readonly memoryBytes: number
}

/** The limit that a process has exceeded. */
export type UsageLimit = 'idle' | 'lifetime' | 'memory'

interface ProcessUsage {
  readonly pid: number
  readonly startedAt: number
  idleSince(): number | undefined // undefined: in use
  idleMs(): number // how long it may be unused; 0: for ever
}

const LONGEST_CHECK_MS = 10_000
const SHORTEST_CHECK_MS = 20

/** Checks a process at intervals and reports an exceeded limit; the returned function stops that. */
export const watchUsage = (
  usage: ProcessUsage,
  limits: UsageLimits,
  onExceeded: (limit: UsageLimit) => void,
): (() => void) => {
  const check = (): void => {
    const now = Date.now()
    if (limits.memoryBytes > 0 && (readMemory(usage.pid) ?? 0) > limits.memoryBytes) return onExceeded('memory')
    const idleSince = usage.idleSince()
    const idleMs = usage.idleMs()
    if (idleMs > 0 && idleSince !== undefined && now - idleSince > idleMs) return onExceeded('idle')
    if (limits.lifetimeMs > 0 && now - usage.startedAt > limits.lifetimeMs) onExceeded('lifetime')
  }
  const times = [limits.idleMs / 4, limits.lifetimeMs / 4].filter(ms => ms > 0)
  const timer = setInterval(check, Math.max(SHORTEST_CHECK_MS, Math.min(LONGEST_CHECK_MS, ...times)))
  timer.unref()
  return () => clearInterval(timer)
}
