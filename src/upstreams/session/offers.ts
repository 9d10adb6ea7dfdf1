import { bareCapabilities, capabilitiesKnownTo } from '../../protocol/client-capabilities.ts'
import { ERRORS } from '../../protocol/errors.ts'
import { fingerprint } from '../../protocol/fingerprint.ts'
import type { Revision } from '../../protocol/revisions.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Json } from '../../wire/json/json.ts'

const BARE_MS = 24 * 60 * 60_000 // an upgraded server may know more

/** Codes that do not blame the capabilities: the server knows no handshake, or no legacy one. */
const OTHER_REASONS: ReadonlySet<number> = new Set([
  ERRORS.methodNotFound.code,
  ERRORS.headerMismatch.code,
  ERRORS.missingCapability.code,
  ERRORS.unsupportedVersion.code,
])

/** Whether a server that refused `initialize` with this code may have choked on the capabilities. */
export const mayBlameCapabilities = (code: number | undefined): boolean =>
  code === undefined || !OTHER_REASONS.has(code)

/** What one server is offered of its callers' capabilities, by what it answered to earlier handshakes. */
export class Offers {
  readonly #server: string
  readonly #log: Log
  #revision: Revision | undefined
  #bareUntil = 0
  #lastRefusal: string | undefined // was logged

  constructor(server: string, log: Log) {
    this.#server = server
    this.#log = log
  }

  offer(capabilities: Json): Json {
    if (this.#bareUntil > Date.now()) return bareCapabilities(capabilities)
    return this.#revision ? capabilitiesKnownTo(capabilities, this.#revision) : capabilities
  }

  /** What to offer after a refusal; undefined if that would be the same. */
  offerLess(capabilities: Json): Json | undefined {
    const bare = bareCapabilities(capabilities)
    return fingerprint(bare) === fingerprint(this.offer(capabilities)) ? undefined : bare
  }

  /** The server took the handshake; `refusal`: only after it had refused a fuller offer for that reason. */
  taken(revision: Revision, refusal?: string): void {
    this.#revision = revision
    this.#lastRefusal = undefined
    if (refusal === undefined) return
    this.#bareUntil = Date.now() + BARE_MS
    this.#log.warn(
      { server: this.#server, reason: refusal },
      'server refused the client capabilities; it is offered only the oldest members for a day',
    )
  }

  /** The server refused every offer. */
  refused(reason: string): void {
    if (this.#lastRefusal === reason) return
    this.#lastRefusal = reason
    this.#log.warn({ server: this.#server, reason }, 'server refused the handshake')
  }
}
