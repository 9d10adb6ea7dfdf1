import { Abort } from '../../protocol/cancellation.ts'
import type { Frame } from '../../protocol/exchange.ts'
import { RunningTask } from '../../protocol/running-task.ts'
import type { TaskState } from '../../protocol/tasks.ts'
import type { Claim, StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Json } from '../../wire/json/json.ts'
import { isValidAnswer, questionRefusal } from '../client-questions.ts'
import { type TaskOrigin, type TaskRecord, writeRecord } from './task-record.ts'

interface GatewayTaskHooks {
  readonly store: StateStore
  readonly log: Log
  /** Its state is stored; other processes can read it. */
  changed(task: GatewayTask): void
  ended(task: GatewayTask): void
  /** Another replica runs it now, or it was removed. */
  lost(task: GatewayTask): void
}

/** What is known of a task that another process has run before. */
interface FormerRun {
  readonly record: TaskRecord
  readonly epoch: number
}

/** A task that this process runs: it stores each state, so that any replica can tell it, also after a restart. */
export class GatewayTask {
  readonly id: string
  readonly origin: TaskOrigin
  readonly upstream = new Abort() // of the requests that do its work
  readonly #running: RunningTask
  readonly #hooks: GatewayTaskHooks
  readonly #timer: NodeJS.Timeout
  #claim: Claim | undefined // undefined: it is not stored yet, or another replica has it now
  #serverTask: string | undefined
  #saving: Promise<void> | undefined
  #isChanged = false

  constructor(id: string, origin: TaskOrigin, ttlMs: number, hooks: GatewayTaskHooks, before?: FormerRun) {
    this.id = id
    this.origin = origin
    this.#hooks = hooks
    this.#serverTask = before?.record.serverTask
    const createdAt = before?.record.state.createdAt ?? Date.now()
    const onCancel = this.upstream.abort.bind(this.upstream)
    const keyPrefix = before && `e${before.epoch}-` // no key of a question is used twice
    this.#running = new RunningTask({ ttlMs, keyPrefix, onChange: () => this.#save(), onCancel }, createdAt)
    this.#timer = setTimeout(() => this.cancel('The task has expired'), Math.max(0, createdAt + ttlMs - Date.now()))
    this.#timer.unref()
  }

  get state(): TaskState {
    return this.#running.state
  }

  get record(): TaskRecord {
    return { origin: this.origin, state: this.state, serverTask: this.#serverTask }
  }

  /** Whether another process can go on with it: its server runs a task of its own. */
  get canMove(): boolean {
    return this.#serverTask !== undefined
  }

  get expires(): number {
    return this.#running.createdAt + this.#running.ttlMs
  }

  get questions() {
    return this.#running.questions
  }

  /** From now on each change is stored. */
  stored(claim: Claim): void {
    this.#claim = claim
    if (this.#isChanged) this.#save()
  }

  /** Resolves when everything up to now is stored, or is known not to be. */
  async saved(): Promise<void> {
    while (this.#saving) await this.#saving
  }

  /** The server runs a task of its own for this one: a later process can go on with it. */
  setServerTask(id: string): void {
    this.#serverTask = id
    this.#save()
  }

  /** Takes a frame of the request that does its work. */
  receive(frame: Frame): void {
    if (frame.kind === 'question') {
      const refusal = questionRefusal(this.origin.capabilities, frame.method, frame.params)
      if (refusal) return frame.answer({ kind: 'error', error: refusal })
    }
    this.#running.receive(frame)
  }

  /** Answers open questions; answers that are invalid, or to no open question, are ignored. */
  answerAll(responses: Json): void {
    for (const [key, answer] of responses.isObject ? responses.entries() : []) {
      const question = this.#running.questions.get(key)
      if (question && isValidAnswer(question.method, answer))
        this.#running.answer(key, { kind: 'result', result: answer.compact() })
    }
  }

  answer: RunningTask['answer'] = (key, reply) => this.#running.answer(key, reply)

  cancel(text?: string): void {
    this.#running.cancel(text)
  }

  /** Stops its work without a change of what is stored: another process goes on, or the gateway ends. */
  release(): void {
    this.#claim = undefined
    clearTimeout(this.#timer)
    this.upstream.abort({ kind: 'closing' })
  }

  /** One write at a time; changes meanwhile go into the next. */
  #save(): void {
    this.#isChanged = true
    if (!this.#claim || this.#saving) return
    this.#saving = this.#write(this.#claim).finally(() => {
      this.#saving = undefined
      if (this.#isChanged) this.#save()
      else if (this.#running.isOver && this.#claim) this.#end()
    })
  }

  async #write(claim: Claim): Promise<void> {
    const { store, log } = this.#hooks
    this.#isChanged = false
    try {
      const isOurs = await store.write(claim, writeRecord(this.record), { expires: this.expires })
      if (!isOurs && this.#claim) return this.#hooks.lost(this)
    } catch (error) {
      log.error({ err: error, server: this.origin.server }, 'state of a task could not be stored')
    }
    this.#hooks.changed(this)
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.#hooks.ended(this)
  }
}
