import type { Shared } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'

/** The document of the store with the ids, and the topic that is notified when it changes. */
const DOCUMENT = 'console-sign-ins'
const MOST = 10_000 // ids; those that would expire first are left out
const ATTEMPTS = 20 // to write it while other replicas change it, too

type Documents = Pick<Shared, 'document' | 'writeDocument' | 'on'>
type Ids = ReadonlyMap<string, number> // with the time at which each expires anyway

/**
 * The ids of sessions of the console and of browsers on the pages of OAuth that were signed out, and of one-time links that were
 * used, in the store: every replica knows them, also after a restart. A lookup reads a copy, which follows the store.
 */
export class EndedSignIns {
  readonly #documents: Documents
  readonly #onEnded: (isEnded: (id: string) => boolean) => void
  readonly #log: Log
  readonly #stopListening: () => void
  #ids: Ids = new Map()
  #version = 0

  /** `onEnded` is called when ids were added, by this replica or by another one. */
  constructor(documents: Documents, log: Log, onEnded: (isEnded: (id: string) => boolean) => void) {
    this.#documents = documents
    this.#log = log
    this.#onEnded = onEnded
    this.#stopListening = documents.on(DOCUMENT, () => void this.#refresh())
    void this.#refresh()
  }

  has(id: string): boolean {
    return (this.#ids.get(id) ?? 0) > Date.now()
  }

  /** Adds an id until it expires. False if it was there already: only one of several callers at the same time gets true. */
  async add(id: string, expires: number): Promise<boolean> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const found = await this.#documents.document(DOCUMENT)
      const known = found ? parse(found.body) : new Map<string, number>()
      if ((known.get(id) ?? 0) > Date.now()) return false
      const ids = newest(new Map([...known, [id, expires]]))
      const version = found?.version ?? 0
      if (!(await this.#documents.writeDocument(DOCUMENT, encode(ids), version))) continue
      this.#take(ids, version + 1)
      return true
    }
    throw new Error('the store keeps being changed by other replicas')
  }

  close(): void {
    this.#stopListening()
  }

  /** If the store cannot be read, the ids known before stay. */
  async #refresh(): Promise<void> {
    try {
      const found = await this.#documents.document(DOCUMENT)
      if (found) this.#take(parse(found.body), found.version)
    } catch (error) {
      this.#log.debug(
        { reason: error instanceof Error ? error.message : String(error) },
        'ended sign-ins could not be read',
      )
    }
  }

  #take(ids: Ids, version: number): void {
    if (version <= this.#version) return
    this.#ids = ids
    this.#version = version
    this.#onEnded(id => this.has(id))
  }
}

const newest = (ids: Ids): Ids => {
  const valid = [...ids].filter(([, expires]) => expires > Date.now())
  return new Map(valid.length > MOST ? valid.sort((a, b) => b[1] - a[1]).slice(0, MOST) : valid)
}

const encode = (ids: Ids): Buffer => Buffer.from(JSON.stringify(Object.fromEntries(ids)))
const parse = (body: Buffer): Ids => new Map(Object.entries(JSON.parse(body.toString()) as Record<string, number>))
