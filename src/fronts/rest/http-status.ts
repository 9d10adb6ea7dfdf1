import { ERRORS, type RpcError } from '../../protocol/errors.ts'
import type { Json } from '../../wire/json/json.ts'

/** HTTP statuses by the error's `data.reason`, which says why a server gave no answer. */
const BY_REASON: ReadonlyMap<string | undefined, number> = new Map([
  ['upstream_unreachable', 502],
  ['upstream_stream_lost', 502],
  ['upstream_lost', 502],
  ['upstream_protocol', 502],
  ['upstream_auth', 502],
  ['upstream_refused', 502],
  ['upstream_redirect', 502],
  ['too_large', 502],
  ['login_required', 424], // not 401, which would be about the caller's own token
  ['login_impossible', 424],
  ['login_unavailable', 503],
  ['quarantined', 403],
  ['pins_unavailable', 503],
  ['upstream_timeout', 504],
  ['upstream_busy', 503],
  ['unavailable', 503],
  ['store_away', 503],
  ['too_many_tasks', 429],
])

const BY_CODE: ReadonlyMap<number, number> = new Map([
  [ERRORS.methodNotFound.code, 404], // the server has no tools at all
  [ERRORS.invalidParams.code, 422],
  [ERRORS.missingCapability.code, 501], // the tool needs a client that can answer questions
  [ERRORS.urlElicitationRequired.code, 501], // the tool needs a user who opens a page first
])

/** The HTTP status of a call that failed at its server; 502 if nothing more is known. */
export const statusOfFailure = ({ code, data }: RpcError): number => {
  if (data?.has('requiredCapabilities')) return 501
  return BY_REASON.get(data?.get('reason')?.asString()) ?? BY_CODE.get(code) ?? 502
}

/** The Retry-After header, if the server said when to retry. */
export const retryHeaders = ({ data }: RpcError): Record<string, string> | undefined => {
  const ms = data?.get('retryAfterMs')?.asNumber()
  const isTime = ms !== undefined && ms >= 0 && Number.isFinite(ms) // the value comes from a server
  return isTime ? { 'retry-after': String(Math.ceil(ms / 1000)) } : undefined
}

/** Wrong arguments and an unknown tool have the same code; only the list of tools distinguishes them. */
export const maybeUnknownTool = (error: RpcError): boolean => statusOfFailure(error) === 422

const UNKNOWN_WORDS = /not found|unknown|no such|does not exist|not exist/i

/** True for a tool result that reads like `unknown tool`: some servers report it that way. */
export const soundsUnknown = (result: Json, tool: string): boolean => {
  if (result.get('isError')?.asBoolean() !== true) return false
  const text = result.get('content')?.elements()[0]?.get('text')?.asString() ?? ''
  return text.length < 500 && text.includes(tool) && UNKNOWN_WORDS.test(text)
}

/** True for a result that asks the client for input instead of ending the call. */
export const isQuestion = (result: Json): boolean =>
  result.get('resultType')?.asString() === 'input_required' ||
  (!result.has('content') && (result.has('inputRequests') || result.has('requestState')))
