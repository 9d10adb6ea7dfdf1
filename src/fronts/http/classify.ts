import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { META } from '../../protocol/meta.ts'
import { isModern, isRevision, NEWEST_LEGACY } from '../../protocol/revisions.ts'
import type { Incoming } from '../../wire/json-rpc.ts'
import { acceptsSse } from '../../wire/media-type.ts'

/** Everything the classification of a request depends on. */
interface RequestFacts {
  readonly verb: string
  readonly version: string | undefined // MCP-Protocol-Version
  readonly session: string | undefined // Mcp-Session-Id
  readonly lastEventId: string | undefined
  readonly accept: string | undefined
  readonly incoming: Incoming | undefined // the body of a POST
}

/** The response to a request that is not served. */
export interface HttpRejection {
  readonly status: number
  readonly error: RpcError
}

/** Which dialect serves a request, or why none does. */
type RequestClass =
  | { readonly kind: 'modern' }
  | { readonly kind: 'initialize' }
  | { readonly kind: 'message' } // for a legacy session
  | { readonly kind: 'stream' } // the server-to-client stream of a legacy session
  | { readonly kind: 'resume' }
  | { readonly kind: 'end' }
  | { readonly kind: 'open' } // opens an SSE channel
  | ({ readonly kind: 'sessionless' } & HttpRejection) // for the caller's only channel, otherwise rejected
  | ({ readonly kind: 'reject' } & HttpRejection)

interface Rule {
  readonly when: (facts: RequestFacts) => boolean
  readonly is: RequestClass
}

const reject = (status: number, error: RpcError): RequestClass => ({ kind: 'reject', status, error })
const sessionless = (status: number, error: RpcError): RequestClass => ({ kind: 'sessionless', status, error })

/** An unknown version counts as newer than all known ones, unless a session id shows that the client is legacy. */
const hasModernVersion = ({ version, session }: RequestFacts): boolean =>
  version !== undefined && (isRevision(version) ? isModern(version) : version > NEWEST_LEGACY && session === undefined)

/** A request with a protocol version in its body is modern, whatever the headers say. */
const hasEnvelope = ({ incoming }: RequestFacts): boolean =>
  incoming?.kind === 'request' && incoming.params.at('_meta', META.protocolVersion) !== undefined

/** A browser that opens the URL accepts anything too, but did not ask for an endless stream. */
const wantsChannel = ({ accept = '' }: RequestFacts): boolean =>
  ['', '*/*'].includes(accept.trim()) || (/text\/event-stream/i.test(accept) && acceptsSse(accept))

const NOT_A_MESSAGE = rpcError('invalidRequest')
/** The error for a legacy message without the session id it needs. */
export const NO_SESSION = rpcError('invalidRequest', 'Bad Request: Missing session ID')
const NO_METHOD = rpcError(
  'invalidRequest',
  'Method not allowed: use POST, GET with Accept: text/event-stream, or DELETE with a session',
)
const NO_BATCH = rpcError('invalidRequest', 'Batches need a session: send one message per POST')
const NO_RESPONSE = rpcError('invalidRequest', 'A 2026-07-28 client sends requests and notifications, never responses')
const NO_ENVELOPE = rpcError(
  'invalidParams',
  `params._meta lacks ${META.protocolVersion} and ${META.clientCapabilities}, which every 2026-07-28 request must carry`,
)

/** The first rule that applies decides. */
const RULES: readonly Rule[] = [
  { when: ({ verb, incoming }) => verb === 'POST' && incoming?.kind === 'invalid', is: reject(400, NOT_A_MESSAGE) },
  { when: hasEnvelope, is: { kind: 'modern' } },
  { when: facts => facts.verb !== 'POST' && hasModernVersion(facts), is: reject(405, NO_METHOD) },
  { when: facts => hasModernVersion(facts) && facts.incoming?.kind === 'notification', is: { kind: 'modern' } },
  { when: facts => hasModernVersion(facts) && facts.incoming?.kind === 'batch', is: reject(400, NO_BATCH) },
  { when: facts => hasModernVersion(facts) && facts.incoming?.kind !== 'request', is: reject(400, NO_RESPONSE) },
  { when: hasModernVersion, is: reject(400, NO_ENVELOPE) },
  {
    when: ({ incoming }) => incoming?.kind === 'request' && incoming.method === 'initialize',
    is: { kind: 'initialize' },
  },
  { when: ({ verb, session }) => verb === 'POST' && session !== undefined, is: { kind: 'message' } },
  { when: ({ incoming }) => incoming?.kind === 'batch', is: sessionless(400, NO_BATCH) },
  { when: ({ verb }) => verb === 'POST', is: sessionless(400, NO_SESSION) },
  { when: ({ verb, session }) => verb === 'DELETE' && session !== undefined, is: { kind: 'end' } },
  { when: ({ verb }) => verb === 'DELETE', is: reject(400, NO_SESSION) },
  {
    when: facts => facts.verb === 'GET' && facts.session === undefined && wantsChannel(facts),
    is: { kind: 'open' },
  },
  { when: ({ verb, session }) => verb === 'GET' && session === undefined, is: reject(405, NO_METHOD) },
  { when: ({ verb, lastEventId }) => verb === 'GET' && lastEventId !== undefined, is: { kind: 'resume' } },
  { when: ({ verb }) => verb === 'GET', is: { kind: 'stream' } },
]

const OTHER = reject(405, NO_METHOD)

export const classify = (facts: RequestFacts): RequestClass => RULES.find(({ when }) => when(facts))?.is ?? OTHER
