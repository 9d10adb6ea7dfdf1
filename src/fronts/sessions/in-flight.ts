import type { Abort } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Json } from '../../wire/json/json.ts'
import { idKey } from '../../wire/json-rpc.ts'

const REPEATED_ID = rpcError('invalidRequest', 'A request with this id is still running in this session')
const REPEATED_TOKEN = rpcError(
  'invalidRequest',
  'A request with this progress token is still running in this session: its progress could not be told from yours',
)

interface Call {
  readonly abort: Abort
  readonly token: string | undefined
}

/** The requests of one client that are not answered yet, by their ids; neither those nor progress tokens come twice. */
export class InFlight {
  // Absent while there are none: most sessions are idle most of the time.
  #calls: Map<string, Call> | undefined
  #tokens: Set<string> | undefined

  get size(): number {
    return this.#calls?.size ?? 0
  }

  /** Takes a request in; an error where it cannot be told from one that is running. */
  add(id: Json, params: Json, abort: Abort): RpcError | undefined {
    const [key, token] = [idKey(id), tokenOf(params)]
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

  /** False if it was not there any more. */
  delete(id: Json): boolean {
    const key = idKey(id)
    const call = this.#calls?.get(key)
    if (!call) return false
    if (call.token !== undefined) this.#tokens?.delete(call.token)
    this.#calls?.delete(key)
    if (this.#calls?.size === 0) this.#calls = this.#tokens = undefined
    return true
  }

  /** The client has left. */
  abortAll(): void {
    for (const { abort } of [...(this.#calls?.values() ?? [])]) abort.abort({ kind: 'gone' })
  }
}

const tokenOf = (params: Json): string | undefined => {
  const token = params.at('_meta', 'progressToken')
  return token?.kind === 'string' || token?.kind === 'number' ? idKey(token) : undefined
}
