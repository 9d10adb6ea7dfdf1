import { randomUUID } from 'node:crypto'
import { SingleFlight } from '../../std/single-flight.ts'
import { Listeners } from '../../stores/state/listeners.ts'
import type { Shared } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { encodeRecord, parseObject } from './token-records.ts'

/** A login that came or went. */
export interface LoginChange {
  readonly server: string
  readonly principal?: string | undefined // undefined: of the whole gateway
}

const DOCUMENT = 'login-changes' // also the topic that is notified when it changes
const KEPT = 500
const ATTEMPTS = 20

interface NumberedChange extends LoginChange {
  readonly version: number // of the document, with this change
  readonly by: string // the replica that has published it
}

/**
 * Tells every replica which logins came or went: a document with the last changes. One that was away for longer, and may have
 * missed some, gets `undefined`: any login may have changed.
 */
export class LoginChanges {
  readonly #shared: Pick<Shared, 'document' | 'writeDocument' | 'on'>
  readonly #log: Log
  readonly #listeners = new Listeners<LoginChange | undefined>()
  readonly #reading = new SingleFlight()
  #following: Promise<void> | undefined
  #stop: (() => void) | undefined
  readonly #id = randomUUID()
  #version = 0
  #isStale = false

  constructor(shared: Pick<Shared, 'document' | 'writeDocument' | 'on'>, log: Log) {
    this.#shared = shared
    this.#log = log
  }

  onChange(listener: (change: LoginChange | undefined) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Resolves once changes are followed: what is read from the store afterwards is reported if it changes. */
  follow(): Promise<void> {
    this.#following ??= this.#start().catch((error: unknown) => {
      this.#following = undefined
      throw error
    })
    return this.#following
  }

  /** Reports a change to this replica at once, and to the others. Never rejects: what has changed is stored already. */
  async publish(change: LoginChange): Promise<void> {
    this.#listeners.call(change)
    const outcome = await this.#write(change).catch((error: Error) => error)
    if (outcome === true) return
    const reason = outcome ? outcome.message : 'they keep publishing changes'
    this.#log.warn({ server: change.server, reason }, 'other replicas were not told of a login')
  }

  async #write(change: LoginChange): Promise<boolean> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const found = await this.#shared.document(DOCUMENT)
      const version = (found?.version ?? 0) + 1
      const changes = [...readChanges(found?.body), { ...change, version, by: this.#id }].slice(-KEPT)
      if (await this.#shared.writeDocument(DOCUMENT, encodeRecord({ changes }), version - 1)) return true
    }
    return false
  }

  close(): void {
    this.#stop?.()
  }

  async #start(): Promise<void> {
    this.#version = (await this.#shared.document(DOCUMENT))?.version ?? 0
    this.#stop ??= this.#shared.on(DOCUMENT, () => this.#refresh())
  }

  /** Reads again after the read in progress, which may have begun before the change. */
  #refresh(): void {
    this.#isStale = true
    void this.#reading.run(() => this.#readWhileStale()).then(() => this.#isStale && this.#refresh())
  }

  async #readWhileStale(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false
      await this.#read().catch((error: Error) =>
        this.#log.debug({ reason: error.message }, 'logins could not be followed'),
      )
    }
  }

  async #read(): Promise<void> {
    const found = await this.#shared.document(DOCUMENT)
    const known = this.#version
    if (!found || found.version === known) return
    this.#version = found.version
    const changes = readChanges(found.body)
    const isComplete = found.version > known && (changes[0]?.version ?? 0) <= known + 1
    if (!isComplete) return this.#listeners.call(undefined)
    for (const change of changes) if (change.version > known && change.by !== this.#id) this.#listeners.call(change)
  }
}

const readChanges = (body: Buffer | undefined): readonly NumberedChange[] => {
  const changes = body && parseObject(body)?.changes
  return Array.isArray(changes) ? (changes as NumberedChange[]) : []
}
