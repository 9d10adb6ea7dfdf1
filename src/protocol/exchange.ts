import type { Json } from '../wire/json/json.ts'
import type { Signal } from './cancellation.ts'
import type { RpcError } from './errors.ts'
import type { MessageTap } from './message-tap.ts'
import type { LogSeverity } from './methods.ts'
import type { Policy } from './policy.ts'
import type { Revision } from './revisions.ts'

/** One client message on its way through the gateway, with the sink for its answer. */
export interface Exchange {
  readonly kind: 'request' | 'notification' // a notification has no answer
  readonly method: string
  readonly params: Json // always an object; Json.empty where the message had none
  readonly caller: Caller
  readonly signal: Signal
  readonly sink: Sink
  readonly isIdle?: (() => boolean) | undefined // of a standing exchange: true while its session may be closed in favour of another
  readonly hasClient?: (() => boolean) | undefined // of a standing exchange: false while its client seems to be gone
  readonly misses?: number | undefined // how often the replica it was sent to was gone
  readonly login?: LoginProgress | undefined // of a call that was asked for a login before
  readonly task?: TaskWork | undefined // of a request that does the work of a task
  readonly wantsTask?: boolean | undefined // the caller wants a task at once; REST has no other way to say so
  /** Ends the stream of the answer; its client comes back for the rest after that time. Absent where it could not. */
  readonly closeStream?: ((retryMs: number) => void) | undefined
  readonly origin?: RequestOrigin | undefined // absent for requests of the gateway's own
  readonly record?: RequestRecord | undefined // undefined if it is not recorded; fronts write it out, because adding a member costs 2 µs
}

/** Where a request came from; for the audit log, for traces and for the flight recorder. */
export interface RequestOrigin {
  readonly id?: Json | undefined // the client's id of the request; absent over REST
  readonly address?: string | undefined // of the client; absent over stdio
  readonly headers?: Readonly<Record<string, string | string[] | undefined>> | undefined // of the HTTP request
  readonly initialize?: Json | undefined // the params of an `initialize`, which is served as `server/discover`
  tap?: MessageTap | undefined // set while the exchange is recorded: the front passes what it sends to the client
}

/** What is recorded of one request: the layers that it passes call these functions. */
export interface RequestRecord {
  /** A server gets the request; a request such as `logging/setLevel` goes to several. */
  sentTo(server: string): void
  /** The request is served as this call: what is recorded names its tool. */
  calls?(call: Exchange): void
  /** A policy or a missing scope is why the request will fail. The client may not be told. */
  denied(): void
  readonly tap?: MessageTap | undefined // gets what is sent to servers, and what they send
  readonly trace?: RequestTrace | undefined // absent if nothing is to be told to the server
}

/** The trace that a request belongs to. */
export interface RequestTrace {
  /** The `traceparent` of requests over HTTP, if the trace is not recorded; otherwise `send` gives each its own. */
  readonly unrecorded: string | undefined
  /** The exchange as it is sent to a server, with a trace context; the span of that request ends with its response. */
  send(exchange: Exchange, server: string): Exchange
  /** The question as it is asked; its span ends with the answer. */
  ask(question: Question): Question
}

/** What a request that does the work of a task is told, and tells. */
export interface TaskWork {
  readonly ttlMs: number
  readonly serverTask?: string | undefined // that a former process has started at the server: the request is not sent again
  /** The server runs a task of its own for it. */
  started(serverTask: string): void
}

/** A call that a server would serve only after a login of its caller. */
export interface LoginProgress {
  readonly round: number // how often the client was asked
  readonly link?: string | undefined // that it was asked to open last
  readonly wait?: LoginWait | undefined // undefined: it is asked at once if the login is still missing
}

/** `changed` resolves after a change of the caller's login, a while without one, or `stop`. */
export interface LoginWait {
  readonly changed: Promise<void>
  stop(): void
}

