import type { Caller } from '../protocol/exchange.ts'
import { isModern, isRevision, NEWEST_LEGACY, OLDEST, type Revision } from '../protocol/revisions.ts'
import { Json } from '../wire/json.ts'
import { type Answered, ask } from './ask.ts'
import { type Loss, lossOfStatus, UpstreamFailure } from './failures.ts'
import { type Link, POST_HEADERS } from './link.ts'

/** What `initialize` settled. */
export interface Handshake {
  readonly revision: Revision
  readonly sessionId: string | undefined
  readonly result: Json // the InitializeResult as it came
  readonly isImplied?: true // the server knows no handshake
}

const METHOD_NOT_FOUND = -32601

/** Opens a legacy conversation as that caller; rejects with UpstreamFailure. */
export const shakeHands = async (link: Link, caller: Caller, id: number): Promise<Handshake> => {
  const params = Json.of({
    protocolVersion: NEWEST_LEGACY,
    capabilities: caller.capabilities,
    clientInfo: caller.info ?? link.identity,
  })
  const answered = await ask(link, [...link.headers, ...POST_HEADERS], 'initialize', params, id)
  if (answered.kind === 'response') return agree(link, answered.result, answered.headers['mcp-session-id'])
  if (codeOf(answered) === METHOD_NOT_FOUND) return withoutHandshake(link)
  const loss = lossOf(answered)
  throw new UpstreamFailure(link.name, loss)
}

const agree = (link: Link, result: Json, sessionId: string | string[] | undefined): Handshake => {
  const version = result.get('protocolVersion')?.asString()
  if (!isRevision(version) || isModern(version)) {
    const text = `answered initialize with protocol version ${version ?? '(none)'}, which this gateway does not know`
    throw new UpstreamFailure(link.name, { reason: 'upstream_protocol', text })
  }
  return { revision: version, sessionId: Array.isArray(sessionId) ? sessionId[0] : sessionId, result }
}

/** Some servers know no handshake and answer requests all the same; tools are what they have. */
const withoutHandshake = (link: Link): Handshake => ({
  revision: OLDEST,
  sessionId: undefined,
  result: Json.of({
    protocolVersion: OLDEST,
    capabilities: { tools: {} },
    serverInfo: { name: link.name, version: 'unknown' },
  }),
  isImplied: true,
})

const codeOf = (answered: Answered): number | undefined => {
  if (answered.kind === 'error') return answered.code
  return answered.kind === 'refused' ? answered.error?.error.code : undefined
}

const lossOf = (answered: Exclude<Answered, { kind: 'response' }>): Loss => {
  switch (answered.kind) {
    case 'lost':
      return answered.loss
    case 'accepted':
      return { reason: 'upstream_protocol', text: 'accepted initialize but sent no answer' }
    case 'error':
      return { reason: 'upstream_protocol', text: `refused initialize: ${answered.message}` }
    case 'refused': {
      const { status, headers, error } = answered
      const isOther = status === 401 || status === 403 || status >= 500 || !error
      if (isOther) return lossOfStatus(status, headers.location)
      return { reason: 'upstream_protocol', text: `refused initialize: ${error.error.message}` }
    }
  }
}
