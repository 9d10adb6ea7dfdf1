import { type RpcError, RpcFailure } from '../../protocol/errors.ts'

/** The exit codes of the client commands; `docs/cli.md` lists them. */
export const EXIT = {
  ok: 0,
  toolError: 1, // the tool ran and reported an error
  usage: 2, // invalid arguments or configuration, or a question without an answer
  protocol: 3, // a JSON-RPC error, or a response that is not valid MCP
  unreachable: 4, // no connection, or no answer in time
  unauthorized: 5, // the credentials were rejected
  cancelled: 130, // Ctrl-C
} as const

/** What the client was doing when it failed. */
export type ClientState = 'connecting' | 'handshake' | 'listing' | 'calling' | 'reading' | 'watching'

/** Ends a client command with a message and an exit code. */
export class ClientError extends Error {
  readonly code: number
  readonly rpc: RpcError | undefined // what --json prints

  constructor(message: string, code: number, rpc?: RpcError) {
    super(message)
    this.name = 'ClientError'
    this.code = code
    this.rpc = rpc
  }
}

/** By `data.reason` of an error that the upstream code or the daemon made; any other error is the server's own answer. */
const CODES: Readonly<Record<string, number>> = {
  upstream_unreachable: EXIT.unreachable,
  upstream_timeout: EXIT.unreachable,
  upstream_stream_lost: EXIT.unreachable,
  upstream_lost: EXIT.unreachable,
  upstream_busy: EXIT.unreachable,
  upstream_redirect: EXIT.unreachable,
  unavailable: EXIT.unreachable,
  upstream_auth: EXIT.unauthorized,
  no_credentials: EXIT.unauthorized,
}

const HINTS: Readonly<Record<string, string>> = {
  upstream_auth: 'Pass credentials with --token TOKEN or --header "Name: value".',
}

const STATE_OF_TIMEOUT: Readonly<Record<string, ClientState>> = {
  upstream_unreachable: 'connecting',
  upstream_timeout: 'handshake',
}

/** The error that a command ends with after a thrown value; `state` is what it was doing. */
export const toClientError = (thrown: unknown, state: ClientState): ClientError => {
  if (thrown instanceof ClientError) return thrown
  if (!(thrown instanceof RpcFailure)) throw thrown
  const { error } = thrown
  const reason = error.data?.get('reason')?.asString() ?? ''
  const code = CODES[reason]
  const at = state === 'connecting' ? (STATE_OF_TIMEOUT[reason] ?? 'handshake') : state
  if (code === undefined) return new ClientError(`${error.message} (error ${error.code}, ${at})`, EXIT.protocol, error)
  const hint = HINTS[reason]
  return new ClientError(`${error.message} (${at})${hint ? `\n${hint}` : ''}`, code, error)
}
