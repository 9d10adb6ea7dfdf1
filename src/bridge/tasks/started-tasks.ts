import type { Caller } from '../../protocol/exchange.ts'
import { TASK_LIMITS } from '../../protocol/tasks.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { RecordChanges } from '../../stores/state/record-changes.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import { sweepRecords } from '../../stores/state/sweep-records.ts'
import type { Log } from '../../telemetry/log.ts'

const KIND = 'started-tasks'
const MOST = TASK_LIMITS.perPrincipal * 20
const RECORD_BYTES = 48 * 1024 // a record may have 64 KiB
const LONGEST_ID = 1024 // characters; a longer one is known to this process only

interface StoredTask {
  readonly id: string
  readonly expires: number
}

interface StoredTasks {
  readonly tasks: readonly StoredTask[] // the oldest first
}

/**
 * The servers' own tasks, and whose calls have started them. A server that is asked for its tasks may list those of all
 * users of the gateway, which it cannot tell apart. What users have started is stored, for later processes and other replicas.
 */
export class StartedTasks {
  readonly #known = new BoundedCache<true>(MOST, TASK_LIMITS.maxTtlMs, { mostPerGroup: TASK_LIMITS.perPrincipal })
  readonly #records: RecordChanges<StoredTasks>
  readonly #unsaved = new Map<string, Set<string>>() // ids by record, while they are written
  readonly #log: Log
  readonly #stopSweeping: () => void

  constructor(store: StateStore, log: Log) {
    this.#records = new RecordChanges(store, KIND)
    this.#log = log
    this.#stopSweeping = sweepRecords(store, [KIND], log)
  }

  add(server: string, caller: Caller, id: string): void {
    const owner = ownerOf(caller)
    if (owner === undefined || this.has(server, caller, id)) return
    this.#known.set(keyOf(server, owner, id), true, owner)
    const record = recordOf(server, caller)
    if (record !== undefined && id.length <= LONGEST_ID) this.#save(record, id)
  }

  /** Whether this process knows that the caller has started the task. */
  has(server: string, caller: Caller, id: string): boolean {
    return this.#known.get(keyOf(server, ownerOf(caller), id)) === true
  }

  /** Learns what the caller has started through other processes; nothing if the store cannot be used. */
  async load(server: string, caller: Caller): Promise<void> {
    const record = recordOf(server, caller)
    const owner = ownerOf(caller)
    if (record === undefined || owner === undefined) return
    try {
      const stored = await this.#records.read(record)
      for (const { id } of stored?.tasks ?? []) this.#known.set(keyOf(server, owner, id), true, owner)
    } catch (error) {
      this.#log.warn({ err: error, server }, 'tasks of a user could not be read; those of this process are listed')
    }
  }

  close(): void {
    this.#stopSweeping()
  }

  /** Ids that come while a record is written are written with the next. */
  #save(record: string, id: string): void {
    const waiting = this.#unsaved.get(record)
    if (waiting) return void waiting.add(id)
    const ids = new Set([id])
    this.#unsaved.set(record, ids)
    const write = async (): Promise<void> => {
      while (ids.size > 0) {
        const added = [...ids].map(taskOf)
        ids.clear()
        await this.#records.change(record, stored => {
          const tasks = bounded([...(stored?.tasks ?? []), ...added])
          return { result: undefined, next: { body: { tasks }, expires: tasks.at(-1)?.expires ?? 0 } }
        })
      }
    }
    write()
      .catch((error: unknown) => this.#log.warn({ err: error }, 'a started task could not be stored'))
      .finally(() => this.#unsaved.delete(record))
  }
}

const taskOf = (id: string): StoredTask => ({ id, expires: Date.now() + TASK_LIMITS.maxTtlMs })

/** Without what has expired, and without the oldest if there are too many. */
const bounded = (tasks: readonly StoredTask[]): readonly StoredTask[] => {
  const now = Date.now()
  const kept: StoredTask[] = []
  let bytes = 0
  for (const task of tasks.toReversed()) {
    bytes += Buffer.byteLength(JSON.stringify(task)) + 1
    if (task.expires <= now || bytes > RECORD_BYTES || kept.length >= TASK_LIMITS.perPrincipal) break
    kept.push(task)
  }
  return kept.toReversed()
}

const keyOf = (server: string, owner: string | undefined, id: string): string => JSON.stringify([server, owner, id])

/** The name of the record; undefined for an anonymous caller, which could have any number of them. */
const recordOf = (server: string, { workspace, principal }: Caller): string | undefined =>
  principal === undefined ? undefined : JSON.stringify([server, workspace, principal])

/** An anonymous caller is known by its session only. */
const ownerOf = ({ workspace, principal, session }: Caller): string | undefined => {
  if (principal !== undefined) return JSON.stringify([workspace, principal])
  return session === undefined ? undefined : JSON.stringify([workspace, null, session])
}
