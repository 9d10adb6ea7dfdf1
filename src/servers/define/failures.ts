import { type ErrorName, type RpcError, RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Json } from '../../wire/json/json.ts'

/** What a handler throws to answer with a JSON-RPC error instead of a result. */
export const failure = (name: ErrorName, message?: string, data?: Json): RpcFailure =>
  new RpcFailure(rpcError(name, message, data))

/** Why a question got no answer that can be used. */
export type AskFailureKind = 'refused' | 'withdrawn' | 'malformed'

/** Thrown by `ask`: the client answered with an error or with nonsense, or the call ended first. */
export class AskFailure extends Error {
  readonly kind: AskFailureKind
  readonly key: string
  readonly error: RpcError | undefined // what the client said, where it refused

  constructor(kind: AskFailureKind, key: string, message: string, error?: RpcError) {
    super(message)
    this.kind = kind
    this.key = key
    this.error = error
  }
}

/** What went wrong, in words; whatever was thrown. */
export const messageOf = (thrown: unknown): string =>
  (thrown instanceof Error ? thrown.message : String(thrown)) || 'Unknown error'

/** The JSON-RPC error for anything a handler may throw. */
export const toRpcError = (thrown: unknown): RpcError =>
  thrown instanceof RpcFailure ? thrown.error : rpcError('internal', messageOf(thrown))
