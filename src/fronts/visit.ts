import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limits } from '../config/snapshot.ts'
import type { Dispatch } from '../protocol/exchange.ts'
import type { Policy } from '../protocol/policy.ts'
import type { Log } from '../telemetry/log.ts'
import type { Active } from './active.ts'
import type { LogShelf } from './log-shelf.ts'
import type { Ticker } from './ticker.ts'

/** What every dialect of the doors works with. */
export interface House {
  readonly dispatch: Dispatch
  readonly limits: Limits
  readonly log: Log
  readonly ticker: Ticker
  readonly shelf: LogShelf
  readonly active: Active
}

/** One HTTP request that has come in: who, where to, and what it can take back. */
export interface Visit {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly workspace: string
  readonly principal: string | undefined
  readonly policy?: Policy | undefined // of the token
  readonly takesJson: boolean
  readonly takesSse: boolean
}
