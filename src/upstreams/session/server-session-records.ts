import { within } from '../../std/time.ts'
import type { Held, StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { LiveRecord, type RecordContext, type RecordPlace, type ServerSessionRecord } from './server-session-record.ts'
import { type SessionEnder, SessionSweep } from './session-sweep.ts'
import { decodeStored } from './stored-server-session.ts'

interface RecordsOptions {
  readonly store: StateStore
  readonly log: Log
  readonly batchMs?: number
}

const BATCH_MS = 20
const WRITTEN_AT_ONCE = 100 // after a jump of the clock all are due
const TICK_MS = 60_000
const TAKE_MS = 2000 // for the store to find a record; then the session is opened anew

/** The records of the sessions with servers: written behind, and kept for as long as the sessions are open. */
export class ServerSessionRecords {
  readonly #store: StateStore
  readonly #log: Log
  readonly #batchMs: number
  readonly #context: RecordContext
  readonly #live = new Map<string, LiveRecord>() // by record id
  readonly #due = new Set<LiveRecord>()
  readonly #finishing = new Set<Promise<void>>() // last writes of closed records
  readonly #sweep: SessionSweep
  readonly #ticker: NodeJS.Timeout
  readonly #stopListening: () => void
  #batch: NodeJS.Timeout | undefined
  #isStopping = false

  constructor({ store, log, batchMs = BATCH_MS }: RecordsOptions) {
    this.#store = store
    this.#log = log
    this.#batchMs = batchMs
    this.#context = {
      store,
      log,
      schedule: record => this.#schedule(record),
      closed: record => {
        if (this.#live.get(record.id) === record) this.#live.delete(record.id)
        this.#due.delete(record)
      },
      storeSoon: write => this.#sweep.storeSoon(write),
      finishing: write => {
        this.#finishing.add(write)
        void write.then(() => this.#finishing.delete(write))
      },
      endSoon: (claim, recordAgain) => {
        if (!this.#isStopping) this.#sweep.endSoon(claim, recordAgain)
      },
      isStopping: () => this.#isStopping,
    }
    this.#stopListening = store.onLost(claim => {
      this.#live.get(claim.id)?.lose(claim)
    })
    this.#ticker = setInterval(() => this.refresh(), TICK_MS).unref()
    this.#sweep = new SessionSweep({
      store,
      log,
      keepIfLive: held => this.#keepIfLive(held),
      refreshAll: () => this.refresh(true),
    })
  }

  /** The number of open sessions that are recorded. */
  get size(): number {
    return this.#live.size
  }

  /** Abandoned sessions of that server are ended by `ender`. */
  addServer(name: string, ender: SessionEnder): void {
    this.#sweep.addServer(name, ender)
  }

  removeServer(name: string): void {
    this.#sweep.removeServer(name)
  }

  /** The record for a session that is about to be opened, with what an earlier process left there. */
  async open(place: RecordPlace): Promise<ServerSessionRecord> {
    const { id, owner, lifetimeMs } = place
    const free = id !== undefined && !this.#live.has(id) ? id : undefined // in use: that session is just being closed
    const held = free === undefined || place.isNew ? undefined : await this.#take(free)
    return new LiveRecord(this.#context, { id: free, owner, lifetimeMs }, held)
  }

  /**
   * For a planned stop: from now on sessions that a later process, or another replica, can go on with are not ended. The
   * only gateway on a store in memory has neither.
   */
  keepSessions(): void {
    const { engine, state } = this.#store.health()
    const endsWithProcess = engine === 'memory' && this.#store.members.all().length <= 1
    this.#isStopping = state !== 'memory-only' && !endsWithProcess
  }

  /** Ends abandoned sessions, as many as one sweep may; resolves with their number. */
  sweep(): Promise<number> {
    return this.#sweep.run()
  }

  /** Writes records again with the next batch, before they expire; all of them where their times may be wrong. */
  refresh(areAllDue = false): void {
    const now = Date.now()
    for (const record of this.#live.values()) if (areAllDue || record.isOld(now)) this.#schedule(record)
  }

  /** Writes everything that is due. */
  async flush(): Promise<void> {
    clearTimeout(this.#batch)
    this.#batch = undefined
    const due = [...this.#due]
    this.#due.clear()
    for (let from = 0; from < due.length; from += WRITTEN_AT_ONCE)
      await Promise.all(due.slice(from, from + WRITTEN_AT_ONCE).map(record => record.write()))
  }

  async close(): Promise<void> {
    clearInterval(this.#ticker)
    this.#sweep.close()
    this.#stopListening()
    await this.flush()
    await Promise.all([...[...this.#live.values()].map(record => record.settled), ...this.#finishing])
  }

  #schedule(record: LiveRecord): void {
    this.#live.set(record.id, record)
    this.#due.add(record)
    this.#batch ??= setTimeout(() => void this.flush(), this.#batchMs).unref()
  }

  async #take(id: string): Promise<Held | undefined> {
    try {
      const taken = await within(TAKE_MS, this.#store.take('server-session', id), () => undefined)
      const held = taken?.kind === 'mine' ? taken.held : undefined
      return held && decodeStored(held.body)?.handshake ? held : undefined // without a handshake it can only be ended
    } catch (error) {
      this.#log.debug({ err: error }, 'record of a session with a server not read')
      return undefined
    }
  }

  /** A record that expired although its session is open, as after a jump of the clock, is written again. */
  #keepIfLive(held: Held): boolean {
    const record = this.#live.get(held.id)
    record?.renew(held)
    return record !== undefined
  }
}
