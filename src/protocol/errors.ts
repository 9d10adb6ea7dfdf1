import type { Json } from '../wire/json/json.ts'

/** A JSON-RPC error. */
export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: Json | undefined
}

/** The parts of an error that other callers may see. */
interface ErrorSummary {
  readonly summary?: string // the message without the retry time and without text meant for one caller
  readonly retryMs?: number | undefined // time until a retry can succeed
  readonly isClosing?: boolean | undefined // the gateway itself has ended the connection or the session
}

/** The error for a server that gave no answer; `data` says why. */
export class NoAnswer implements RpcError {
  readonly code: number
  readonly message: string
  readonly data: Json | undefined
  readonly summary: string
  readonly retryMs: number | undefined
  readonly isClosing: boolean

  constructor({ code, message, data }: RpcError, { summary = message, retryMs, isClosing }: ErrorSummary = {}) {
    this.code = code
    this.message = message
    this.data = data
    this.summary = summary
    this.retryMs = retryMs
    this.isClosing = isClosing === true
  }
}

interface ErrorInfo {
  readonly code: number
  readonly legacy: number // HTTP status when it is the whole answer to a legacy POST
  readonly modern: number // HTTP status when it is the whole answer to a modern POST
  readonly message: string
}

/** The errors of the specification: code, HTTP status per era, default message. */
export const ERRORS = {
  parse: { code: -32700, legacy: 400, modern: 400, message: 'Parse error: the body is not valid JSON' },
  invalidRequest: { code: -32600, legacy: 400, modern: 400, message: 'Invalid Request: not a JSON-RPC 2.0 message' },
  methodNotFound: { code: -32601, legacy: 200, modern: 404, message: 'Method not found' },
  invalidParams: { code: -32602, legacy: 200, modern: 200, message: 'Invalid params' },
  internal: { code: -32603, legacy: 200, modern: 200, message: 'Internal error' },
  headerMismatch: { code: -32020, legacy: 400, modern: 400, message: 'Header mismatch' },
  missingCapability: { code: -32021, legacy: 400, modern: 400, message: 'Missing required client capability' },
  unsupportedVersion: { code: -32022, legacy: 400, modern: 400, message: 'Unsupported protocol version' },
  // Of legacy revisions only.
  resourceNotFound: { code: -32002, legacy: 200, modern: 200, message: 'Resource not found' },
  urlElicitationRequired: { code: -32042, legacy: 200, modern: 200, message: 'The user must open a URL first' },
} as const satisfies Record<string, ErrorInfo>

export type ErrorName = keyof typeof ERRORS

/** Creates an error; the message says what happened and what to do. */
export const rpcError = (name: ErrorName, message: string = ERRORS[name].message, data?: Json): RpcError => ({
  code: ERRORS[name].code,
  message,
  data,
})

const STATUS = new Map<number, ErrorInfo>(Object.values(ERRORS).map(row => [row.code, row]))

/** The HTTP status of an error that is the first and only frame of a response. */
export const statusOf = (error: RpcError, era: 'legacy' | 'modern'): number => STATUS.get(error.code)?.[era] ?? 200

/** The message of a thrown value, without text meant for one caller. */
export const summaryOf = (error: unknown): string => {
  if (error instanceof RpcFailure && error.error instanceof NoAnswer) return error.error.summary
  return error instanceof Error ? error.message : String(error)
}

/** Thrown if the caller is to get exactly this error. */
export class RpcFailure extends Error {
  readonly error: RpcError

  constructor(error: RpcError) {
    super(error.message)
    this.error = error
  }
}
