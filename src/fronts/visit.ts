import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limits } from '../config/snapshot.ts'
import type { RpcError } from '../protocol/errors.ts'
import type { Dispatch } from '../protocol/exchange.ts'
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
  readonly takesJson: boolean
  readonly takesSse: boolean
}

/** Who a request is from, or the answer that keeps it out before its body is read. */
export type Admission =
  | { readonly kind: 'in'; readonly principal: string | undefined }
  | {
      readonly kind: 'out'
      readonly status: number
      readonly error: RpcError
      readonly headers?: Readonly<Record<string, string>>
    }

/** Decides who may come into a workspace; handed in by the composition root. */
export type Admit = (request: IncomingMessage, workspace: string) => Admission | Promise<Admission>
