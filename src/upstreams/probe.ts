import { ERRORS } from '../protocol/errors.ts'
import { META } from '../protocol/meta.ts'
import { isModern, isRevision, MODERN } from '../protocol/revisions.ts'
import { SingleFlight } from '../std/single-flight.ts'
import { backoffMs } from '../std/time.ts'
import { Json } from '../wire/json/json.ts'
import { type FailureDetails, UpstreamFailure, withQuote } from './failures.ts'
import { failureOfStatus, isEraEvidence } from './http/http-failures.ts'
import { type HttpLink, POST_HEADERS } from './http/http-link.ts'
import { type Answered, postRequest } from './session/gateway-request.ts'

export type Era = 'modern' | 'legacy'

/** What a response to `server/discover` says about the era; `none`: nothing. */
export type ProbeResult = { readonly kind: Era } | { readonly kind: 'none'; readonly failure: FailureDetails }

const MODERN_ERRORS: ReadonlySet<number> = new Set([ERRORS.headerMismatch.code, ERRORS.missingCapability.code])
const FIRST_MODERN_YEAR = '2026' // later revisions that the gateway does not know are modern
const LEGACY: ProbeResult = { kind: 'legacy' }

/** Decides the era from the response; rejected credentials, outages and timeouts say nothing about it. */
export const classifyProbe = (answered: Answered): ProbeResult => {
  switch (answered.kind) {
    case 'response':
      return classifyVersions(answered.result.get('supportedVersions'))
    case 'error':
      return classifyError(answered.code, answered.data)
    case 'accepted':
      return LEGACY
    case 'failed':
      // A response that is no JSON-RPC (an HTML page) comes from a server all the same.
      return answered.failure.reason === 'upstream_protocol' ? LEGACY : { kind: 'none', failure: answered.failure }
    case 'refused':
      return isEraEvidence(answered.status)
        ? classifyError(answered.error?.error.code, answered.error?.error.data)
        : { kind: 'none', failure: withQuote(failureOfStatus(answered)) }
  }
}

const classifyError = (code: number | undefined, data: Json | undefined): ProbeResult => {
  if (code === ERRORS.unsupportedVersion.code) return classifyVersions(data?.get('supported'))
  return code !== undefined && MODERN_ERRORS.has(code) ? { kind: 'modern' } : LEGACY
}

const classifyVersions = (list: Json | undefined): ProbeResult => {
  const versions = (list?.elements() ?? []).map(version => version.asString() ?? '')
  if (versions.includes(MODERN)) return { kind: 'modern' }
  const hasLegacy = versions.some(version => isRevision(version) && !isModern(version))
  const unknown = versions.filter(version => version >= FIRST_MODERN_YEAR)
  if (hasLegacy || unknown.length === 0) return LEGACY
  const text = `speaks only ${unknown.join(', ')}, which this gateway does not know`
  return { kind: 'none', failure: { reason: 'upstream_protocol', text } }
}

/** The params of a `server/discover` request of the gateway's own. */
export const discoverParams = (identity: Json): Json =>
  Json.of({
    _meta: { [META.protocolVersion]: MODERN, [META.clientInfo]: identity, [META.clientCapabilities]: {} },
  })

interface DetectorOptions {
  readonly configured: 'auto' | Era
  readonly legacyMs: number // until a legacy server is probed again: an upgraded server still answers `initialize`
  readonly backoffMs: number // after a first failure; doubles
}

const LONGEST_BACKOFF_MS = 5000
const FORGET_INTERVAL_MS = 10_000 // against a probe before every call of a server that contradicts itself

/** Detects the era of one server and remembers it. */
export class EraDetector {
  readonly #link: HttpLink
  readonly #options: DetectorOptions
  #detected: { readonly era: Era; readonly at: number } | undefined
  readonly #probing = new SingleFlight<Era>()
  #outage: { readonly failure: UpstreamFailure; readonly until: number } | undefined
  #failures = 0
  #forgottenAt = Number.NEGATIVE_INFINITY

  constructor(link: HttpLink, options: DetectorOptions) {
    this.#link = link
    this.#options = options
  }

  /** Undefined while it is not known, or the server cannot be reached. */
  get era(): Era | undefined {
    return this.#outage ? undefined : this.#known()
  }

  /** Probes the server unless its era is known; concurrent callers share one probe. Rejects with UpstreamFailure. */
  async detect(): Promise<Era> {
    if (this.#outage && Date.now() < this.#outage.until) throw this.#outage.failure
    this.#outage = undefined
    const era = this.#known()
    if (era) return era
    return this.#probing.run(() => this.#probe())
  }

  /** Rejects with UpstreamFailure if the server does not answer; any answer will do, even that a login is needed. */
  async checkReachable(): Promise<void> {
    await this.#discover().catch((error: unknown) => {
      if (!(error instanceof UpstreamFailure && error.isAboutLogin)) throw error
    })
    this.markReachable()
  }

  /** The server contradicted its era: the next `detect` probes it again. */
  forgetEra(): void {
    if (!this.#detected || Date.now() - this.#forgottenAt < FORGET_INTERVAL_MS) return
    this.#forgottenAt = Date.now()
    this.#detected = undefined
  }

  /** Until the backoff is over, `detect` rejects with this failure. A missing login is no outage, and ends at any moment. */
  recordFailure(failure: UpstreamFailure): void {
    if (failure.isAboutLogin) return this.markReachable()
    const ms = backoffMs({ firstMs: this.#options.backoffMs, longestMs: LONGEST_BACKOFF_MS }, this.#failures++)
    this.#outage = { failure: failure.forOtherCallers(), until: Date.now() + ms }
  }

  markReachable(): void {
    this.#failures = 0
    this.#outage = undefined
  }

  #known(): Era | undefined {
    const { configured, legacyMs } = this.#options
    if (configured !== 'auto') return configured
    if (this.#detected?.era === 'legacy' && Date.now() - this.#detected.at > legacyMs) this.#detected = undefined
    return this.#detected?.era
  }

  async #probe(): Promise<Era> {
    try {
      const era = await this.#discover()
      this.markReachable()
      this.#detected = { era, at: Date.now() }
      this.#link.log.debug({ era }, 'era of the server detected')
      return era
    } catch (error) {
      if (error instanceof UpstreamFailure) this.recordFailure(error)
      throw error
    }
  }

  async #discover(): Promise<Era> {
    const link = this.#link
    const headers = [...link.headers, ...POST_HEADERS, 'mcp-protocol-version', MODERN, 'mcp-method', 'server/discover']
    const found = classifyProbe(await postRequest(link, headers, 'server/discover', discoverParams(link.identity), 1))
    if (found.kind === 'none') throw new UpstreamFailure(link.name, found.failure)
    return found.kind
  }
}
