import type { IncomingHttpHeaders } from 'node:http'
import { ERRORS } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { isModern, isRevision, NEWEST_LEGACY, OLDEST, type Revision, SERVED } from '../../protocol/revisions.ts'
import { runsToolsAsTasks } from '../../protocol/tasks.ts'
import { Json } from '../../wire/json/json.ts'
import { type FailureDetails, failureOfHandshake, UpstreamFailure, withoutQuotes, withQuote } from '../failures.ts'
import { failureOfStatus, isEraEvidence } from '../http/http-failures.ts'
import type { HttpLink } from '../http/http-link.ts'
import { mayBlameCapabilities } from './capability-offer.ts'
import type { Answered } from './gateway-request.ts'

/** What the server answered to `initialize`. */
export interface Handshake {
  readonly revision: Revision
  readonly result: Json // the InitializeResult as it came
  readonly sessionId?: string | undefined
  readonly isImplied?: true // the server has no handshake
  readonly runsTasks?: boolean // its tools may run as tasks
}

type Unanswered = Exclude<Answered, { kind: 'response' }>

const METHOD_NOT_FOUND = ERRORS.methodNotFound.code
const BLAMES_CAPABILITIES: ReadonlySet<number> = new Set([400, 422, 500]) // as servers with strict parsers answer

/** The server refused `initialize`. Unlike an outage, this is evidence of what it is. */
export class HandshakeRefused extends UpstreamFailure {
  override forOtherCallers(): HandshakeRefused {
    return new HandshakeRefused(this.server, withoutQuotes(this.details))
  }
}

/** The server accepts no `initialize` as a POST to this URL; it may accept one for an SSE channel. */
export class HandshakeNotAccepted extends HandshakeRefused {
  readonly answer: 'accepted' | 'refused' | 'error' // HTTP 202 without an answer, a refusal without JSON-RPC, or with it

  constructor(server: string, failure: FailureDetails, answer: HandshakeNotAccepted['answer']) {
    super(server, failure)
    this.answer = answer
  }
}

/** Sends a request of the gateway's own; never rejects. */
type SendRequest = (method: string, params: Json) => Promise<Answered>

interface HandshakeOptions {
  readonly mayBeSilent?: boolean // the server may not even refuse a method it does not know
  readonly isRequired?: boolean | undefined // the server is modern: without a handshake its modern era serves
}

/** Initializes a legacy session on behalf of that caller; rejects with UpstreamFailure. */
export const performHandshake = async (
  link: HttpLink,
  caller: Caller,
  send: SendRequest,
  { mayBeSilent = false, isRequired = false }: HandshakeOptions = {},
): Promise<Handshake> => {
  const revision = link.offersCallerRevision ? caller.revision : NEWEST_LEGACY
  const initialize = (capabilities: Json): Promise<Answered> =>
    send('initialize', initializeParams(capabilities, caller.info ?? link.identity, revision))
  const first = await initialize(link.offers.offer(caller.capabilities))
  const less = isOfferRefused(first) ? link.offers.offerLess(caller.capabilities) : undefined
  const second = less && (await initialize(less))
  const answered = second?.kind === 'response' ? second : first
  if (answered.kind === 'response') {
    const handshake = readAgain(link, answered.result)
    if ('reason' in handshake) throw new HandshakeRefused(link.name, handshake)
    link.offers.accepted(handshake.revision, first.kind === 'response' ? undefined : withQuote(failureOf(first)).text)
    return { ...handshake, sessionId: sessionIdIn(answered.headers) }
  }
  if (!isRequired && (await hasNoHandshake(answered, send, mayBeSilent))) return impliedHandshake(link)
  const refusal = refusalOf(link, answered, caller)
  if (isOfferRefused(answered)) link.offers.refused(withQuote(refusal.details).text)
  throw refusal
}

/** The id of the session that a server has opened. */
export const sessionIdIn = ({ 'mcp-session-id': id }: IncomingHttpHeaders): string | undefined =>
  Array.isArray(id) ? id[0] : id

export const initializeParams = (
  capabilities: Json,
  clientInfo: Json,
  protocolVersion: Revision = NEWEST_LEGACY,
): Json => Json.of({ protocolVersion, capabilities, clientInfo })

/** Reads an InitializeResult; a failure if its revision is not a legacy one that the gateway knows. */
export const readHandshake = (result: Json): Handshake | FailureDetails => {
  const version = result.get('protocolVersion')?.asString()
  const runsTasks = runsToolsAsTasks(result.get('capabilities') ?? Json.empty)
  if (isRevision(version) && !isModern(version)) return { revision: version, result: result.compact(), runsTasks }
  const text = `answered initialize with protocol version ${version ?? '(none)'}, which this gateway does not know`
  return { reason: 'upstream_protocol', text }
}

