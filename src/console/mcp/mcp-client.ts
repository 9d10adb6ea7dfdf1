import type { Revision } from '../../protocol/revisions.ts'
import type { JsonObject } from './messages.ts'

/** What a server says about itself. */
export interface ServerAbout {
  readonly serverInfo: JsonObject
  readonly capabilities: JsonObject
  readonly instructions?: string | undefined
  readonly text: string // the message that said so
}

/** A message as it travelled. */
export interface WireLine {
  readonly direction: 'sent' | 'received'
  readonly at: number // Unix time in milliseconds
  readonly text: string
  readonly note?: string | undefined // what the message does not say: the HTTP request, a closed stream
}

export interface CallProgress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export interface LogMessage {
  readonly at: number
  readonly level: string
  readonly logger?: string | undefined
  readonly data: unknown
}

/** A request of the server to the user of this client: elicitation, sampling or roots. */
export interface ServerQuestion {
  readonly key: string // unique within its call
  readonly method: string
  readonly params: JsonObject
  readonly withdrawn: AbortSignal // the server no longer waits for the answer
}

/** `refuse`: an error, for which elicitation has no need and the modern era no message. */
export type QuestionAnswer =
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'refuse'; readonly message: string }

export type AnswerQuestion = (question: ServerQuestion) => Promise<QuestionAnswer>

export interface McpRequestOptions {
  readonly signal?: AbortSignal | undefined // cancels the request, on the wire as the revision says
  readonly inputSchema?: unknown // of the tool that is called: its arguments may be repeated in headers
  readonly onProgress?: ((progress: CallProgress) => void) | undefined
  readonly onLog?: ((message: LogMessage) => void) | undefined
  readonly onQuestion?: AnswerQuestion | undefined
  readonly onWire?: ((line: WireLine) => void) | undefined
  /** Gets what asks the gateway whether a call still waits for its answers; returns what ends that. */
  readonly onWaiting?: ((check: () => void) => () => void) | undefined
}

/** The result of a request, with the text of the message that brought it. */
export interface ReceivedResult {
  readonly result: JsonObject
  readonly text: string
}

/** What a client hears outside of its requests. */
export interface McpClientEvents {
  readonly onListChanged: (list: ChangedList) => void
  readonly onResourceUpdated: (uri: string) => void
  readonly onLog: (message: LogMessage) => void
  readonly onQuestion: AnswerQuestion
  /** Whether the stream that brings these is open. */
  readonly onLive: (isLive: boolean) => void
}

export type ChangedList = 'tools' | 'prompts' | 'resources'

/** A client of one revision, connected to one target. */
export interface McpClient {
  readonly revision: Revision
  connect(): Promise<ServerAbout>
  request(method: string, params: JsonObject, options?: McpRequestOptions): Promise<ReceivedResult>
  /** Sends a notification of sessions; 2026-07-28 has none from clients. */
  notify(method: string): Promise<void>
  /** Begins or ends to watch a resource. */
  watch(uri: string, isOn: boolean): Promise<void>
  close(): void
}

/** How a client reaches the gateway. */
export interface McpEndpoint {
  readonly url: string // of Streamable HTTP; HTTP+SSE adds /sse
  readonly version: string // of the console
  readonly capabilities: JsonObject // that the client declares
  readonly logLevel?: string | undefined // of the messages that servers send; undefined: debug
  readonly token: () => Promise<string | undefined>
  /** Called when the gateway has refused the token: it may have expired. */
  readonly onUnauthorized: () => void
}
