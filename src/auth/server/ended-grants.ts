import type { Shared } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { hashSecret } from '../token.ts'

/** The document with the grants that were ended last, and the topic that is notified when it changes. */
const DOCUMENT = 'ended-grants'
const MOST = 500
const ATTEMPTS = 20

type Documents = Pick<Shared, 'document' | 'writeDocument' | 'on'>

/** A name for a grant that may be shown and logged: the id of a grant is part of its secrets. */
export const grantName = (id: string): string => `grant-${hashSecret(id).slice(0, 16)}`

/** Tells all replicas which grants have ended, by their names, so that cached access ends at once. */
export class EndedGrants {
  readonly #documents: Documents
  readonly #log: Log
  readonly #listeners = new Set<(name: string) => void>()
  readonly #stop: () => void
  #seen: ReadonlySet<string> | undefined // undefined: not read yet

  constructor(documents: Documents, log: Log) {
    this.#documents = documents
    this.#log = log
    this.#stop = documents.on(DOCUMENT, () => void this.#read())
    void this.#read()
  }

  onEnded(listener: (name: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async announce(name: string): Promise<void> {
    for (const listener of this.#listeners) listener(name)
    try {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const found = await this.#documents.document(DOCUMENT)
        const names = [...namesIn(found?.body), name].slice(-MOST)
        if (await this.#documents.writeDocument(DOCUMENT, Buffer.from(JSON.stringify(names)), found?.version ?? 0))
          return
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'end of a grant not announced: other replicas notice within a minute')
    }
  }

  close(): void {
    this.#stop()
    this.#listeners.clear()
  }

  async #read(): Promise<void> {
    try {
      const names = namesIn((await this.#documents.document(DOCUMENT))?.body)
      const before = this.#seen
      this.#seen = new Set(names)
      for (const name of before ? names : [])
        if (!before?.has(name)) for (const listener of this.#listeners) listener(name)
    } catch {
      // The store is away; the listener is called again every few seconds.
    }
  }
}

const namesIn = (body: Buffer | undefined): readonly string[] =>
  body ? (JSON.parse(body.toString()) as readonly string[]) : []
