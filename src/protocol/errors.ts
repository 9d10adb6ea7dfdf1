import type { Json } from '../wire/json/json.ts'

/** A JSON-RPC error as it travels. */
export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: Json | undefined
}

/** What is kept of an error for other callers: what happened, and when the server is tried again. */
interface ErrorSummary {
  readonly summary?: string // the message without the retry time and without what is for this caller alone
  readonly retryMs?: number | undefined // until another try can help
}

/** An error that is not a server's own word: it gave no answer, and `data` says why. */
export class NoAnswer implements RpcError {
  readonly code: number
  readonly message: string
  readonly data: Json | undefined
  readonly summary: string
  readonly retryMs: number | undefined

  constructor({ code, message, data }: RpcError, { summary = message, retryMs }: ErrorSummary = {}) {
    this.code = code
    this.message = message
    this.data = data
    this.summary = summary
    this.retryMs = retryMs
  }
}

interface Row {
  readonly code: number
  readonly legacy: number // HTTP status when it is the whole answer to a legacy POST
  readonly modern: number // HTTP status when it is the whole answer to a modern POST
  readonly message: string
}

/** Every error we make ourselves: name → code, HTTP status per era, default message. */
export const ERRORS = {
  parse: { code: -32700, legacy: 400, modern: 400, message: 'Parse error: the body is not valid JSON' },
  invalidRequest: { code: -32600, legacy: 400, modern: 400, message: 'Invalid Request: not a JSON-RPC 2.0 message' },
  methodNotFound: { code: -32601, legacy: 200, modern: 404, message: 'Method not found' },
  invalidParams: { code: -32602, legacy: 200, modern: 200, message: 'Invalid params' },
  internal: { code: -32603, legacy: 200, modern: 200, message: 'Internal error' },
  headerMismatch: { code: -32020, legacy: 400, modern: 400, message: 'Header mismatch' },
  missingCapability: { code: -32021, legacy: 400, modern: 400, message: 'Missing required client capability' },
  unsupportedVersion: { code: -32022, legacy: 400, modern: 400, message: 'Unsupported protocol version' },
} as const satisfies Record<string, Row>

export type ErrorName = keyof typeof ERRORS

/** Makes an error of a name; the message says what happened and what to do. */
export const rpcError = (name: ErrorName, message: string = ERRORS[name].message, data?: Json): RpcError => ({
  code: ERRORS[name].code,
  message,
  data,
})

const STATUS = new Map<number, Row>(Object.values(ERRORS).map(row => [row.code, row]))

/** The HTTP status of an error from a server or from us that is the first and only frame of an answer. */
export const statusOf = (error: RpcError, era: 'legacy' | 'modern'): number => STATUS.get(error.code)?.[era] ?? 200

/** The message of whatever was thrown, fit for others than the caller it was thrown for. */
export const summaryOf = (error: unknown): string => {
  if (error instanceof RpcFailure && error.error instanceof NoAnswer) return error.error.summary
  return error instanceof Error ? error.message : String(error)
}

/** Thrown where the caller shall see exactly this error. */
export class RpcFailure extends Error {
  readonly error: RpcError

  constructor(error: RpcError) {
    super(error.message)
    this.error = error
  }
}
