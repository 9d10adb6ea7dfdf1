import type { Exchange, Frame } from '../protocol/exchange.ts'
import { hideSecrets } from '../telemetry/log.ts'

// What the audit log and traces say about a request, besides the names in its caller. Pure.

/** How a request ended. */
export interface RequestOutcome {
  readonly outcome: 'ok' | 'tool_error' | 'input_required' | 'denied' | 'error' | 'cancelled'
  readonly code?: number | undefined // of the JSON-RPC error
  readonly reason?: string | undefined // of a failure, or why it was cancelled
}

/** What a request names: one of these, or nothing. */
export interface RequestTarget {
  readonly kind: 'tool' | 'prompt' | 'resource'
  readonly name: string
}

const OK: RequestOutcome = { outcome: 'ok' }
const TOOL_ERROR: RequestOutcome = { outcome: 'tool_error' }
const INPUT_REQUIRED: RequestOutcome = { outcome: 'input_required' }
const REASON = /^[a-z_]{1,40}$/

/** The outcome of the frame that ends a request. */
export const outcomeOf = (method: string, frame: Frame, isDenied: boolean): RequestOutcome => {
  if (frame.kind === 'result') {
    if (method === 'tools/call' && frame.result.get('isError')?.asBoolean() === true) return TOOL_ERROR
    return frame.result.get('resultType')?.isString('input_required') ? INPUT_REQUIRED : OK
  }
  if (frame.kind !== 'failure') return OK
  const { code, data } = frame.error
  const given = data?.get('reason')?.asString()
  const reason = given !== undefined && REASON.test(given) ? given : undefined
  return { outcome: isDenied || reason === 'insufficient_scope' ? 'denied' : 'error', code, reason }
}

/** The server that a failure names; a server may claim any text. */
export const blamedServer = (frame: Frame): string | undefined =>
  frame.kind === 'failure' ? frame.error.data?.get('upstream')?.asString() : undefined

const KINDS: ReadonlyMap<string, RequestTarget['kind']> = new Map([
  ['tools/call', 'tool'],
  ['prompts/get', 'prompt'],
  ['resources/read', 'resource'],
  ['resources/subscribe', 'resource'],
  ['resources/unsubscribe', 'resource'],
])

/** The tool, prompt or resource that a request names. */
export const requestTarget = ({ method, params }: Exchange): RequestTarget | undefined => {
  const kind = KINDS.get(method)
  const name = kind && params.get(kind === 'resource' ? 'uri' : 'name')?.asString()
  if (name === undefined || kind === undefined) return undefined
  return { kind, name: kind === 'resource' ? safeUri(name) : auditText(name) }
}

const LONGEST = 256
const SHORTEST_SECRET = 16 // of those that `hideSecrets` finds

/** A text of a client: cut, and without credentials. */
export const auditText = (text: string): string => {
  if (text.length < SHORTEST_SECRET) return text
  const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
  return SUSPICIOUS.test(shown) ? hideSecrets(shown) : shown
}

const SUSPICIOUS = /dr[gork]_|bearer|basic/i
const CREDENTIALS = /^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i
const QUERY = /[?#].*$/s

/** A URI without the parts that often hold a secret: user, password, query and fragment. */
const safeUri = (uri: string): string => auditText(uri.replace(CREDENTIALS, '$1').replace(QUERY, '?…'))
