import { ERRORS } from '../../protocol/errors.ts'
import type { ResponseEnd } from '../http/response-reader.ts'

const METHOD_NOT_FOUND = ERRORS.methodNotFound.code
const MOST_QUOTED = 1000 // characters of a refusal that are searched
const NAMES_UNKNOWN_SESSION =
  /\b(unknown|invalid|expired|no such|no valid) (mcp[- ])?session|session\b.{0,40}\b(not found|unknown|expired|invalid|terminated|does not exist)/i

/**
 * What servers say that have forgotten a session and do not answer 404, in JSON-RPC or in plain text. 400: "No valid session
 * ID provided", or "Server not initialized" by a new transport of SDK v1; 401: "Session not found" by the Rust SDK.
 */
const SAYS_GONE: Readonly<Record<number, RegExp>> = {
  400: /session|not initialized/i,
  401: NAMES_UNKNOWN_SESSION,
  410: NAMES_UNKNOWN_SESSION,
  503: NAMES_UNKNOWN_SESSION,
}

/** Whether the text of a refusal names a session that the server does not know; it says nothing about credentials then. */
export const namesUnknownSession = (text: string): boolean => NAMES_UNKNOWN_SESSION.test(text.slice(0, MOST_QUOTED))

/** Whether a refusal says that the server does not know the session any more. */
export const isSessionGone = ({ status, error, text = '' }: Extract<ResponseEnd, { kind: 'refused' }>): boolean => {
  if (status === 404) return error?.error.code !== METHOD_NOT_FOUND
  return SAYS_GONE[status]?.test((error?.error.message ?? text).slice(0, MOST_QUOTED)) === true
}
