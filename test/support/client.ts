import type { Notices } from './notices.ts'

/** How a client asks for the revision it speaks. */
export type ClientKind = 'SDK v1' | 'SDK v2 auto' | 'SDK v2 modern' | 'SDK v2 legacy'

/** A question as the client received it. */
export interface Asked {
  readonly method: 'elicitation/create' | 'sampling/createMessage' | 'roots/list'
  readonly params: Readonly<Record<string, unknown>>
}

/** What the person, the model and the host behind a client answer. */
export type Answerer = (asked: Asked) => Record<string, unknown> | Promise<Record<string, unknown>>

/** A tool's result, as far as tests look at it. */
export interface CallResult {
  readonly content: readonly Readonly<Record<string, unknown>>[]
  readonly isError: boolean
}

/** What a call may be given besides its arguments. */
export interface CallOptions {
  readonly onProgress?: (progress: {
    progress: number
    total?: number | undefined
    message?: string | undefined
  }) => void
  readonly signal?: AbortSignal
  readonly meta?: Readonly<Record<string, unknown>>
}

/** A real SDK client, in the words both SDKs share. */
export interface TestClient {
  readonly era: 'legacy' | 'modern'
  readonly serverName: string | undefined
  /** Every question it was asked, oldest first. */
  readonly asked: readonly Asked[]
  readonly notices: Notices
  /** The requests it made, with method and headers. */
  readonly requests: readonly { method: string; headers: Headers }[]
  toolNames(): Promise<string[]>
  promptNames(): Promise<string[]>
  resourceUris(): Promise<string[]>
  templates(): Promise<string[]>
  call(name: string, given?: Record<string, unknown>, options?: CallOptions): Promise<CallResult>
  read(uri: string): Promise<string>
  prompt(name: string, given?: Record<string, string>): Promise<string>
  complete(prompt: string, argument: string, typed: string): Promise<string[]>
  /** Asks to hear of list changes and of changes of this resource; resolves when the server has agreed. */
  watch(uri: string): Promise<{ readonly lost: Promise<void> }>
  /** Of a legacy client. */
  setLevel(level: 'debug' | 'error'): Promise<void>
  close(): Promise<void>
}

/** How a client is made. */
export interface ClientOptions {
  readonly url: string
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** HTTP+SSE instead of Streamable HTTP. */
  readonly sse?: boolean
  readonly capabilities?: Record<string, object>
  readonly answer?: Answerer
  /** Reconnects soon and often, where the SDK gives up after two attempts. */
  readonly persistent?: boolean
}

/** How the SDKs reconnect, for a client that is persistent. */
export const PERSISTENT = {
  reconnectionOptions: {
    initialReconnectionDelay: 50,
    maxReconnectionDelay: 500,
    reconnectionDelayGrowFactor: 1.5,
    maxRetries: 100,
  },
}

/** Everything a client can be asked. */
export const ALL_CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} }

/** Answers every form with `Ada`, every prompt with `Paris`, and has one root. */
export const obliging: Answerer = ({ method, params }) => {
  if (method === 'roots/list') return { roots: [{ uri: 'file:///home/ada', name: 'Home' }] }
  if (method === 'sampling/createMessage')
    return { role: 'assistant', model: 'a-model', content: { type: 'text', text: 'Paris' } }
  const { properties } = params.requestedSchema as { properties: Record<string, { type: string }> }
  const fields = Object.entries(properties).map(([name, { type }]) => [name, type === 'boolean' ? true : 'Ada'])
  return { action: 'accept', content: Object.fromEntries(fields) }
}

/** All text of a tool's result. */
export const textOf = ({ content }: CallResult): string => content.map(({ text }) => text ?? '').join('\n')

/** A fetch that keeps what was asked for, and tells when a GET stream is open. */
export const recordingFetch = (): {
  fetch: typeof fetch
  requests: { method: string; headers: Headers }[]
  streamOpened: Promise<void>
} => {
  const requests: { method: string; headers: Headers }[] = []
  let opened = () => {}
  const streamOpened = new Promise<void>(resolve => {
    opened = resolve
  })
  return {
    requests,
    streamOpened,
    fetch: async (input, init) => {
      const method = init?.method ?? 'GET'
      requests.push({ method, headers: new Headers(init?.headers) })
      const response = await fetch(input, init)
      if (method === 'GET' && response.ok) opened()
      return response
    },
  }
}
