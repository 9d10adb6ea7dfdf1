import type { Sql, SqlDatabase } from '../sql.ts'
import { StateError } from './state-store.ts'
import type { StoreContact } from './store-contact.ts'

const MOST_WRITES = 64 // of one transaction in SQLite, which blocks the process
// Of one transaction in PostgreSQL: each takes the time of the network, and all together are to end while callers still wait.
const MOST_STATEMENTS = 16
const ATOMIC_STATEMENTS = 3 // of a write with several: a record with its events and messages
// Groups that PostgreSQL gets at once. Heartbeats share the pool of connections, and must not wait behind thousands of writes.
const AT_ONCE = 4

type Write = (sql: Sql) => Promise<unknown>

interface WaitingWrite {
  readonly id: string // of the record, as it is stored
  readonly write: Write
  readonly isAtomic: boolean
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Writes of records, grouped into transactions: a commit costs more than the statements in it. Each write resolves when it
 * is committed. SQLite gets those of one turn of the event loop together. PostgreSQL gets each at once, on several
 * connections, and together those that come while these are busy.
 */
export class GroupedWrites {
  readonly #database: SqlDatabase
  readonly #contact: StoreContact
  readonly #running = new Set<Promise<void>>()
  #waiting: WaitingWrite[] = []

  constructor(database: SqlDatabase, contact: StoreContact) {
    this.#database = database
    this.#contact = contact
  }

  /**
   * `id`: of the record, as it is stored. `isAtomic`: the write has several statements, of which all or none are to be
   * stored. Rejects as `StoreContact.run` does.
   */
  run<Result>(id: string, write: (sql: Sql) => Promise<Result>, isAtomic = false): Promise<Result> {
    return new Promise((resolve, reject) => {
      const isFirst =
        this.#waiting.push({ id, write, isAtomic, resolve: resolve as (result: unknown) => void, reject }) === 1
      if (this.#isPostgres) this.#begin()
      else if (isFirst) setImmediate(() => this.#begin())
    })
  }

  /**
   * Begins the writes that wait for the end of the turn, if `id` is given only if one is of that record. SQLite has one
   * connection: statements that follow see them. In PostgreSQL only those wait that find no free connection.
   */
  beginEarly(id?: string): void {
    if (this.#isPostgres) return
    if (id === undefined || this.#waiting.some(each => each.id === id)) this.#begin()
  }

  /** Resolves when all writes of before have ended. */
  async flush(): Promise<void> {
    const last = this.#waiting.at(-1)
    this.beginEarly()
    while (last && this.#waiting.includes(last)) await Promise.race(this.#running)
    await Promise.all(this.#running)
  }

  get #isPostgres(): boolean {
    return this.#database.dialect.locksRows
  }

  #begin(): void {
    const atOnce = this.#isPostgres ? AT_ONCE : Number.POSITIVE_INFINITY
    while (this.#waiting.length > 0 && this.#running.size < atOnce) {
      const most = this.#isPostgres ? countWithin(MOST_STATEMENTS, this.#waiting) : MOST_WRITES
      const running: Promise<void> = this.#runGroup(this.#waiting.splice(0, most)).then(() => {
        this.#running.delete(running)
        if (this.#isPostgres) this.#begin()
      })
      this.#running.add(running)
    }
  }

  /** A write that fails must not take the others with it: then each is repeated by itself. */
  async #runGroup(group: readonly WaitingWrite[]): Promise<void> {
    if (group.length === 1) return this.#runEach(group)
    try {
      const results = await this.#contact.run(() => this.#database.transaction(sql => runAll(sql, group)))
      for (const [at, { resolve }] of group.entries()) resolve(results[at])
    } catch (error) {
      if (error instanceof StateError && error.reason === 'away') for (const { reject } of group) reject(error)
      else await this.#runEach(group)
    }
  }

  async #runEach(group: readonly WaitingWrite[]): Promise<void> {
    const database = this.#database
    for (const { write, isAtomic, resolve, reject } of group)
      await this.#contact.run(() => (isAtomic ? database.transaction(write) : write(database))).then(resolve, reject)
  }
}

/** How many of the first writes have no more statements than that together. */
const countWithin = (statements: number, writes: readonly WaitingWrite[]): number => {
  let left = statements
  const firstBeyond = writes.findIndex(({ isAtomic }) => {
    left -= isAtomic ? ATOMIC_STATEMENTS : 1
    return left < 0
  })
  return firstBeyond < 0 ? writes.length : firstBeyond
}

const runAll = async (sql: Sql, group: readonly WaitingWrite[]): Promise<unknown[]> => {
  const results: unknown[] = []
  for (const { write } of group) results.push(await write(sql))
  return results
}
