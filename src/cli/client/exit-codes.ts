import { ERRORS, type RpcError, RpcFailure } from '../../protocol/errors.ts'

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
  upstream_protocol: EXIT.protocol,
  upstream_refused: EXIT.protocol,
  too_large: EXIT.protocol,
  upstream_auth: EXIT.unauthorized,
  no_credentials: EXIT.unauthorized,
  login_required: EXIT.unauthorized,
  login_impossible: EXIT.unauthorized,
  login_unavailable: EXIT.unreachable,
}

const HINTS: Readonly<Record<string, string>> = {
  upstream_auth:
    'Pass credentials with --token TOKEN or --header "Name: value". If it uses OAuth, add it to the gateway and run "dragoman login".',
  upstream_timeout: 'Wait longer with --timeout SECONDS.',
}

const NOT_MCP = 'Is this the URL of an MCP server? It often ends in /mcp or /sse.'

/** Whether a server has answered with an error, or in a way that is not MCP: its connection works. */
export const isOwnAnswer = ({ data }: RpcError): boolean =>
  (CODES[data?.get('reason')?.asString() ?? ''] ?? EXIT.protocol) === EXIT.protocol

/** A state as the end of a message. */
export const STATE_WORDS: Readonly<Record<ClientState, string>> = {
  connecting: 'while connecting',
  handshake: 'in the handshake',
  listing: 'while listing',
  calling: 'while calling',
  reading: 'while reading',
  watching: 'while watching',
}

const STATE_OF_REASON: Readonly<Record<string, ClientState>> = {
  upstream_unreachable: 'connecting',
  upstream_timeout: 'handshake',
}

/** By capability: the flag that lets the server ask for it. */
const CAPABILITY_FLAGS: Readonly<Record<string, string>> = {
  sampling: '--sampling-command COMMAND, which answers in place of a model.',
  roots: '--root DIR, a folder that the server may know.',
}

const missingFlag = ({ code, data }: RpcError): string | undefined => {
  if (code !== ERRORS.missingCapability.code) return undefined
  const names = (data?.get('requiredCapabilities')?.entries() ?? []).map(([name]) => name)
  return names.map(name => CAPABILITY_FLAGS[name]).find(flag => flag !== undefined)
}

/** The error that a command ends with after a thrown value; `state` is what it was doing. */
export const toClientError = (thrown: unknown, state: ClientState): ClientError => {
  if (thrown instanceof ClientError) return thrown
  if (!(thrown instanceof RpcFailure)) throw thrown
  const { error } = thrown
  const reason = error.data?.get('reason')?.asString() ?? ''
  const isConnecting = state === 'connecting'
  const words = STATE_WORDS[isConnecting ? (STATE_OF_REASON[reason] ?? 'handshake') : state]
  const code = CODES[reason]
  // An error without such a reason is the server's own answer.
  if (code === undefined) {
    const missing = missingFlag(error)
    const text = `${error.message} (error ${error.code} ${words})`
    return missing === undefined
      ? new ClientError(text, EXIT.protocol, error)
      : new ClientError(`${text}\nPass ${missing}`, EXIT.usage, error)
  }
  const isWrongUrl = reason === 'upstream_protocol' && isConnecting && error.message.startsWith('Server "http')
  const hint = isWrongUrl ? NOT_MCP : HINTS[reason]
  return new ClientError(`${error.message} (${words})${hint ? `\n${hint}` : ''}`, code, error)
}
