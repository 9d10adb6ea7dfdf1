import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limits } from '../../config/snapshot.ts'
import type { Dispatch } from '../../protocol/exchange.ts'
import type { Policy } from '../../protocol/policy.ts'
import type { Log } from '../../telemetry/log.ts'
import type { KeepAlive } from '../streams/keep-alive.ts'
import type { StreamRetention } from '../streams/stream-retention.ts'
import type { Active } from './active-calls.ts'

/** What every dialect of the doors works with. */
export interface FrontContext {
  readonly dispatch: Dispatch
  readonly limits: Limits
  readonly log: Log
  readonly ticker: KeepAlive
  readonly shelf: StreamRetention
  readonly active: Active
}

/** One HTTP request that has come in: who, where to, and what it can take back. */
export interface FrontRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly workspace: string
  readonly principal: string | undefined
  readonly policy?: Policy | undefined // of the token
  readonly takesJson: boolean
  readonly takesSse: boolean
}
