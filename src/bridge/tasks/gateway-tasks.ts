import { randomUUID } from 'node:crypto'
import { hasToolFailed } from '../../eras/tasks.ts'
import { principalKey } from '../../protocol/callers.ts'
import { type RpcError, RpcFailure, rpcError } from '../../protocol/errors.ts'
import { Quota } from '../../protocol/quota.ts'
import { isFinal } from '../../protocol/task-info.ts'
import { TASK_LIMITS, type TaskState } from '../../protocol/tasks.ts'
import { sleep } from '../../std/time.ts'
import { type Claim, type Held, inboxTopic, StateError, type StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { GatewayTask } from './gateway-task.ts'
import { type KnownState, type KnownTask, ReplicaTaskLists } from './replica-task-lists.ts'
import { readRecord, type TaskOrigin, type TaskRecord, writeRecord } from './task-record.ts'
import { TaskWatchers } from './task-watchers.ts'

export interface GatewayTasksOptions {
  readonly store: StateStore
  readonly log: Log
  /** Goes on with a task of an ended process; false if that is not possible. */
  readonly resume: (task: GatewayTask, serverTask: string) => boolean
}

/** A task that this or another replica has. */
export interface FoundTask {
  readonly record: TaskRecord
  readonly local: GatewayTask | undefined // undefined: another replica runs it, or it is over
}

/** What is counted for a principal: a running task, or the stored result of one. */
interface TaskEntry {
  readonly owner: string
  readonly expires: number
  readonly claim: Claim
  readonly origin: TaskOrigin
  task: GatewayTask | undefined // undefined: it is over
  last: KnownState // when it ended, or was taken over
}

const KIND = 'task'
const KEPT_BYTES = 256 * 1024 * 1024 // results of one principal
const LIMITS = { perOwner: TASK_LIMITS.perPrincipal, bytesPerOwner: KEPT_BYTES, total: TASK_LIMITS.perPrincipal * 20 }
const SWEEP_MS = 60_000
const BATCH = 20 // records that are read at once; each may hold a result of 16 MiB
const MOST_BATCHES = 1000 // of one sweep
const RETRY_MS = 2000 // if the store is away while tasks of an ended process are looked for
const SETTLE_MS = 50 // between two looks at tasks that a stop waits for
const ABANDONED = 'tasks:abandoned'

/** The failure of a task that no process can go on with. */
export const TASK_PROCESS_ENDED: RpcError = rpcError(
  'internal',
  'The gateway process that ran this task has ended. Call the tool again',
  Json.of({ reason: 'gateway_restarted' }),
)

/** The tasks that the gateway runs itself, for clients or servers that lack them. */
export class GatewayTasks {
  readonly #options: GatewayTasksOptions
  readonly #running = new Map<string, TaskEntry>()
  readonly #counts = new Map<string, number>() // running tasks by owner
  // Results go before running tasks, and those of the tasks that ended first before others, also if they were taken over later.
  readonly #quota = new Quota<TaskEntry>(LIMITS, ({ task, last }) => (task ? Number.POSITIVE_INFINITY : last.updatedAt))
  readonly #watchers: TaskWatchers
  readonly #lists: ReplicaTaskLists
  readonly #inboxes = new Map<string, () => void>()
  readonly #timer: NodeJS.Timeout
  #retry: NodeJS.Timeout | undefined
  #adopting: 'once' | 'again' | undefined
  #isClosed = false
  readonly #stopListening: readonly (() => void)[]
  readonly #hooks: ConstructorParameters<typeof GatewayTask>[3]

  constructor(options: GatewayTasksOptions) {
    this.#options = options
    const { store, log } = options
    this.#watchers = new TaskWatchers(store)
    this.#lists = new ReplicaTaskLists({ store, log, own: () => this.#own() })
    this.#hooks = {
      ...{ store, log },
      changed: task => {
        this.#watchers.changed(task.id)
        this.#lists.changed()
      },
      ended: task => this.#forget(task),
      lost: task => this.#lose(task.id),
    }
    this.#timer = setInterval(() => void this.#sweep(), SWEEP_MS)
    this.#timer.unref()
    this.#stopListening = [
      store.onLost(({ kind, id }) => {
        if (kind === KIND) this.#lose(id)
      }),
      store.members.onLeft(() => void this.#adopt()),
      // Called every few seconds: a replica that ends may leave a task after others have looked for them.
      store.shared.on(ABANDONED, () => {
        if (store.isShared) void this.#adopt()
      }),
    ]
    void this.#adopt()
  }

  get size(): number {
    return this.#running.size
  }

  /** Starts a task. Resolves when it is stored; rejects with an RpcFailure if it cannot be. */
  async create(origin: TaskOrigin, ttlMs: number): Promise<GatewayTask> {
    const owner = principalKey(origin.principal)
    const count = this.#counts.get(owner) ?? 0
    if (count >= TASK_LIMITS.perPrincipal || this.size >= LIMITS.total) throw tooMany(count)
    const task = new GatewayTask(randomUUID(), origin, boundedTtl(ttlMs), this.#hooks)
    this.#counts.set(owner, count + 1)
    try {
      const claim = await this.#options.store.create(KIND, task.id, writeRecord(task.record), {
        expires: task.expires,
        durable: true, // the client polls for it, also after a power cut
      })
      this.#hold(task, claim)
      return task
    } catch (error) {
      this.#uncount(owner)
      task.release()
      return rethrowAway(error)
    }
  }

  /** Finds a task of any replica, running or over. */
  async find(id: string): Promise<FoundTask | undefined> {
    const local = this.#running.get(id)?.task
    if (local) return { record: local.record, local }
    const held = await this.#options.store.read(KIND, id).catch(rethrowAway)
    const record = held && readRecord(held.body)
    return record && { record, local: undefined }
  }

  /** The tasks that the live replicas run, or whose results they keep, the newest first. */
  async list(): Promise<KnownTask[]> {
    const [own, others] = [this.#own(), await this.#lists.others()]
    const known = new Set(own.map(({ id }) => id)) // one that was taken over may be in the list of both
    return [...own, ...others.filter(({ id }) => !known.has(id))].sort(byAge)
  }

  #own(): KnownTask[] {
    return this.#quota.items
      .map(({ claim, origin, task, last }) => ({ id: claim.id, origin, state: task ? summaryOf(task.state) : last }))
      .sort(byAge)
  }

  /** Answers questions of a task; the replica that runs it gets them. */
  async answerAll(id: string, found: FoundTask, responses: Json): Promise<void> {
    if (found.local) {
      found.local.answerAll(responses)
      await found.local.saved()
    } else await this.#put(id, found, Json.of({ responses }))
  }

  async cancel(id: string, found: FoundTask): Promise<void> {
    if (found.local) {
      found.local.cancel()
      await found.local.saved()
    } else await this.#put(id, found, Json.of({ cancel: true }))
  }

  /** Calls the listener after changes of a task, at any replica, and sometimes without one; returns the way to end that. */
  watch(id: string, listener: () => void): () => void {
    return this.#watchers.add(id, this.#running.has(id), listener)
  }

  /** Calls the listener after changes of tasks that `addToSession` was called for. */
  watchSession: TaskWatchers['addSession'] = (session, listener) => this.#watchers.addSession(session, listener)

  /** The session that a task was started in, which knows it by that name. */
  addToSession(task: GatewayTask, session: string, name: string): void {
    this.#watchers.tellSession(task, session, name)
  }

  /** Resolves when the tasks that run now and that no other process can go on with are over, or after `timeoutMs`. */
  async whenSettled(timeoutMs: number): Promise<void> {
    const end = Date.now() + timeoutMs
    let left = [...this.#running.values()].filter(({ task }) => task && !task.canMove)
    for (; left.length > 0 && Date.now() < end; await sleep(SETTLE_MS)) left = left.filter(({ task }) => task)
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    clearTimeout(this.#retry)
    this.#lists.close()
    for (const stop of [...this.#stopListening, ...this.#inboxes.values()]) stop()
    for (const { task } of this.#running.values()) task?.release()
    this.#running.clear()
  }

  async #put(id: string, { record }: FoundTask, message: Json): Promise<void> {
    if (isFinal(record.state.status)) return
    await this.#options.store.inbox.put(KIND, id, message.toBytes()).catch(rethrowAway)
  }

  #hold(task: GatewayTask, claim: Claim): void {
    const { store } = this.#options
    const entry = entryOf(claim, { origin: task.origin, state: task.state }, task)
    this.#running.set(task.id, entry)
    this.#evict(this.#quota.add(entry.owner, entry))
    this.#inboxes.set(
      task.id,
      store.shared.on(inboxTopic(KIND, task.id), () => {
        if (store.isShared) void this.#drain(task, claim)
      }),
    )
    task.stored(claim)
    this.#lists.changed()
  }

  /** Takes what other replicas have sent for a task. */
  async #drain(task: GatewayTask, claim: Claim): Promise<void> {
    const { store, log } = this.#options
    const messages = await store.inbox.drain(claim).catch((error: unknown) => {
      log.warn({ err: error }, 'answers for a task could not be read; they are tried again')
      return []
    })
    for (const message of messages.map(bytes => Json.parse(bytes))) {
      if (message.get('cancel')?.asBoolean()) task.cancel()
      const responses = message.get('responses')
      if (responses) task.answerAll(responses)
    }
  }

  /** Its result stays in the store, and counts for its owner until it expires. */
  #forget(task: GatewayTask, isLost = false): void {
    const entry = this.#running.get(task.id)
    if (!entry) return
    this.#running.delete(task.id)
    this.#inboxes.get(task.id)?.()
    this.#inboxes.delete(task.id)
    this.#uncount(entry.owner)
    this.#quota.delete(entry)
    entry.task = undefined
    entry.last = summaryOf(task.state)
    this.#watchers.ended(task.id)
    if (!isLost) this.#evict(this.#quota.add(entry.owner, entry, task.state.result?.retained ?? 0))
    this.#lists.changed()
  }

  #evict(entries: readonly TaskEntry[]): void {
    for (const { claim, task } of entries) {
      task?.cancel('The task was removed because there are too many')
      void this.#options.store.remove(claim).catch(() => {})
    }
  }

  #uncount(owner: string): void {
    const count = (this.#counts.get(owner) ?? 1) - 1
    if (count > 0) this.#counts.set(owner, count)
    else this.#counts.delete(owner)
  }

  #lose(id: string): void {
    const task = this.#running.get(id)?.task
    if (!task) return
    task.release()
    this.#forget(task, true)
    this.#watchers.moved(id)
  }

  /** Goes on with tasks of ended processes, or ends them. Calls meanwhile make it look once more. */
  async #adopt(): Promise<void> {
    if (this.#adopting) {
      this.#adopting = 'again'
      return
    }
    do {
      this.#adopting = 'once'
      while (await this.#adoptSome());
    } while (this.#isAskedAgain())
    this.#adopting = undefined
  }

  #isAskedAgain(): boolean {
    return this.#adopting === 'again'
  }

  /** True if there may be more: another replica may have got some of the batch. */
  async #adoptSome(): Promise<boolean> {
    const { store, log } = this.#options
    const orphans = await store.takeAbandoned(KIND, 'orphaned', BATCH).catch((error: unknown) => {
      if (this.#isClosed) return []
      log.warn({ err: error }, 'tasks of ended processes could not be read; this is tried again')
      clearTimeout(this.#retry)
      this.#retry = setTimeout(() => void this.#adopt(), RETRY_MS)
      this.#retry.unref()
      return []
    })
    if (this.#isClosed) return false
    for (const held of orphans) this.#takeOver(held)
    return orphans.length > 0
  }

  #takeOver(held: Held): void {
    const { log, resume } = this.#options
    const record = readRecord(held.body)
    if (!record) return
    if (isFinal(record.state.status)) {
      const entry = entryOf(held, record)
      return this.#evict(this.#quota.add(entry.owner, entry, record.state.result?.retained ?? 0))
    }
    const task = new GatewayTask(held.id, record.origin, record.state.ttlMs, this.#hooks, { record, epoch: held.epoch })
    const owner = principalKey(record.origin.principal)
    this.#counts.set(owner, (this.#counts.get(owner) ?? 0) + 1)
    this.#hold(task, held)
    void this.#drain(task, held) // what arrived while no process ran it
    const isResumed = record.serverTask !== undefined && resume(task, record.serverTask)
    const { server } = record.origin
    log.info({ server, outcome: isResumed ? 'resumed' : 'failed' }, 'task of an ended process was taken over')
    if (!isResumed) task.receive({ kind: 'failure', error: TASK_PROCESS_ENDED })
  }

  async #sweep(): Promise<void> {
    const { store } = this.#options
    for (let batch = 0; batch < MOST_BATCHES && !this.#isClosed; batch++) {
      const expired = await store.takeAbandoned(KIND, 'expired', BATCH).catch(() => [])
      for (const held of expired) await store.remove(held).catch(() => {})
      if (expired.length < BATCH) break
    }
    const now = Date.now()
    for (const entry of this.#quota.items) if (!entry.task && entry.expires < now) this.#quota.delete(entry)
  }
}

const byAge = (a: KnownTask, b: KnownTask): number => b.state.createdAt - a.state.createdAt || (a.id < b.id ? -1 : 1)

const summaryOf = (state: TaskState): KnownState => {
  const { inputs: _inputs, result: _result, error: _error, ...summary } = state
  return { ...summary, hasToolFailed: hasToolFailed(state) }
}

const entryOf = (
  { kind, id, epoch }: Claim,
  { origin, state }: Pick<TaskRecord, 'origin' | 'state'>,
  task?: GatewayTask,
): TaskEntry => ({
  owner: principalKey(origin.principal),
  expires: state.createdAt + state.ttlMs,
  claim: { kind, id, epoch },
  origin,
  task,
  last: summaryOf(state),
})

const boundedTtl = (ttlMs: number): number =>
  Math.min(Math.max(Number.isFinite(ttlMs) ? Math.round(ttlMs) : TASK_LIMITS.ttlMs, 1000), TASK_LIMITS.maxTtlMs)

const tooMany = (count: number): RpcFailure =>
  new RpcFailure(
    rpcError(
      'internal',
      `Too many tasks: ${count} of yours run, and ${TASK_LIMITS.perPrincipal} are the most. Wait for one, or cancel it`,
      Json.of({ reason: 'too_many_tasks' }),
    ),
  )

const STORE_AWAY = rpcError(
  'internal',
  'The store of the gateway cannot be used now, so tasks cannot be started or read. Call the tool without a task, or try again later',
  Json.of({ reason: 'store_away' }),
)

const rethrowAway = (error: unknown): never => {
  throw error instanceof StateError && error.reason === 'away' ? new RpcFailure(STORE_AWAY) : error
}
