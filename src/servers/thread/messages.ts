import type { AbortReason } from '../../protocol/cancellation.ts'
import type { Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import type { OperationRefusal } from '../../protocol/operation-error.ts'
import { Json } from '../../wire/json/json.ts'

/** A request on its way to the thread; JSON is sent as bytes. */
export interface ThreadCall {
  readonly method: string
  readonly params: Uint8Array
  readonly caller: ThreadCaller
}

/** The members of a caller that a built-in server reads. No policy: the workspace has applied it before. */
type ThreadCaller = Pick<
  Caller,
  'workspace' | 'principal' | 'revision' | 'logLevel' | 'session' | 'affinity' | 'headers'
> & { readonly capabilities: Uint8Array }

/** A frame on its way back. A server in a thread cannot ask questions. */
export type ThreadFrame =
  | { readonly kind: 'notice'; readonly method: string; readonly params: Uint8Array }
  | { readonly kind: 'result'; readonly result: Uint8Array }
  | {
      readonly kind: 'failure'
      readonly code: number
      readonly message: string
      readonly data: Uint8Array | undefined
    }

export type ToThread =
  | { readonly kind: 'call'; readonly id: number; readonly call: ThreadCall }
  | { readonly kind: 'abort'; readonly id: number; readonly reason: AbortReason }
  | { readonly kind: 'ready'; readonly id: number } // the client took the last notification and can take the next
  | { readonly kind: 'invoke'; readonly id: number; readonly operation: string; readonly args: readonly unknown[] }
  | { readonly kind: 'close' }

/** The result of an operation. Values are cloned; a stream is moved to the other thread. */
export type OperationResult =
  | { readonly kind: 'returned'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refused'; readonly id: number; readonly refusal: OperationRefusal; readonly message: string }

export const LEVELS = ['debug', 'info', 'warn', 'error'] as const

export type FromThread =
  | { readonly kind: 'started' }
  | { readonly kind: 'frame'; readonly id: number; readonly frame: ThreadFrame }
  | {
      readonly kind: 'log'
      readonly level: (typeof LEVELS)[number]
      readonly fields: object
      readonly message: string
    }
  | OperationResult
  | { readonly kind: 'closed' }

export const packCall = ({ method, params, caller }: Exchange): ThreadCall => {
  const { workspace, principal, revision, capabilities, logLevel, session, affinity, headers } = caller
  return {
    method,
    params: bytesOf(params),
    caller: {
      workspace,
      principal,
      revision,
      capabilities: bytesOf(capabilities),
      logLevel,
      session,
      affinity,
      headers,
    },
  }
}

export const unpackCall = ({ method, params, caller }: ThreadCall): Pick<Exchange, 'method' | 'params' | 'caller'> => ({
  method,
  params: jsonOf(params),
  caller: { ...caller, capabilities: jsonOf(caller.capabilities) },
})

export const packFrame = (frame: Frame): ThreadFrame => {
  switch (frame.kind) {
    case 'notice':
      return { kind: 'notice', method: frame.method, params: bytesOf(frame.params) }
    case 'result':
      return { kind: 'result', result: bytesOf(frame.result) }
    case 'failure': {
      const { code, message, data } = frame.error
      return { kind: 'failure', code, message, data: data && bytesOf(data) }
    }
    case 'question':
      throw new Error(`A server in a thread cannot ask questions (${frame.method})`)
  }
}

export const unpackFrame = (frame: ThreadFrame): Frame => {
  switch (frame.kind) {
    case 'notice':
      return { kind: 'notice', method: frame.method, params: jsonOf(frame.params) }
    case 'result':
      return { kind: 'result', result: jsonOf(frame.result) }
    case 'failure': {
      const { code, message, data } = frame
      return { kind: 'failure', error: { code, message, data: data && jsonOf(data) } }
    }
  }
}

/** Compacted first: a message clones the whole buffer of a view, so a small value would carry its whole request. */
const bytesOf = (json: Json): Uint8Array => json.compact().toBytes()

const jsonOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Json =>
  Json.written(Buffer.from(buffer, byteOffset, byteLength))
