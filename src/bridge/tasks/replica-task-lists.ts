import { isTaskStatus } from '../../protocol/task-info.ts'
import { TASK_LIMITS, type TaskSummary } from '../../protocol/tasks.ts'
import type { Claim, StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { TaskOrigin } from './task-record.ts'

/** The state of a task without what can be large. */
export type KnownState = TaskSummary & { readonly hasToolFailed: boolean }

/** A task that a replica runs, or whose result it keeps. */
export interface KnownTask {
  readonly id: string
  readonly origin: Pick<TaskOrigin, 'server' | 'tool' | 'workspace' | 'principal'>
  readonly state: KnownState
}

interface ReplicaTaskListsOptions {
  readonly store: StateStore
  readonly log: Log
  readonly own: () => readonly KnownTask[] // the newest first
}

const KIND = 'task-list'
const MOST_BYTES = 60 * 1024 // a record has 64 KiB: some 200 tasks, the newest
const LONGEST_MESSAGE = 200 // characters
const WRITE_MS = 500 // changes meanwhile are one write
const LIFETIME_MS = 10 * 60_000
const REFRESH_MS = LIFETIME_MS / 2
const BATCH = 20

/**
 * The tasks of each replica as a list that the others read: the records of tasks hold their results, which are too large to
 * be read for a list.
 */
export class ReplicaTaskLists {
  readonly #options: ReplicaTaskListsOptions
  readonly #refresh: NodeJS.Timeout
  #pending: NodeJS.Timeout | undefined
  #claim: Claim | undefined
  #isClosed = false

  constructor(options: ReplicaTaskListsOptions) {
    this.#options = options
    this.#refresh = setInterval(() => void this.#keep(), REFRESH_MS)
    this.#refresh.unref()
  }

  /** Called after each change of a task of this replica. */
  changed(): void {
    if (!this.#options.store.isShared || this.#pending || this.#isClosed) return
    this.#pending = setTimeout(() => {
      this.#pending = undefined
      void this.#write()
    }, WRITE_MS)
    this.#pending.unref()
  }

  /** The tasks of the other live replicas, as far as the store can be read. */
  async others(): Promise<KnownTask[]> {
    const { store } = this.#options
    const { self } = store.members
    const names = store.members.all().flatMap(({ replica }) => (replica === self ? [] : replica))
    const lists = await Promise.all(names.map(name => store.read(KIND, name).catch(() => undefined)))
    return lists.flatMap(held => (held ? decode(held.body) : []))
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#pending)
    clearInterval(this.#refresh)
  }

  async #write(): Promise<void> {
    const { store, log, own } = this.#options
    const { self } = store.members
    const body = encode(own())
    const options = { expires: Date.now() + LIFETIME_MS }
    try {
      if (this.#claim?.id === self && (await store.write(this.#claim, body, options))) return
      const taken = await store.take(KIND, self)
      if (taken.kind === 'none') this.#claim = await store.create(KIND, self, body, options)
      else if (taken.kind === 'mine' && (await store.write(taken.held, body, options))) this.#claim = taken.held
    } catch (error) {
      log.debug({ err: error }, 'other replicas could not be told of the tasks; the next change tells them')
    }
  }

  /** Writes the list again before it expires, and removes those of ended replicas, whose tasks others have taken over. */
  async #keep(): Promise<void> {
    const { store, own } = this.#options
    if (!store.isShared) return
    if (own().length > 0) await this.#write()
    for (const why of ['orphaned', 'expired'] as const) {
      const ended = await store.takeAbandoned(KIND, why, BATCH).catch(() => [])
      for (const held of ended) if (held.id !== store.members.self) await store.remove(held).catch(() => {})
    }
  }
}

const encode = (tasks: readonly KnownTask[]): Buffer => {
  const listed: Json[] = []
  let bytes = 0
  for (const { id, origin, state } of tasks) {
    const { server, tool, workspace, principal } = origin
    const task = Json.of({
      ...{ id, server, tool, workspace, principal },
      ...{ status: state.status, message: state.message?.slice(0, LONGEST_MESSAGE) },
      ...{ createdAt: state.createdAt, updatedAt: state.updatedAt, ttlMs: state.ttlMs },
      hasToolFailed: state.hasToolFailed,
    })
    bytes += task.size + 1
    if (bytes > MOST_BYTES) break
    listed.push(task)
  }
  return Json.of({ tasks: listed }).toBytes()
}

const decode = (body: Buffer): KnownTask[] =>
  (Json.parse(body).get('tasks')?.elements() ?? []).flatMap(task => {
    const text = (name: string): string | undefined => task.get(name)?.asString()
    const number = (name: string): number => task.get(name)?.asNumber() ?? 0
    const [id, status] = [text('id'), text('status')]
    if (id === undefined || !isTaskStatus(status)) return []
    const [server = '', tool = '', workspace = ''] = [text('server'), text('tool'), text('workspace')]
    const times = { createdAt: number('createdAt'), updatedAt: number('updatedAt'), ttlMs: number('ttlMs') }
    const hasToolFailed = task.get('hasToolFailed')?.asBoolean() === true
    return {
      id,
      origin: { server, tool, workspace, principal: text('principal') },
      state: { status, message: text('message'), ...times, pollMs: TASK_LIMITS.pollMs, hasToolFailed },
    }
  })
