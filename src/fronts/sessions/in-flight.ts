import type { Abort, AbortReason } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { CallTable } from '../../std/call-table.ts'
import { Json } from '../../wire/json/json.ts'
import { idKey } from '../../wire/json-rpc.ts'

const REPEATED_ID = rpcError('invalidRequest', 'A request with this id is still running in this session')
const REPEATED_TOKEN = rpcError(
  'invalidRequest',
  'A request with this progress token is still running in this session; use another token, so that progress can be told apart',
)
/** Of one session: a channel or a pipe accepts requests without waiting for the responses to those before. */
export const MOST_IN_FLIGHT = 1000
const TOO_MANY = rpcError(
  'internal',
  `${MOST_IN_FLIGHT} requests of this session are still running; send this one again when some of them have ended`,
  Json.of({ reason: 'busy' }),
)

interface Call {
  readonly abort: Abort
  readonly token: string | undefined
}

/** The unanswered requests of one client by id; ids and progress tokens are unique among them. */
export class InFlight {
  readonly #calls = new CallTable<string, Call>()
  readonly #tokens = new CallTable<string, true>()

  get size(): number {
    return this.#calls.size
  }

  /** Adds a request; returns an error if its id or progress token is in use, or if too many are running. */
  add(id: Json, params: Json, abort: Abort): RpcError | undefined {
    const [key, token] = [idKey(id), progressTokenOf(params)]
    if (this.#calls.get(key)) return REPEATED_ID
    if (token !== undefined && this.#tokens.get(token)) return REPEATED_TOKEN
    if (this.#calls.size >= MOST_IN_FLIGHT) return TOO_MANY
    this.#calls.add(key, { abort, token })
    if (token !== undefined) this.#tokens.add(token, true)
    return undefined
  }

  get(id: Json): Abort | undefined {
    return this.#calls.get(idKey(id))?.abort
  }

  /** False if the request was not there any more. */
  delete(id: Json): boolean {
    const call = this.#calls.delete(idKey(id))
    if (call?.token !== undefined) this.#tokens.delete(call.token)
    return call !== undefined
  }

  /** Aborts the request that a `notifications/cancelled` names; false if it is not in flight. */
  cancel(params: Json): boolean {
    const id = params.get('requestId')
    const abort = id && this.get(id)
    const text = params.get('reason')?.asString()
    abort?.abort({ kind: 'cancelled', ...(text !== undefined && { text }) })
    return abort !== undefined
  }

  /** Must be called when the session ends in this process. */
  abortAll(reason: AbortReason): void {
    for (const { abort } of this.#calls.values) abort.abort(reason)
  }
}

const progressTokenOf = (params: Json): string | undefined => {
  const token = params.at('_meta', 'progressToken')
  return token?.kind === 'string' || token?.kind === 'number' ? idKey(token) : undefined
}
