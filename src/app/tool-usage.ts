import type { WorkspaceConfig } from '../config/snapshot.ts'
import type { Shared } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'
import { addUsage, NO_USAGE, type ToolUsage, type UsageRecord } from '../workspace/budget/tool-usage.ts'

interface ToolUsagesOptions {
  readonly documents: Pick<Shared, 'document' | 'writeDocument' | 'on'>
  readonly isShared: boolean // other replicas count, too
  readonly log: Log
  readonly writeMs?: number | undefined // between two writes
}

/** Counts the calls of tools in workspaces whose favourites are the most used tools, in one record for all replicas. */
export interface ToolUsages {
  /** Undefined: the workspace has no budget, or its favourites are configured. */
  of(config: WorkspaceConfig): ToolUsage | undefined
  /** Reads what is stored of these workspaces. */
  load(configs: Iterable<WorkspaceConfig>): Promise<void>
  close(): Promise<void>
}

const WRITE_MS = 60_000
const ATTEMPTS = 10

const isCounted = ({ budget }: WorkspaceConfig): boolean => budget !== undefined && budget.favourites === undefined

export const createToolUsages = (options: ToolUsagesOptions): ToolUsages => {
  const known = new Map<string, WorkspaceUsage>()

  const open = (config: WorkspaceConfig): WorkspaceUsage | undefined => {
    if (!isCounted(config)) return undefined
    const usage = known.get(config.name) ?? new WorkspaceUsage(config.name, options)
    known.set(config.name, usage)
    return usage
  }

  return {
    of: open,
    load: async configs => void (await Promise.all([...configs].map(config => open(config)?.read()))),
    close: async () => void (await Promise.all([...known.values()].map(usage => usage.close()))),
  }
}

class WorkspaceUsage implements ToolUsage {
  readonly #options: ToolUsagesOptions
  readonly #document: string
  #work: Promise<void> = Promise.resolve() // one access to the store after the other
  readonly #listeners = new Set<() => void>()
  readonly #stopListening: (() => void) | undefined
  #new = new Map<string, number>() // calls that are not stored yet
  #record: UsageRecord = NO_USAGE
  #timer: NodeJS.Timeout | undefined

  constructor(workspace: string, options: ToolUsagesOptions) {
    this.#options = options
    this.#document = `tool-usage ${workspace}`
    if (options.isShared) this.#stopListening = options.documents.on(this.#document, () => void this.read())
  }

  readonly count = (server: string, tool: string): void => {
    const key = `${server}/${tool}`
    this.#new.set(key, (this.#new.get(key) ?? 0) + 1)
    this.#timer ??= setTimeout(() => void this.#write(), this.#options.writeMs ?? WRITE_MS).unref()
  }

  readonly mostUsed = (): readonly string[] => this.#record.chosen

  onChanged(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Never rejects: without a store, the favourites stay as they are. */
  async read(): Promise<void> {
    await this.#afterOthers(async () => void (await this.#load()))
  }

  async close(): Promise<void> {
    this.#stopListening?.()
    await this.#write()
  }

  async #load(): Promise<number> {
    const found = await this.#options.documents.document(this.#document)
    this.#take(found ? (JSON.parse(found.body.toString()) as UsageRecord) : NO_USAGE)
    return found?.version ?? 0
  }

  #take(next: UsageRecord): void {
    const isSame = next.chosen.join('\n') === this.#record.chosen.join('\n')
    this.#record = isSame ? { ...next, chosen: this.#record.chosen } : next
    if (!isSame) for (const listener of [...this.#listeners]) listener()
  }

  async #write(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const calls = this.#new
    if (calls.size === 0) return
    this.#new = new Map()
    await this.#afterOthers(() => this.#add(calls))
  }

  async #add(calls: ReadonlyMap<string, number>): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const version = await this.#load()
      const next = addUsage(this.#record, calls, Date.now())
      if (!(await this.#options.documents.writeDocument(this.#document, Buffer.from(JSON.stringify(next)), version)))
        continue // another replica has written it
      return this.#take(next)
    }
  }

  #afterOthers(work: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(work).catch((error: unknown) => {
      this.#options.log.debug({ err: error, document: this.#document }, 'use of tools not read or stored')
    })
    return this.#work
  }
}
