import { parseExact } from '../exact-json.ts'

export type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A JSON-RPC message as it was received, with the text that it was read from. */
export type ReceivedMessage =
  | { readonly kind: 'result'; readonly id: unknown; readonly result: JsonObject; readonly text: string }
  | { readonly kind: 'error'; readonly id: unknown; readonly error: RpcFailure; readonly text: string }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject; readonly text: string }
  | {
      readonly kind: 'request'
      readonly id: unknown
      readonly method: string
      readonly params: JsonObject
      readonly text: string
    }

/** An error object of JSON-RPC. */
export interface RpcFailure {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** Why a request of this client has no result. */
export class McpError extends Error {
  readonly reason: 'rpc' | 'http' | 'session-lost' | 'network' | 'cancelled' | 'timeout' | 'invalid'
  readonly code: number | undefined // of JSON-RPC
  readonly data: unknown
  readonly text: string | undefined // of the message

  constructor(
    reason: McpError['reason'],
    message: string,
    details: { readonly code?: number; readonly data?: unknown; readonly text?: string } = {},
  ) {
    super(message)
    this.name = 'McpError'
    this.reason = reason
    this.code = details.code
    this.data = details.data
    this.text = details.text
  }
}

/** Reads a message, or the messages of a batch. Throws an McpError for a text that is none. */
export const readMessages = (text: string): readonly ReceivedMessage[] => {
  let value: unknown
  try {
    value = parseExact(text)
  } catch (error) {
    throw new McpError('invalid', `The gateway sent a message that is no JSON. ${(error as Error).message}`, { text })
  }
  const isBatch = Array.isArray(value)
  return (isBatch ? (value as unknown[]) : [value]).map(each =>
    readMessage(each, isBatch ? JSON.stringify(each) : text),
  )
}

const readMessage = (value: unknown, text: string): ReceivedMessage => {
  if (!isObject(value)) throw new McpError('invalid', 'The gateway sent a message that is no JSON-RPC', { text })
  const { id, method, params, result, error } = value
  const given = isObject(params) ? params : {}
  if (typeof method === 'string')
    return id === undefined
      ? { kind: 'notification', method, params: given, text }
      : { kind: 'request', id, method, params: given, text }
  if (isObject(error)) {
    const { code, message, data } = error
    const failure = { code: Number(code), message: typeof message === 'string' ? message : 'no message', data }
    return { kind: 'error', id, error: failure, text }
  }
  return { kind: 'result', id, result: isObject(result) ? result : {}, text }
}

export const rpcFailure = ({ code, message, data }: RpcFailure, text: string): McpError =>
  new McpError('rpc', message, { code, data, text })
