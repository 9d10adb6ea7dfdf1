import { UpstreamFailure } from '../failures.ts'

/** Somebody a process is kept for. */
export interface Resident {
  readonly lastUsed: number
  readonly isBusy: boolean
  /** Ends its process; it gets another when it needs one. */
  rest(): void
}

/** Counts the processes of one server, and makes room before there are too many. */
export class ProcessLimit {
  readonly #name: string
  readonly #most: number
  readonly #residents = new Set<Resident>()

  constructor(name: string, most: number) {
    this.#name = name
    this.#most = most
  }

  /** Takes one more; throws UpstreamFailure where all the others are busy. */
  enter(resident: Resident): void {
    if (this.#residents.size >= this.#most) this.#makeRoom()
    this.#residents.add(resident)
  }

  leave(resident: Resident): void {
    this.#residents.delete(resident)
  }

  #makeRoom(): void {
    const idle = [...this.#residents].filter(({ isBusy }) => !isBusy)
    const oldest = idle.sort((a, b) => a.lastUsed - b.lastUsed)[0]
    if (oldest) {
      this.#residents.delete(oldest)
      return oldest.rest()
    }
    const text = `has ${this.#most} processes already, and all of them are busy: try again later`
    throw new UpstreamFailure(this.#name, { reason: 'upstream_busy', text })
  }
}
