import { META } from '../protocol/meta.ts'
import { isModern, isRevision, MODERN } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { type FailureDetails, UpstreamFailure, withQuote } from './failures.ts'
import { failureOfStatus, isEraEvidence } from './http/http-failures.ts'
import { type HttpLink, POST_HEADERS } from './http/http-link.ts'
import { type Answered, sendRequest } from './session/gateway-request.ts'

export type Era = 'modern' | 'legacy'

/** What an answer to `server/discover` tells; `none`: it is no evidence. */
export type ProbeResult = { readonly kind: Era } | { readonly kind: 'none'; readonly failure: FailureDetails }

const UNSUPPORTED_VERSION = -32022
const MODERN_ERRORS: ReadonlySet<number> = new Set([-32020, -32021])
const NEWEST_GUESS = '2026' // revisions we do not know, from the first modern year on, are modern ones

/** Decides the era of a server from its answer; credentials, outages and silence never decide it. */
export const classifyProbe = (answered: Answered): ProbeResult => {
  switch (answered.kind) {
    case 'response':
      return judgeVersions(answered.result.get('supportedVersions'))
    case 'error':
      return judgeError(answered.code, answered.data)
    case 'accepted':
      return LEGACY
    case 'failed':
      // Something that is no JSON-RPC (a page, say) is an answer all the same.
      return answered.failure.reason === 'upstream_protocol' ? LEGACY : { kind: 'none', failure: answered.failure }
    case 'refused':
      return isEraEvidence(answered.status)
        ? judgeError(answered.error?.error.code, answered.error?.error.data)
        : { kind: 'none', failure: withQuote(failureOfStatus(answered)) }
  }
}

const LEGACY: ProbeResult = { kind: 'legacy' }

const judgeError = (code: number | undefined, data: Json | undefined): ProbeResult => {
  if (code === UNSUPPORTED_VERSION) return judgeVersions(data?.get('supported'))
  return code !== undefined && MODERN_ERRORS.has(code) ? { kind: 'modern' } : LEGACY
}

const judgeVersions = (list: Json | undefined): ProbeResult => {
  const versions = (list?.elements() ?? []).map(version => version.asString() ?? '')
  if (versions.includes(MODERN)) return { kind: 'modern' }
  const isKnown = versions.some(version => isRevision(version) && !isModern(version))
  const strange = versions.filter(version => version >= NEWEST_GUESS)
  if (isKnown || strange.length === 0) return LEGACY
  const text = `speaks only ${strange.join(', ')}, which this gateway does not know`
  return { kind: 'none', failure: { reason: 'upstream_protocol', text } }
}

interface Options {
  readonly configured: 'auto' | Era
  readonly legacyMs: number // an upgraded server still answers `initialize`, so a legacy verdict must end
  readonly backoffMs: number // after a first failure; doubles
}

/** Knows, or finds out, the era of one server. */
export interface EraDetector {
  /** The era if it is known. */
  readonly era: Era | undefined
  /** Finds out; callers at the same time share one probe. Rejects with UpstreamFailure. */
  detect(): Promise<Era>
  /** Asks, whatever it is; only that it answers matters. Rejects with UpstreamFailure. */
  checkReachable(): Promise<void>
  /** The server behaved unlike its era: the next `detect` asks again. */
  forgetEra(): void
  /** The server could not be reached: for a short while callers are told so without asking it. */
  markUnreachable(failure: UpstreamFailure): void
  markReachable(): void
}

const LONGEST_BACKOFF_MS = 5000
const DOUBT_MS = 10_000 // a server that keeps confusing us is not probed before every call

export const createEraDetector = (link: HttpLink, { configured, legacyMs, backoffMs }: Options): EraDetector => {
  let verdict: { era: Era; at: number } | undefined
  let probing: Promise<Era> | undefined
  let outage: { failure: UpstreamFailure; until: number } | undefined
  let failures = 0
  let doubtedAt = Number.NEGATIVE_INFINITY

  const down = (failure: UpstreamFailure): void => {
    const ms = Math.min(LONGEST_BACKOFF_MS, backoffMs * 2 ** failures) * (0.5 + Math.random() / 2)
    failures++
    // Other callers read it, too.
    outage = { failure: failure.forOtherCallers(), until: Date.now() + ms }
  }

  const up = (): void => {
    failures = 0
    outage = undefined
  }

  const known = (): Era | undefined => {
    if (configured !== 'auto') return configured
    if (verdict?.era === 'legacy' && Date.now() - verdict.at > legacyMs) verdict = undefined
    return verdict?.era
  }

  const probe = async (): Promise<Era> => {
    const found = classifyProbe(await discover(link))
    if (found.kind === 'none') {
      const failure = new UpstreamFailure(link.name, found.failure)
      down(failure)
      throw failure
    }
    up()
    verdict = { era: found.kind, at: Date.now() }
    link.log.debug({ era: found.kind }, 'found out what the server speaks')
    return found.kind
  }

  const detect = async (): Promise<Era> => {
    if (outage && Date.now() < outage.until) throw outage.failure
    outage = undefined
    const era = known()
    if (era) return era
    probing ??= probe().finally(() => {
      probing = undefined
    })
    return probing
  }

  const look = async (): Promise<void> => {
    const found = classifyProbe(await discover(link))
    if (found.kind === 'none') throw new UpstreamFailure(link.name, found.failure)
    up()
  }

  const doubt = (): void => {
    if (!verdict || Date.now() - doubtedAt < DOUBT_MS) return
    doubtedAt = Date.now()
    verdict = undefined
  }

  return {
    get era() {
      return outage ? undefined : known()
    },
    detect,
    checkReachable: look,
    forgetEra: doubt,
    markUnreachable: down,
    markReachable: up,
  }
}

const discover = (link: HttpLink): Promise<Answered> => {
  const headers = [...link.headers, ...POST_HEADERS, 'mcp-protocol-version', MODERN, 'mcp-method', 'server/discover']
  const envelope = {
    [META.protocolVersion]: MODERN,
    [META.clientInfo]: link.identity,
    [META.clientCapabilities]: {},
  }
  return sendRequest(link, headers, 'server/discover', Json.of({ _meta: envelope }), 1)
}
