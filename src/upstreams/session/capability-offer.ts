import { bareCapabilities, capabilitiesFingerprint, capabilitiesKnownTo } from '../../protocol/capabilities.ts'
import { ERRORS } from '../../protocol/errors.ts'
import type { Revision } from '../../protocol/revisions.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Json } from '../../wire/json/json.ts'

const BARE_MS = 24 * 60 * 60_000 // an upgraded server may accept more

/** Codes that do not blame the capabilities: the server has no handshake, or no legacy one. */
const OTHER_REASONS: ReadonlySet<number> = new Set([
  ERRORS.methodNotFound.code,
  ERRORS.headerMismatch.code,
  ERRORS.missingCapability.code,
  ERRORS.unsupportedVersion.code,
])

/** Whether a server that refused `initialize` with this code may have failed on the capabilities. */
export const mayBlameCapabilities = (code: number | undefined): boolean =>
  code === undefined || !OTHER_REASONS.has(code)

/** Which of its callers' capabilities one server is offered, by its answers to earlier handshakes. */
export class CapabilityOffer {
  readonly #server: string
  readonly #log: Log
  #revision: Revision | undefined
  #bareUntil = 0
  #loggedRefusal: string | undefined

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
    return capabilitiesFingerprint(bare) === capabilitiesFingerprint(this.offer(capabilities)) ? undefined : bare
  }

  /** The server accepted the handshake; `refusal` is why it refused a fuller offer before. */
  accepted(revision: Revision, refusal?: string): void {
    this.#revision = revision
    this.#loggedRefusal = undefined
    if (refusal === undefined) return
    this.#bareUntil = Date.now() + BARE_MS
    this.#log.warn(
      { server: this.#server, reason: refusal },
      'server refused the client capabilities; it is offered only the oldest members for a day',
    )
  }

  /** The server refused every offer. */
  refused(reason: string): void {
    if (this.#loggedRefusal === reason) return
    this.#loggedRefusal = reason
    this.#log.warn({ server: this.#server, reason }, 'server refused the handshake')
  }
}
