import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { META } from '../../protocol/meta.ts'
import { isModern, isRevision, NEWEST_LEGACY } from '../../protocol/revisions.ts'
import type { Incoming } from '../../wire/json-rpc.ts'
import { acceptsSse } from '../../wire/media-type.ts'

/** Everything a verdict may depend on. */
export interface Seen {
  readonly verb: string
  readonly version: string | undefined // MCP-Protocol-Version
  readonly session: string | undefined // Mcp-Session-Id
  readonly lastEventId: string | undefined
  readonly accept: string | undefined
  readonly incoming: Incoming | undefined // the body of a POST
}

/** The answer that turns a request away. */
export interface Refusal {
  readonly status: number
  readonly error: RpcError
}

/** Which dialect serves a request, or how it is turned away. */
export type Verdict =
  | { readonly kind: 'modern' }
  | { readonly kind: 'initialize' }
  | { readonly kind: 'message' } // into a legacy session
  | { readonly kind: 'stream' } // its server-to-client stream
  | { readonly kind: 'resume' }
  | { readonly kind: 'end' }
  | { readonly kind: 'open' } // an SSE channel
  | ({ readonly kind: 'loose' } & Refusal) // for the caller's one channel, or refused
  | ({ readonly kind: 'refuse' } & Refusal)

interface Row {
  readonly when: (seen: Seen) => boolean
  readonly verdict: Verdict
}

const refuse = (status: number, error: RpcError): Verdict => ({ kind: 'refuse', status, error })
const loose = (status: number, error: RpcError): Verdict => ({ kind: 'loose', status, error })

/** A version nobody knows counts as newer than all, unless a session shows that its sender is legacy. */
const hasModernVersion = ({ version, session }: Seen): boolean =>
  version !== undefined && (isRevision(version) ? isModern(version) : version > NEWEST_LEGACY && session === undefined)

/** A request that carries its own protocol version claims to be modern, whatever the headers say. */
const hasClaim = ({ incoming }: Seen): boolean =>
  incoming?.kind === 'request' && incoming.params.at('_meta', META.protocolVersion) !== undefined

/** A browser that opens the page takes anything too, but has not asked for a stream that never ends. */
const wantsChannel = ({ accept = '' }: Seen): boolean =>
  ['', '*/*'].includes(accept.trim()) || (/text\/event-stream/i.test(accept) && acceptsSse(accept))

const NOT_A_MESSAGE = rpcError('invalidRequest')
/** The answer to a legacy message that names no session where it must. */
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

/** Read from the top; the first row that holds decides. */
const ROWS: readonly Row[] = [
  { when: seen => seen.verb === 'POST' && seen.incoming?.kind === 'invalid', verdict: refuse(400, NOT_A_MESSAGE) },
  { when: hasClaim, verdict: { kind: 'modern' } },
  { when: seen => seen.verb !== 'POST' && hasModernVersion(seen), verdict: refuse(405, NO_METHOD) },
  { when: seen => hasModernVersion(seen) && seen.incoming?.kind === 'notification', verdict: { kind: 'modern' } },
  { when: seen => hasModernVersion(seen) && seen.incoming?.kind === 'batch', verdict: refuse(400, NO_BATCH) },
  { when: seen => hasModernVersion(seen) && seen.incoming?.kind !== 'request', verdict: refuse(400, NO_RESPONSE) },
  { when: hasModernVersion, verdict: refuse(400, NO_ENVELOPE) },
  {
    when: ({ incoming }) => incoming?.kind === 'request' && incoming.method === 'initialize',
    verdict: { kind: 'initialize' },
  },
  { when: seen => seen.verb === 'POST' && seen.session !== undefined, verdict: { kind: 'message' } },
  { when: seen => seen.incoming?.kind === 'batch', verdict: loose(400, NO_BATCH) },
  { when: seen => seen.verb === 'POST', verdict: loose(400, NO_SESSION) },
  { when: seen => seen.verb === 'DELETE' && seen.session !== undefined, verdict: { kind: 'end' } },
  { when: seen => seen.verb === 'DELETE', verdict: refuse(400, NO_SESSION) },
  { when: seen => seen.verb === 'GET' && seen.session === undefined && wantsChannel(seen), verdict: { kind: 'open' } },
  { when: seen => seen.verb === 'GET' && seen.session === undefined, verdict: refuse(405, NO_METHOD) },
  { when: seen => seen.verb === 'GET' && seen.lastEventId !== undefined, verdict: { kind: 'resume' } },
  { when: seen => seen.verb === 'GET', verdict: { kind: 'stream' } },
]

const OTHER = refuse(405, NO_METHOD)

export const classify = (seen: Seen): Verdict => ROWS.find(row => row.when(seen))?.verdict ?? OTHER
