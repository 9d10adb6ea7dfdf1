import type { Caller } from '../../protocol/exchange.ts'
import { isModern } from '../../protocol/revisions.ts'
import type { PendingRequest } from '../http/http-client.ts'
import type { HttpLink } from '../http/http-link.ts'
import type { Era } from '../probe.ts'

const RETRY_MS = 60_000 // after a failure that is no evidence
const METHOD_NOT_ALLOWED = 405

/**
 * Whether a modern server accepts legacy sessions too, by what legacy callers have met. Nothing else tells: servers of
 * both eras list only 2026-07-28 in `supportedVersions`.
 */
export class LegacySupport {
  readonly #lifetimeMs: number
  #known: { readonly isSupported: boolean; readonly until: number } | undefined

  constructor(lifetimeMs: number) {
    this.#lifetimeMs = lifetimeMs
  }

  /** Undefined if it is not known, and a caller has to try. */
  get isSupported(): boolean | undefined {
    if (this.#known && this.#known.until < Date.now()) this.#known = undefined
    return this.#known?.isSupported
  }

  confirm(): void {
    this.#known = { isSupported: true, until: Number.POSITIVE_INFINITY }
  }

  /** `isEvidence`: the server said so; otherwise it is tried again soon. */
  deny(isEvidence: boolean): void {
    this.#known = { isSupported: false, until: Date.now() + (isEvidence ? this.#lifetimeMs : RETRY_MS) }
  }
}

/** The era in which a caller uses a server: its own where the server has both. Undefined while `detected` is. */
export const chooseEra = (
  caller: Caller,
  configured: 'auto' | Era,
  detected: Era | undefined,
  legacy: LegacySupport,
): Era | undefined => {
  if (configured !== 'auto') return configured
  const usesLegacy = detected === 'modern' && !isModern(caller.revision) && legacy.isSupported !== false
  return usesLegacy ? 'legacy' : detected
}

/**
 * Whether the server accepts a GET; only 405 says no. A modern server without legacy sessions answers that, and need not
 * be sent `initialize`. A server with sessions answers 400 for want of a session id, or opens a stream.
 */
export const acceptsGet = (link: HttpLink): Promise<boolean> =>
  new Promise(resolve => {
    let sending: PendingRequest | undefined
    const settle = (accepts: boolean): void => {
      resolve(accepts)
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
