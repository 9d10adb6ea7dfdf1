// Codes of OAuth errors that other parties send.

const CHARACTERS = /^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,64}$/ // RFC 6749, 5.2
const WORD = /^(?:[a-z_]{1,40}|http_\d{3})$/i // the latter is what the gateway says of an answer without a code
const UNKNOWN = 'unknown_error'
const TEMPORARY: ReadonlySet<string> = new Set(['temporarily_unavailable', 'server_error', 'slow_down'])

/** Whether a member `error` is one: some servers answer with other things in it. */
export const isErrorCode = (error: unknown): error is string => typeof error === 'string' && CHARACTERS.test(error)

/**
 * A code as it may be logged, and be read by a model. Anything else than a word may be an instruction, or repeat a secret that
 * the authorization server was sent. Every registered code is a word.
 */
export const codeText = (code: string): string => (WORD.test(code) ? code : UNKNOWN)

/** Whether the same request may succeed later. */
export const isTemporary = (code: string): boolean => TEMPORARY.has(code)
