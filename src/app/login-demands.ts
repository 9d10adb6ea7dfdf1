import { createHash } from 'node:crypto'
import type { Shared } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'
import type { LoginDemand } from '../upstreams/login/upstream-logins.ts'
import type { RemoteConfig } from './server-logins.ts'

const DOCUMENT = 'login-demands'
const MOST = 10_000 // servers; also those of earlier configurations
const ATTEMPTS = 20

/** The servers that have asked for a login before: shared by the replicas, and kept across restarts. */
export class LoginDemands {
  readonly #shared: Shared
  readonly #log: Log
  readonly #known = new Set<string>() // servers as `keyOf` names them
  readonly #stopListening: () => void

  constructor(shared: Shared, log: Log) {
    this.#shared = shared
    this.#log = log
    this.#stopListening = shared.on(DOCUMENT, () => void this.load())
  }

  /** Reads what this process and others have recorded. */
  async load(): Promise<void> {
    try {
      for (const key of await this.#read()) this.#known.add(key)
    } catch (error) {
      this.#log.debug({ err: error }, 'servers that want a login not read')
    }
  }

  /** `onRecorded` is called when the server asks for the first time. */
  of(config: RemoteConfig, onRecorded: () => void): LoginDemand {
    const key = keyOf(config)
    const known = this.#known
    return {
      get isKnown() {
        return known.has(key)
      },
      record: () => {
        if (known.has(key)) return
        known.add(key)
        this.#write(key).catch((error: unknown) =>
          this.#log.warn({ err: error, server: config.name }, 'that a server wants a login was not stored'),
        )
        onRecorded()
      },
    }
  }

  close(): void {
    this.#stopListening()
  }

  async #read(): Promise<readonly string[]> {
    const found = await this.#shared.document(DOCUMENT)
    return found ? (JSON.parse(found.body.toString()) as string[]) : []
  }

  async #write(key: string): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const found = await this.#shared.document(DOCUMENT)
      const before = found ? (JSON.parse(found.body.toString()) as string[]) : []
      if (before.includes(key)) return
      const next = [...before, key].slice(-MOST)
      if (await this.#shared.writeDocument(DOCUMENT, Buffer.from(JSON.stringify(next)), found?.version ?? 0)) return
    }
  }
}

/** An entry with another URL or other headers may need no login. Both may contain secrets. */
const keyOf = ({ name, url, headers }: RemoteConfig): string =>
  createHash('sha256')
    .update(JSON.stringify([name, url, headers]))
    .digest('base64url')
