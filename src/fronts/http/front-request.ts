import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limits } from '../../config/snapshot.ts'
import { clientAddressOf, quotaOwner, type RequestInfo } from '../../protocol/admission.ts'
import type { Dispatch } from '../../protocol/exchange.ts'
import type { Policy } from '../../protocol/policy.ts'
import type { StateKeys } from '../../stores/state/secret.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { KeepAlive } from '../streams/keep-alive.ts'
import type { StreamRetention } from '../streams/stream-retention.ts'
import type { ActiveCalls } from './active-calls.ts'

/** What every front works with; `dispatch` counts the calls of one dialect. */
export interface FrontContext {
  readonly dispatch: Dispatch
  readonly limits: Limits
  readonly log: Log
  readonly keepAlive: KeepAlive
  readonly retention: StreamRetention
  readonly activeCalls: ActiveCalls
  readonly scopeChallenge?: ScopeChallenge | undefined // undefined: no token has scopes
}

/** The WWW-Authenticate header for a request whose token lacks scopes. */
export type ScopeChallenge = (request: RequestInfo, held: ReadonlySet<string>, missing: readonly string[]) => string

/** Where HTTP fronts keep what outlives a process, and the keys that replicas share. */
export interface FrontState {
  readonly store: StateStore
  readonly keys: StateKeys
  readonly isLasting: boolean // false: nothing outlives the process, and fronts store nothing
  /** The replica where all sessions of a workspace live; undefined: the one that a client reaches. */
  readonly homeFor?: ((workspace: string) => string | undefined) | undefined
}

/** An HTTP request whose caller has been admitted to a workspace. */
export interface FrontRequest {
  readonly raw: IncomingMessage
  readonly response: ServerResponse
  readonly workspace: string
  readonly principal: string | undefined
  readonly policy?: Policy | undefined // of the token
  readonly policyName?: string | undefined
  readonly scopes?: ReadonlySet<string> | undefined // of the token; undefined: all
  readonly expires?: number | undefined // of the token: standing streams end then
  readonly token?: string | undefined // its id
  readonly address?: string | undefined // of the client, if another replica has forwarded the request
  readonly acceptsJson: boolean
  readonly acceptsSse: boolean
}

/** The workspaces and servers of the current configuration, as each caller may see them. */
export interface WorkspaceDirectory {
  readonly workspaces: () => readonly string[]
  readonly visibleTo: (request: IncomingMessage) => readonly string[] | Promise<readonly string[]>
  /** Undefined if there is no such workspace. */
  readonly serversOf: (workspace: string, policy: Policy | undefined) => readonly string[] | undefined
}

/** The owner whose quota sessions, channels and stream logs of this request count for. */
export const requestOwner = (request: FrontRequest): string => quotaOwner(request.principal, clientAddress(request))

/** The address of the client. */
export const clientAddress = ({ address, raw }: FrontRequest): string | undefined => address ?? clientAddressOf(raw)
