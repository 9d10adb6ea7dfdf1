import type { LogLine } from '../telemetry/log-history.ts'
import type { CallActivity } from '../telemetry/server-calls.ts'

/** What the main process tells a worker before anything else. */
export interface WorkerFacts {
  readonly number: number // 2 and up: the main process is the first worker
  readonly port: number // where clients connect
  readonly localSecret: string // a token for programs of the same user on this machine
  readonly file: string | undefined // the configuration file; it may be another one than at the start
  readonly stopped: readonly StoppedServer[]
}

/** A server that its owner has stopped or started, whatever the configuration says. */
export interface StoppedServer {
  readonly server: string
  readonly isStopped: boolean
}

/** What the owner does with one server, for all workers. */
export type ServerOrder =
  | ({ readonly action: 'switch' } & StoppedServer)
  | { readonly action: 'restart' | 'probe'; readonly server: string }

/** Messages of the main process. A `connection` comes with a socket. */
export type MainMessage =
  | { readonly kind: 'start'; readonly facts: WorkerFacts }
  | { readonly kind: 'connection' }
  | { readonly kind: 'wake'; readonly topics: readonly string[] }
  | { readonly kind: 'reload'; readonly file: string | undefined }
  | { readonly kind: 'order'; readonly order: ServerOrder }
  | { readonly kind: 'ask'; readonly id: number; readonly question: string; readonly about: unknown }
  | { readonly kind: 'watch'; readonly isWatched: boolean } // whether a console shows what is recorded
  | { readonly kind: 'stop' }

/** What a worker is busy with; also the sign that it is alive. */
export interface WorkerLoad {
  readonly sessions: number
  readonly channels: number
  readonly calls: number
  readonly streams: number
  readonly parkedCalls: number
  readonly tasks: number
  readonly memoryBytes: number
  readonly idleMs: number
  readonly activity: ReadonlyMap<string, CallActivity> // by server
}

/** Messages of a worker. */
export type WorkerMessage =
  | { readonly kind: 'ready'; readonly replica: string }
  | { readonly kind: 'taken' } // a connection
  | { readonly kind: 'renamed'; readonly replica: string }
  | { readonly kind: 'wake'; readonly topics: readonly string[] }
  | { readonly kind: 'load'; readonly load: WorkerLoad }
  | { readonly kind: 'log'; readonly lines: readonly LogLine[] }
  | { readonly kind: 'audit'; readonly lines: Uint8Array }
  | { readonly kind: 'recordings'; readonly rows: readonly object[]; readonly dropped: number }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }

/** The variable that tells a process that it is a worker. It is removed at once: child processes must not have it. */
export const WORKER_VARIABLE = 'DRAGOMAN_WORKER'
