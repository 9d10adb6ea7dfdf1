import { Semaphore } from '../../std/semaphore.ts'
import { OrphanReaper } from './orphan-reaper.ts'
import { ProcessTable } from './process-table.ts'

const SLOT_MS = 2500

/** Limits concurrent process starts; further starts wait in order. */
export class StartLimit {
  readonly #slots: Semaphore
  readonly #slotMs: number

  /** `slotMs`: a start that takes longer frees its slot for the next one and goes on. */
  constructor(limit: number, slotMs = SLOT_MS) {
    this.#slots = new Semaphore(limit)
    this.#slotMs = slotMs
  }

  /** Resolves with a function that frees the slot; calling it again has no effect. */
  async acquire(): Promise<() => void> {
    const release = await this.#slots.acquire()
    const timer = setTimeout(release, this.#slotMs).unref()
    return () => {
      clearTimeout(timer)
      release()
    }
  }
}

/** What the child processes of all servers share. One per gateway: a machine has one CPU to start programs with. */
export class ProcessHost {
  readonly startLimit: StartLimit
  readonly reaper = new OrphanReaper()
  readonly table = new ProcessTable()

  constructor(concurrentStarts: number, slotMs?: number) {
    this.startLimit = new StartLimit(concurrentStarts, slotMs)
  }
}
