import { within } from '../../std/time.ts'
import { type Claim, type JournalEvent, StateError, type StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'

const WAIT_MS = 2000 // for the store, before a client is answered all the same

interface StoredSessionOptions {
  readonly id: string
  readonly store: StateStore
  readonly read: () => { readonly body: Buffer; readonly expires: number } // what is to be stored now
  readonly onLost: () => void // another replica holds the session now
  readonly log: Log
}

/** The stored copy of one session. While the store is away, it is written later. */
export class StoredSession {
  readonly #options: StoredSessionOptions
  #claim: Claim | undefined
  #saving: Promise<void> | undefined
  #isChanged = false // since the last write began
  #isOver = false // removed, released, or held by another replica
  #isTooLarge = false
  #savedAt = 0

  constructor(options: StoredSessionOptions, claim?: Claim) {
    this.#options = options
    this.#claim = claim
  }

  get epoch(): number {
    return this.#claim?.epoch ?? 1
  }

  /** When it was last written; 0 if the last write failed. */
  get savedAt(): number {
    return this.#isChanged && !this.#saving ? 0 : this.#savedAt
  }

  /** Writes the session as it is now. Resolves when it is stored, or after two seconds; never rejects. */
  save(): Promise<void> {
    this.#isChanged = true
    this.#saving ??= this.#write()
    return within(WAIT_MS, this.#saving, () => {})
  }

  /** Writes nothing more; what is stored stays for another process. */
  release(): void {
    this.#isOver = true
  }

  /** Removes what is stored. Resolves as `save` does. */
  remove(): Promise<void> {
    this.#isOver = true
    const { store, log } = this.#options
    const remove = async (): Promise<void> => {
      await this.#saving
      if (this.#claim) await store.remove(this.#claim)
    }
    const removing = remove().catch((error: unknown) => log.warn({ err: error }, 'session not removed from the store'))
    return within(WAIT_MS, removing, () => {})
  }

  /** Stores an event of a stream, or another in its place; a promise means that the store is behind. */
  append(stream: string, sequence: number, data: readonly Buffer[]): undefined | Promise<void> {
    if (!this.#claim || this.#isOver) return undefined
    return this.#options.store.journal.append(this.#claim, stream, sequence, data)
  }

  /** Events after a sequence number; an empty list means that there are no more. */
  async read(stream: string, after: number, limit: number): Promise<readonly JournalEvent[]> {
    return this.#claim ? this.#options.store.journal.read(this.#claim, stream, after, limit) : []
  }

  dropStream(stream: string): void {
    if (this.#claim && !this.#isOver) this.#options.store.journal.drop(this.#claim, stream)
  }

  async #write(): Promise<void> {
    await null // until then `#saving` is set
    try {
      while (this.#isChanged && !this.#isOver) {
        this.#isChanged = false
        const startedAt = Date.now()
        await this.#writeOnce()
        this.#savedAt = startedAt
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#saving = undefined // at once: a later change would wait for this write, which has read what it stores
    }
  }

  /** One that is too large is not tried again before it changes; any other failure is that of the store, which logs it. */
  #fail(error: unknown): void {
    const { log } = this.#options
    const isTooLarge = error instanceof StateError && error.reason === 'limit'
    if (isTooLarge && !this.#isTooLarge) log.warn({ err: error }, 'session not stored: it would not survive a restart')
    else log.debug({ err: error }, 'session not stored yet')
    this.#isTooLarge ||= isTooLarge
    this.#isChanged = !isTooLarge
    this.#savedAt = isTooLarge ? Date.now() : 0
  }

  async #writeOnce(): Promise<void> {
    const { store, read, onLost } = this.#options
    const { body, expires } = read()
    if (this.#claim && (await store.write(this.#claim, body, { expires }))) return
    if (this.#isOver) return
    const { id } = this.#options
    // A write that was refused, or one that timed out and arrived all the same: the store tells who holds the record.
    const taken = this.#claim ? await store.take('session', id) : await this.#create(body, expires)
    if (taken === undefined) return
    if (taken.kind === 'none') this.#claim = await store.create('session', id, body, { expires })
    else if (taken.kind === 'mine') {
      this.#claim = taken.held
      await store.write(taken.held, body, { expires })
    } else {
      this.#isOver = true
      onLost()
    }
  }

  async #create(body: Buffer, expires: number) {
    const { store, id } = this.#options
    try {
      this.#claim = await store.create('session', id, body, { expires })
      return undefined
    } catch (error) {
      if (error instanceof StateError && error.reason === 'exists') return store.take('session', id)
      throw error
    }
  }
}
