import { ERRORS } from '../../protocol/errors.ts'
import type { ResponseEnd } from '../http/response-reader.ts'

const METHOD_NOT_FOUND = ERRORS.methodNotFound.code
const MOST_QUOTED = 1000 // characters of a refusal that are searched

/**
 * As servers answer with HTTP 400 that have forgotten a session, in JSON-RPC or in plain text: "No valid session ID
 * provided", or "Server not initialized" by a transport of SDK v1 that is new.
 */
const SAYS_GONE = /session|not initialized/i

/** Whether a refusal says that the server does not know the session any more. */
export const isSessionGone = ({ status, error, text }: Extract<ResponseEnd, { kind: 'refused' }>): boolean => {
  if (status === 404) return error?.error.code !== METHOD_NOT_FOUND
  return status === 400 && SAYS_GONE.test((error?.error.message ?? text ?? '').slice(0, MOST_QUOTED))
}