const lastHandshakes = new WeakMap<HttpLink, Handshake>() // without the id of a session
const MOST_SHARED_BYTES = 64 * 1024

/** As `readHandshake`. Most servers answer each client the same: their sessions share one copy, and what was read of it. */
const readAgain = (link: HttpLink, result: Json): Handshake | FailureDetails => {
  const last = lastHandshakes.get(link)
  if (last?.result.isSameText(result)) return last
  const handshake = readHandshake(result)
  if (!('reason' in handshake) && result.size <= MOST_SHARED_BYTES) lastHandshakes.set(link, handshake)
  return handshake
}

const discoverResults = new WeakMap<Json, Json>() // by InitializeResult

/** An InitializeResult in the form of a modern answer to `server/discover`; unknown members are kept. */
export const discoverResult = (initializeResult: Json): Json => {
  const known = discoverResults.get(initializeResult)
  if (known) return known
  const result = makeDiscoverResult(initializeResult)
  discoverResults.set(initializeResult, result)
  return result
}

const makeDiscoverResult = (initializeResult: Json): Json => {
  const serverInfo = initializeResult.get('serverInfo')
  const given = initializeResult.get('_meta')
  const meta = given?.isObject ? given : Json.empty
  return initializeResult
    .without('protocolVersion', 'serverInfo')
    .with('resultType', 'complete')
    .with('supportedVersions', SERVED)
    .with('ttlMs', 0)
    .with('cacheScope', 'private')
    .with('_meta', serverInfo ? meta.with(META.serverInfo, serverInfo) : meta)
}

/** Whether the server may accept the handshake with fewer capabilities. */
const isOfferRefused = (answered: Answered): boolean => {
  if (answered.kind === 'error') return mayBlameCapabilities(answered.code)
  if (answered.kind !== 'refused' || !BLAMES_CAPABILITIES.has(answered.status)) return false
  return mayBlameCapabilities(answered.error?.error.code)
}

/** Some servers have no handshake: they say so, or they refuse it and answer other requests. */
const hasNoHandshake = async (answered: Unanswered, send: SendRequest, mayBeSilent: boolean): Promise<boolean> => {
  const code = codeOf(answered)
  if (code === METHOD_NOT_FOUND) return true
  const isSilence = mayBeSilent && answered.kind === 'failed' && answered.failure.reason === 'upstream_timeout'
  const isRefusal = code !== undefined && mayBlameCapabilities(code)
  if (!isSilence && !isRefusal) return false
  return (await send('tools/list', Json.empty)).kind === 'response'
}

/** A server without a handshake is taken to have tools. */
const impliedHandshake = ({ name }: HttpLink): Handshake => ({
  revision: OLDEST,
  result: Json.of({
    protocolVersion: OLDEST,
    capabilities: { tools: {} },
    serverInfo: { name, version: 'unknown' },
  }),
  isImplied: true,
})

const refusalOf = (link: HttpLink, answered: Unanswered, { isHealthCheck }: Caller): UpstreamFailure => {
  const failure = isHealthCheck ? withQuote(failureOf(answered)) : failureOf(answered)
  if (answered.kind === 'error') return new HandshakeRefused(link.name, failure)
  if (answered.kind === 'accepted') return new HandshakeNotAccepted(link.name, failure, 'accepted')
  const isRefusal = answered.kind === 'refused' && isEraEvidence(answered.status)
  const isNoJson = answered.kind === 'failed' && failure.reason === 'upstream_protocol'
  if (!isRefusal && !isNoJson) return new UpstreamFailure(link.name, failure)
  return new HandshakeNotAccepted(link.name, failure, isRefusal && answered.error ? 'error' : 'refused')
}

const codeOf = (answered: Unanswered): number | undefined => {
  if (answered.kind === 'error') return answered.code
  const isRefusal = answered.kind === 'refused' && isEraEvidence(answered.status)
  return isRefusal ? answered.error?.error.code : undefined
}

const failureOf = (answered: Unanswered): FailureDetails => {
  switch (answered.kind) {
    case 'failed':
      return answered.failure
    case 'accepted':
      return { reason: 'upstream_protocol', text: 'accepted initialize but sent no answer' }
    case 'error':
      return failureOfHandshake(answered.message)
    case 'refused': {
      const { status, error } = answered
      const isOther = status === 401 || status === 403 || status >= 500 || !error
      return isOther ? failureOfStatus(answered) : failureOfHandshake(error.error.message)
    }
  }
}
