import type { Abort, AbortReason } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Json } from '../../wire/json/json.ts'
import { idKey } from '../../wire/json-rpc.ts'

const REPEATED_ID = rpcError('invalidRequest', 'A request with this id is still running in this session')
const REPEATED_TOKEN = rpcError(
  'invalidRequest',
  'A request with this progress token is still running in this session; use another token, so that progress can be told apart',
)

interface Call {
  readonly abort: Abort
  readonly token: string | undefined
}

/** The unanswered requests of one client by id; ids and progress tokens are unique among them. */
export class InFlight {
  // Absent while empty: most sessions are idle most of the time.
  #calls: Map<string, Call> | undefined
  #tokens: Set<string> | undefined

  get size(): number {
    return this.#calls?.size ?? 0
  }

  /** Adds a request; returns an error if its id or progress token is in use. */
  add(id: Json, params: Json, abort: Abort): RpcError | undefined {
    const [key, token] = [idKey(id), progressTokenOf(params)]
    if (this.#calls?.has(key)) return REPEATED_ID
    if (token !== undefined && this.#tokens?.has(token)) return REPEATED_TOKEN
    this.#calls ??= new Map()
    this.#calls.set(key, { abort, token })
    if (token !== undefined) this.#tokens = (this.#tokens ?? new Set()).add(token)
    return undefined
  }

  get(id: Json): Abort | undefined {
    return this.#calls?.get(idKey(id))?.abort
  }

  /** False if the request was not there any more. */
  delete(id: Json): boolean {
    const key = idKey(id)
    const call = this.#calls?.get(key)
    if (!call) return false
    if (call.token !== undefined) this.#tokens?.delete(call.token)
    this.#calls?.delete(key)
    if (this.#calls?.size === 0) this.#calls = this.#tokens = undefined
    return true
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
    for (const { abort } of [...(this.#calls?.values() ?? [])]) abort.abort(reason)
  }
}

const progressTokenOf = (params: Json): string | undefined => {
  const token = params.at('_meta', 'progressToken')
  return token?.kind === 'string' || token?.kind === 'number' ? idKey(token) : undefined
}
