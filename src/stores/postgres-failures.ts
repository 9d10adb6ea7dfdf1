/** Why PostgreSQL refused, as far as a caller can act on it. */
export type PostgresFailure =
  | 'conflict' // two transactions met; the same again will do
  | 'busy'
  | 'full'
  | 'unreachable'
  | 'unsure' // the connection was lost while committing
  | 'denied'
  | 'constraint'
  | 'limit' // a key too long for an index and the like
  | 'other'

// By the first characters of the SQLSTATE, the longer ones first.
const STATES: readonly (readonly [string, PostgresFailure])[] = [
  ['40001', 'conflict'],
  ['40P01', 'conflict'],
  ['55P03', 'busy'],
  ['57014', 'busy'],
  ['53100', 'full'],
  ['53200', 'full'],
  ['53300', 'unreachable'],
  ['57P', 'unreachable'],
  ['25P03', 'unreachable'],
  ['08', 'unreachable'],
  ['28', 'denied'],
  ['3D000', 'denied'],
  ['42501', 'denied'],
  ['23', 'constraint'],
  ['54', 'limit'],
]

const SOCKET = /^E(?:CONN|HOST|NET|PIPE|TIMEDOUT|NOENT|ACCES|AI_|NOTFOUND)/
// What the client library says in words only.
const LOST = /connection terminated|timeout exceeded when trying to connect|not queryable|connection ended/i

/** A refusal by PostgreSQL, or by the way to it. */
export class PostgresError extends Error {
  readonly kind: PostgresFailure
  readonly state: string | undefined // SQLSTATE
  constructor(kind: PostgresFailure, message: string, state?: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PostgresError'
    this.kind = kind
    this.state = state
  }
}

const kindOf = (code: string, message: string): PostgresFailure | undefined => {
  const known = STATES.find(([start]) => code.startsWith(start))?.[1]
  if (known) return known
  if (SOCKET.test(code) || LOST.test(message)) return 'unreachable'
  return /^[0-9A-Z]{5}$/.test(code) ? 'other' : undefined
}

/** The same error with its kind, if it came from PostgreSQL or its connection; anything else unchanged. */
export const explained = (error: unknown): unknown => {
  if (!(error instanceof Error) || error instanceof PostgresError) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const kind = kindOf(code, error.message)
  // Several addresses of one host fail together, with an empty message.
  const message = error.message || (error instanceof AggregateError ? String(error.errors[0]) : code)
  return kind ? new PostgresError(kind, message, code || undefined, { cause: error }) : error
}

/** Whether an error is of one of these kinds. */
export const isFailure = (error: unknown, ...kinds: readonly PostgresFailure[]): error is PostgresError =>
  error instanceof PostgresError && kinds.includes(error.kind)
