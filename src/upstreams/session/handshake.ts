import { ERRORS } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { isModern, isRevision, NEWEST_LEGACY, OLDEST, type Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { type FailureDetails, failureOfHandshake, UpstreamFailure, withoutQuotes, withQuote } from '../failures.ts'
import { failureOfStatus, isEraEvidence } from '../http/http-failures.ts'
import type { HttpLink } from '../http/http-link.ts'
import type { Answered } from './ask.ts'
import { mayBlameCapabilities } from './offers.ts'

/** What `initialize` settled. */
export interface Handshake {
  readonly revision: Revision
  readonly sessionId: string | undefined
  readonly result: Json // the InitializeResult as it came
  readonly isImplied?: true // the server knows no handshake
}

type Unanswered = Exclude<Answered, { kind: 'response' }>

const METHOD_NOT_FOUND = ERRORS.methodNotFound.code
const BLAMES_CAPABILITIES: ReadonlySet<number> = new Set([400, 422, 500]) // as servers with strict parsers answer

/** The server said no to `initialize`: evidence, unlike an outage, of what it is. */
export class Refused extends UpstreamFailure {
  override forOtherCallers(): Refused {
    return new Refused(this.server, withoutQuotes(this.details))
  }
}

/** A server that takes no `initialize` here; one that answers elsewhere may take it there. */
export class NotTaken extends Refused {
  readonly answer: 'accepted' | 'refused' | 'error' // without a word, or with one that is JSON-RPC

  constructor(server: string, loss: FailureDetails, answer: NotTaken['answer']) {
    super(server, loss)
    this.answer = answer
  }
}

/** Sends one request of ours. */
type Say = (method: string, params: Json) => Promise<Answered>

/** What a server may do instead of taking `initialize`. */
interface HandshakeOptions {
  readonly mayBeSilent?: boolean // it does not even refuse what it does not know
  readonly isRequired?: boolean | undefined // it can be met in another way, so none without a handshake
}

/** Opens a legacy conversation as that caller; rejects with UpstreamFailure. */
export const shakeHands = async (
  link: HttpLink,
  caller: Caller,
  say: Say,
  { mayBeSilent = false, isRequired = false }: HandshakeOptions = {},
): Promise<Handshake> => {
  const initialize = (capabilities: Json): Promise<Answered> =>
    say(
      'initialize',
      Json.of({
        protocolVersion: link.offersCallerRevision ? caller.revision : NEWEST_LEGACY,
        capabilities,
        clientInfo: caller.info ?? link.identity,
      }),
    )
  const first = await initialize(link.offers.offer(caller.capabilities))
  const less = isOfferRefused(first) ? link.offers.offerLess(caller.capabilities) : undefined
  const second = less && (await initialize(less))
  const answered = second?.kind === 'response' ? second : first
  if (answered.kind === 'response') {
    const handshake = agree(link, answered.result, answered.headers['mcp-session-id'])
    link.offers.taken(handshake.revision, first.kind === 'response' ? undefined : withQuote(lossOf(first)).text)
    return handshake
  }
  if (!isRequired && (await isNeedless(answered, say, mayBeSilent))) return withoutHandshake(link)
  const refusal = refusalOf(link, answered, caller)
  if (isOfferRefused(answered)) link.offers.refused(withQuote(refusal.details).text)
  throw refusal
}

/** Whether the server may take the handshake with fewer capabilities. */
const isOfferRefused = (answered: Answered): boolean => {
  if (answered.kind === 'error') return mayBlameCapabilities(answered.code)
  if (answered.kind !== 'refused' || !BLAMES_CAPABILITIES.has(answered.status)) return false
  return mayBlameCapabilities(answered.error?.error.code)
}

/** Some servers have no handshake: they say so, or they answer other requests although they refused it. */
const isNeedless = async (answered: Unanswered, say: Say, mayBeSilent: boolean): Promise<boolean> => {
  const code = codeOf(answered)
  if (code === METHOD_NOT_FOUND) return true
  const isSilence = mayBeSilent && answered.kind === 'failed' && answered.failure.reason === 'upstream_timeout'
  const isRefusal = code !== undefined && mayBlameCapabilities(code)
  if (!isSilence && !isRefusal) return false
  return (await say('tools/list', Json.empty)).kind === 'response'
}

const refusalOf = (link: HttpLink, answered: Unanswered, { isHealthCheck }: Caller): UpstreamFailure => {
  const loss = isHealthCheck ? withQuote(lossOf(answered)) : lossOf(answered)
  if (answered.kind === 'error') return new Refused(link.name, loss)
  if (answered.kind === 'accepted') return new NotTaken(link.name, loss, 'accepted')
  const isWord = answered.kind === 'refused' && isEraEvidence(answered.status)
  const isNonsense = answered.kind === 'failed' && loss.reason === 'upstream_protocol'
  if (!isWord && !isNonsense) return new UpstreamFailure(link.name, loss)
  return new NotTaken(link.name, loss, isWord && answered.error ? 'error' : 'refused')
}

const agree = (link: HttpLink, result: Json, sessionId: string | string[] | undefined): Handshake => {
  const version = result.get('protocolVersion')?.asString()
  if (!isRevision(version) || isModern(version)) {
    const text = `answered initialize with protocol version ${version ?? '(none)'}, which this gateway does not know`
    throw new Refused(link.name, { reason: 'upstream_protocol', text })
  }
  return { revision: version, sessionId: Array.isArray(sessionId) ? sessionId[0] : sessionId, result: result.compact() }
}

/** Some servers know no handshake and answer requests all the same; tools are what they have. */
const withoutHandshake = (link: HttpLink): Handshake => ({
  revision: OLDEST,
  sessionId: undefined,
  result: Json.of({
    protocolVersion: OLDEST,
    capabilities: { tools: {} },
    serverInfo: { name: link.name, version: 'unknown' },
  }),
  isImplied: true,
})

const codeOf = (answered: Unanswered): number | undefined => {
  if (answered.kind === 'error') return answered.code
  const isWord = answered.kind === 'refused' && isEraEvidence(answered.status)
  return isWord ? answered.error?.error.code : undefined
}

const lossOf = (answered: Unanswered): FailureDetails => {
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
      if (isOther) return failureOfStatus(answered)
      return failureOfHandshake(error.error.message)
    }
  }
}
