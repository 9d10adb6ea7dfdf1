import type { TaskState } from '../../protocol/tasks.ts'
import type { StateStore } from '../../stores/state/state-store.ts'

/** A listener of one task. A task that runs here tells it; of others the store does. */
interface TaskWatcher {
  readonly listener: () => void
  stop: (() => void) | undefined // of the store
}

/** Gets the name of a task that its client knows. */
type SessionListener = (name: string, state: TaskState) => void

const topicOf = (id: string): string => `task:${id}`

/** Who wants to hear of changes of tasks, at any replica. */
export class TaskWatchers {
  readonly #store: StateStore
  readonly #byTask = new Map<string, Set<TaskWatcher>>()
  readonly #sessions = new Map<string, Set<SessionListener>>()
  readonly #sessionTells = new Map<string, () => void>() // by task: ends telling its session

  constructor(store: StateStore) {
    this.#store = store
  }

  /** Calls the listener after changes, and sometimes without one, until the returned function is called. */
  add(id: string, runsHere: boolean, listener: () => void): () => void {
    const set = this.#byTask.get(id) ?? new Set()
    const watcher: TaskWatcher = { listener, stop: undefined }
    this.#byTask.set(id, set.add(watcher))
    if (!runsHere) this.#watchStore(id, watcher)
    return () => {
      watcher.stop?.()
      if (set.delete(watcher) && set.size === 0) this.#byTask.delete(id)
    }
  }

  /** Calls the listener after changes of tasks that `addToSession` was called for. */
  addSession(session: string, listener: SessionListener): () => void {
    const set = this.#sessions.get(session) ?? new Set()
    this.#sessions.set(session, set.add(listener))
    return () => {
      if (set.delete(listener) && set.size === 0) this.#sessions.delete(session)
    }
  }

  /** Tells the session that a task was started in, which knows it by that name. */
  tellSession(task: { readonly id: string; readonly state: TaskState }, session: string, name: string): void {
    const tell = (): void => {
      for (const listener of this.#sessions.get(session) ?? []) listener(name, task.state)
    }
    this.#sessionTells.set(task.id, this.add(task.id, true, tell))
  }

  /** A task that runs here has changed. */
  changed(id: string): void {
    for (const { listener } of this.#byTask.get(id) ?? []) listener()
    if (this.#store.isShared) this.#store.shared.notify(topicOf(id))
  }

  /** A task does not run here any more. */
  ended(id: string): void {
    this.#sessionTells.get(id)?.()
    this.#sessionTells.delete(id)
  }

  /** Another replica runs a task that ran here: the store tells its changes from now on. */
  moved(id: string): void {
    for (const watcher of this.#byTask.get(id) ?? []) {
      this.#watchStore(id, watcher)
      watcher.listener() // it may have changed there before this replica knew that it had lost it
    }
  }

  #watchStore(id: string, watcher: TaskWatcher): void {
    watcher.stop ??= this.#store.shared.on(topicOf(id), watcher.listener)
  }
}
