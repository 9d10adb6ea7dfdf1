// What the flight recorder shows of exchanges: in the admin API, and in the files that `dragoman replay` plays back. Types only.

/** How an exchange ended; `running`: it has not. */
export type RecordingOutcome = 'running' | 'ok' | 'tool_error' | 'error' | 'denied' | 'cancelled' | 'input_required'

/** One exchange as a row of the list, and the data of the event `recording`. */
export interface RecordingSummary {
  readonly id: string // `order` compares them
  readonly order: number // larger for later ones of the same replica
  readonly at: number // Unix time in milliseconds
  readonly workspace: string
  readonly principal?: string | undefined
  readonly dialect: string // of the client: stateless, streamable, http-sse, stdio, rest
  readonly revision: string // of the client
  readonly client?: string | undefined // name and version that it gave
  readonly method: string
  readonly subject?: string | undefined // the tool, prompt or URI
  readonly servers: readonly RecordedServer[] // that were called, in this order
  readonly outcome: RecordingOutcome
  readonly error?: string | undefined // its message; owners only
  readonly durationMs?: number | undefined // undefined while it runs
  readonly messages: number
  readonly bytes: number // of all messages
  readonly isTranslated: boolean // a server heard another revision than the client spoke
  readonly continues?: string | undefined // the exchange that asked what the request of this one answers
  readonly continuedBy?: string | undefined // the exchange with the answers
}

/** One server that an exchange reached, and how it is spoken to. */
export interface RecordedServer {
  readonly name: string
  readonly dialect?: string | undefined // stateless, streamable, http-sse, stdio or embedded
  readonly revision?: string | undefined
}

/** What a message is, seen from the client's request: a question is a request of the server. */
export type RecordedKind = 'request' | 'notification' | 'result' | 'error' | 'question' | 'answer'

/** One JSON-RPC message, seen from the gateway. */
export interface RecordedMessage {
  readonly atMs: number // since the exchange began
  readonly side: 'client' | 'server'
  readonly server?: string | undefined // of the side `server`
  readonly direction: 'in' | 'out' // `in`: the gateway received it
  readonly kind: RecordedKind
  readonly method?: string | undefined
  readonly key?: string | undefined // joins a question, a notification or a result of one side with that of the other
  readonly headers?: readonly (readonly [string, string])[] | undefined // the ones that MCP defines
  readonly text: string // JSON, or a line about an HTTP error; secrets are replaced, large messages cut
  readonly bytes: number // before that
  readonly isCut: boolean
}

/** One exchange with all its messages. */
export interface Recording extends RecordingSummary {
  readonly all: readonly RecordedMessage[] // oldest first
  readonly dropped: number // messages beyond the limit of one exchange; -1: all those with servers, because it failed in a burst
}

/** The first line of a file with recordings; each further line is a Recording. */
export interface RecordingFileHeader {
  readonly format: 'dragoman-recording'
  readonly version: 1
  readonly gateway: string // its version
  readonly replica?: string | undefined
  readonly exportedAt: number // Unix time in milliseconds
}
