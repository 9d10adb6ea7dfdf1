import { sleep } from '../../std/time.ts'
import { type RecordKind, StateError, type StateStore } from './state-store.ts'

/** What becomes of a record, and what its change returns. */
export interface RecordChange<T> {
  readonly result: T
  /** Undefined: it stays as it is. */
  readonly next?: { readonly body: object; readonly expires: number } | 'removed' | undefined
}

export type ChangeableStore = Pick<StateStore, 'create' | 'read' | 'take' | 'write' | 'remove'>

const ATTEMPTS = 50
const LONGEST_PAUSE_MS = 20

/**
 * Reads and changes records of JSON that any replica may change at any time. Changes of one record follow each other: in this process
 * they wait for each other, and one that another replica has interrupted is decided again.
 */
export class RecordChanges<Body extends object> {
  readonly #store: ChangeableStore
  readonly #kind: RecordKind
  readonly #queues = new Map<string, Promise<unknown>>() // by id; only while there are changes

  constructor(store: ChangeableStore, kind: RecordKind) {
    this.#store = store
    this.#kind = kind
  }

  async read(id: string): Promise<Body | undefined> {
    const held = await this.#store.read(this.#kind, id)
    return held && parse(held.body)
  }

  /** `decide` gets undefined if there is no such record, and may be called several times. */
  change<T>(id: string, decide: (body: Body | undefined) => RecordChange<T>): Promise<T> {
    const before = this.#queues.get(id) ?? Promise.resolve()
    const changed = before.then(() => this.#tryChange(id, decide))
    const settled = changed.then(
      () => {},
      () => {},
    )
    this.#queues.set(id, settled)
    void settled.then(() => this.#queues.get(id) === settled && this.#queues.delete(id))
    return changed
  }

  async #tryChange<T>(id: string, decide: (body: Body | undefined) => RecordChange<T>): Promise<T> {
    let removed: { readonly result: T } | undefined
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const taken = await this.#store.take(this.#kind, id)
      const held = taken.kind === 'mine' ? taken.held : undefined
      if (!held && removed) return removed.result
      const { result, next } = decide(held && parse(held.body))
      if (next === undefined || (next === 'removed' && !held)) return result
      if (next === 'removed') {
        if (held) await this.#store.remove(held)
        removed = { result }
        continue // to see whether it is gone: another replica may have interrupted
      }
      const body = Buffer.from(JSON.stringify(next.body))
      const options = { expires: next.expires, durable: true }
      const isWritten = held ? await this.#store.write(held, body, options) : await this.#create(id, body, options)
      if (isWritten) return result
      await sleep(Math.random() * LONGEST_PAUSE_MS)
    }
    throw new StateError('away', `Too many requests change the same record of kind "${this.#kind}".`)
  }

  async #create(id: string, body: Buffer, options: { readonly expires: number; readonly durable: boolean }) {
    try {
      await this.#store.create(this.#kind, id, body, options)
      return true
    } catch (error) {
      if (error instanceof StateError && error.reason === 'exists') return false
      throw error
    }
  }
}

const parse = <Body>(body: Buffer): Body => JSON.parse(body.toString()) as Body