/** The client, as the envelope or the handshake describes it. */
export interface Caller {
  readonly workspace: string
  readonly principal: string | undefined // undefined: anonymous, served in isolation
  readonly policy?: Policy | undefined // of the token, in addition to the workspace's
  readonly scopes?: ReadonlySet<string> | undefined // of the token; undefined: all
  readonly revision: Revision
  readonly capabilities: Json
  readonly info?: Json | undefined
  readonly logLevel?: LogSeverity | undefined
  readonly session?: string | undefined // legacy session, SSE channel or pipe
  readonly isNewSession?: true // of `initialize`: no process has a session with a server for it yet
  readonly isTransient?: true // its session ends with its connection or process
  readonly affinity?: string | undefined // keeps conversations of one principal apart at a server with sessions
  readonly isHealthCheck?: true // the gateway itself: its connections hold no state of clients
  readonly headers: ReadonlyMap<string, string> // lower-case names; Mcp-Param-* and trace context only
}

/** A request gets any number of notices and questions, then one result or failure. */
export type Frame =
  | { readonly kind: 'notice'; readonly method: string; readonly params: Json }
  | Question
  | { readonly kind: 'result'; readonly result: Json }
  | { readonly kind: 'failure'; readonly error: RpcError }

/** The frame for a buffer: a notification without the rest of the message that it was read from. */
export const compactFrame = (frame: Frame): Frame =>
  frame.kind === 'notice' ? { ...frame, params: frame.params.compact() } : frame

/** An elicitation, sampling or roots request of the server during a call or a session. */
export interface Question {
  readonly kind: 'question'
  readonly key?: string // the server's own name for it, shown to modern callers
  readonly method: string
  readonly params: Json
  readonly withdrawn: Signal // the server no longer wants the answer
  readonly answer: (reply: Answer) => void
  /** The exchange that carries the question records it, and its answer. */
  readonly recordIn?: (tap: MessageTap) => void
  /** Instead of an answer: the exchange ended before the client answered; the server asks on another exchange. */
  readonly handBack?: () => void
}

export type Answer =
  | { readonly kind: 'result'; readonly result: Json }
  | { readonly kind: 'error'; readonly error: RpcError }
  | { readonly kind: 'progress'; readonly params: Json }

/** A promise means that the reader is slow: the source of this exchange pauses until it settles. */
export type Sink = (frame: Frame) => void | Promise<void>

export type Dispatch = (exchange: Exchange) => void

/** One configured server. `open` probes, connects or leases; the bridge wraps an Upstream and is one. */
export interface Upstream {
  /** `sessionIndex` above 0: a further session of the caller, for a call that cannot wait for the first one. */
  open(caller: Caller, sessionIndex?: number): Promise<Peer>
  /** The peer that `open` would resolve with, if that is known already: a promise costs each call. Undefined: use `open`. */
  knownPeer?(caller: Caller): Peer | undefined
  /**
   * The key of the session that a caller without a session of its own shares with others, so that replicas can agree where
   * it lives; undefined if the caller's requests need no session. A server of unknown era counts as one with sessions.
   */
  sharedKey?(caller: Caller): string | undefined
  /** Serves `subscriptions/listen`: listeners may share one request to the server. Rejects as `open` does. */
  listen?(exchange: Exchange): Promise<void>
  /** The server is back: listens that were lost are sent again at once. */
  relisten?(): void
  /** Takes a request that continues a parked call, without opening anything; false if no call waits for it. */
  resume?(exchange: Exchange): boolean
  /**
   * Asks whether it is there, and neither opens a session nor starts a process for that. False: there is nothing
   * to be asked right now; rejects with RpcFailure where no answer came.
   */
  probe?(): Promise<boolean>
  /** Of a server that this machine runs: the number of its processes. */
  processCount?(): number
  /** Of a server that this machine runs: false if a request of this caller would have to start a process. */
  runsFor?(caller: Caller): boolean
  close(): Promise<void>
}

/** An open connection to a server of one revision. */
export interface Peer {
  readonly revision: Revision
  readonly asks: boolean // may sink question frames; a modern remote server never does
  readonly correlates?: boolean // false: one channel for all, so a question does not tell which call it belongs to
  readonly dispatch: Dispatch
  readonly hasServedUsers?: boolean // true: what it lists may be for those users only; undefined: it has served this caller alone
  readonly runsTasks?: boolean | undefined // its tools may run as tasks of 2025-11-25, or only so
  readonly isReplica?: boolean // another gateway that serves it, and makes tasks of calls itself
  readonly hold?: () => () => void // keeps the session open between requests until the returned function is called
}
