import { type ErrorName, type RpcError, RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Json } from '../../wire/json/json.ts'

/** The error a handler throws to answer with a JSON-RPC error instead of a result. */
export const failure = (name: ErrorName, message?: string, data?: Json): RpcFailure =>
  new RpcFailure(rpcError(name, message, data))

/** The message of anything that was thrown. */
export const messageOf = (thrown: unknown): string =>
  (thrown instanceof Error ? thrown.message : String(thrown)) || 'Unknown error'

/** The JSON-RPC error for anything a handler may throw. */
export const toRpcError = (thrown: unknown): RpcError =>
  thrown instanceof RpcFailure ? thrown.error : rpcError('internal', messageOf(thrown))
