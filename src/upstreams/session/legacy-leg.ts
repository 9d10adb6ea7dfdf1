import type { Caller } from '../../protocol/exchange.ts'
import { isModern } from '../../protocol/revisions.ts'
import type { PendingRequest } from '../http/http-client.ts'
import type { HttpLink } from '../http/http-link.ts'
import type { Era } from '../probe.ts'

const RETRY_MS = 60_000 // after a failure that is no evidence
const METHOD_NOT_ALLOWED = 405

/**
 * Whether a modern server takes legacy sessions too, as far as a legacy caller has found out. Nothing else tells:
 * servers that speak both eras list only 2026-07-28 in `supportedVersions`.
 */
export class LegacyLeg {
  readonly #lifetimeMs: number
  #verdict: { readonly exists: boolean; readonly until: number } | undefined

  constructor(lifetimeMs: number) {
    this.#lifetimeMs = lifetimeMs
  }

  /** True if it is known to exist, false if it is known to be absent, undefined if a caller has to try. */
  get exists(): boolean | undefined {
    if (this.#verdict && this.#verdict.until < Date.now()) this.#verdict = undefined
    return this.#verdict?.exists
  }

  found(): void {
    this.#verdict = { exists: true, until: Number.POSITIVE_INFINITY }
  }

  /** `isEvidence`: the server said so; otherwise it is tried again soon. */
  missed(isEvidence: boolean): void {
    this.#verdict = { exists: false, until: Date.now() + (isEvidence ? this.#lifetimeMs : RETRY_MS) }
  }
}

/** The era to meet a server in; undefined while the server's own era is not known. */
export const eraFor = (
  caller: Caller,
  configured: 'auto' | Era,
  found: Era | undefined,
  leg: LegacyLeg,
): Era | undefined => {
  if (configured !== 'auto') return configured
  return found === 'modern' && !isModern(caller.revision) && leg.exists !== false ? 'legacy' : found
}

/**
 * Whether a GET finds anything at the server; only 405 says no. A modern server without legacy sessions answers so, and is
 * then spared an `initialize`. One with sessions misses the session id (400), or opens a stream.
 */
export const takesGet = (link: HttpLink): Promise<boolean> =>
  new Promise(resolve => {
    let sending: PendingRequest | undefined
    const settle = (takes: boolean): void => {
      resolve(takes)
      setImmediate(() => sending?.abort()) // not from within its own callback
    }
    const { target, responseTimeouts } = link
    const headers = [...link.headers, 'accept', 'text/event-stream']
    sending = link.http.send(
      { method: 'GET', target, headers, body: null, responseTimeouts },
      {
        status: status => settle(status !== METHOD_NOT_ALLOWED),
        bytes: () => {},
        end: () => {},
        failed: () => settle(true),
      },
    )
  })
