import { TopicListeners } from './listeners.ts'
import type { Sealing } from './sealing.ts'

/** Carries notifications to other replicas. They may be lost: each replica also polls. */
export interface Wake {
  /** Resolves when they were sent, or cannot be. */
  send(topics: readonly string[]): Promise<void>
  /** The listener gets the topics that other replicas have sent. */
  onWake(listener: (topic: string) => void): void
  close(): Promise<void>
}

/** For a replica without others. */
export const NO_WAKE: Wake = { send: async () => {}, onWake: () => {}, close: async () => {} }

const GATHER_MS = 2 // several notifications make one statement

/** The listeners of this replica, which those of other replicas reach through the database. */
export class Topics {
  readonly #listeners = new TopicListeners()
  readonly #sealing: Sealing
  readonly #wake: Wake
  readonly #polling: NodeJS.Timeout
  #unsent = new Set<string>()

  constructor(sealing: Sealing, wake: Wake, pollMs: number) {
    this.#sealing = sealing
    this.#wake = wake
    wake.onWake(topic => this.#listeners.call(topic))
    this.#polling = setInterval(() => this.#listeners.callAll(), pollMs).unref()
  }

  /** Topics can contain ids, so other replicas get their hashes. */
  notify(topic: string): void {
    const name = this.#sealing.nameOf(`topic:${topic}`)
    this.#listeners.call(name)
    if (this.#unsent.size === 0) setTimeout(() => void this.#send(), GATHER_MS).unref()
    this.#unsent.add(name)
  }

  on(topic: string, listener: () => void): () => void {
    return this.#listeners.on(this.#sealing.nameOf(`topic:${topic}`), listener)
  }

  async close(): Promise<void> {
    clearInterval(this.#polling)
    await this.#send() // that this replica leaves
    await this.#wake.close()
  }

  async #send(): Promise<void> {
    const topics = [...this.#unsent]
    this.#unsent = new Set()
    if (topics.length > 0) await this.#wake.send(topics)
  }
}
