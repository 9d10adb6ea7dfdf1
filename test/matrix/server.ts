import type { ServerConfig } from '../../src/config/snapshot.ts'
import type { Revision } from '../../src/protocol/revisions.ts'
import type { Wire } from './client.ts'

/** A request or notification as the server read it. */
export interface Arrival {
  readonly message: Wire
  readonly text: string // the same, as it was written
  readonly verb?: string // of HTTP
  readonly process?: number // that read it, counted from 1
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  isGone: boolean // its connection was closed before the answer
}

/** What a tool of a test may do, whatever the manner of its server. */
export interface ToolCall {
  readonly params: Record<string, unknown>
  readonly arguments: Record<string, unknown>
  readonly meta: Record<string, unknown>
  progress(progress: number, more?: object): void
  log(level: string, data: unknown): void
  /** The client's answer; a modern server asks by its result and is called again. */
  ask(key: string, method: string, params: object): Promise<Record<string, unknown>>
}

export type Tool = (call: ToolCall) => Promise<Record<string, unknown>> | Record<string, unknown>

/** Thrown by a tool that answers with an error. */
export class ToolError extends Error {
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** What is answered instead of a result. */
export const errorOf = (thrown: unknown): { code: number; message: string; data: unknown } => {
  const { code, message, data } = thrown instanceof ToolError ? thrown : new ToolError(-32603, String(thrown))
  return { code, message, data }
}

/** Thrown by a modern tool that cannot go on without answers. */
export class InputRequired extends Error {
  readonly requests: Record<string, unknown>
  constructor(requests: Record<string, unknown>) {
    super('input required')
    this.requests = requests
  }
}

/** Whether a listener with this filter wants to hear of that. */
export const isWanted = (filter: Record<string, unknown>, method: string, params: { uri?: string }): boolean => {
  const list = /notifications\/(\w+)\/list_changed/.exec(method)?.[1]
  if (list) return filter[`${list}ListChanged`] === true
  const { uri = '' } = params
  const watched = (filter.resourceSubscriptions ?? []) as string[]
  return watched.some(own => uri === own || uri.startsWith(own.endsWith('/') ? own : `${own}/`))
}

/** A server made by hand, of one revision over one dialect; everything it read is kept. */
export interface MatrixServer {
  readonly revision: Revision
  readonly config: ServerConfig
  readonly arrivals: Arrival[]
  /** Arrivals of one JSON-RPC method. */
  of(method: string): Arrival[]
  arrived(method: string, count?: number): Promise<Arrival>
  readonly tools: Map<string, Tool>
  readonly methods: Map<string, (params: Record<string, unknown>) => Record<string, unknown>>
  /** Says something outside any call. */
  say(method: string, params?: object): void
  /** Ends as a killed server does: every connection breaks, and what it knew of its clients is lost. */
  kill(): Promise<void>
  /** Starts again at the same address. */
  restart(): Promise<void>
  close(): Promise<void>
}

export const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  completions: {},
}

/** What every server of the matrix answers the same way. */
type Answer = (params: Record<string, unknown>) => Record<string, unknown>

export const basics = (tools: Map<string, Tool>): Map<string, Answer> =>
  new Map<string, Answer>([
    [
      'tools/list',
      () => ({ tools: [...tools.keys()].map(name => ({ name, description: name, inputSchema: { type: 'object' } })) }),
    ],
    ['prompts/list', () => ({ prompts: [{ name: 'p', description: 'p' }] })],
    ['prompts/get', () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }] })],
    ['resources/list', () => ({ resources: [{ uri: 'test://a', name: 'a' }] })],
    ['resources/templates/list', () => ({ resourceTemplates: [] })],
    ['resources/read', ({ uri }) => ({ contents: [{ uri, text: 'content' }] })],
    ['completion/complete', () => ({ completion: { values: ['x'], total: 1, hasMore: false } })],
    ['logging/setLevel', () => ({})],
    ['resources/subscribe', () => ({})],
    ['resources/unsubscribe', () => ({})],
    ['ping', () => ({})],
  ])

export const remoteConfig = (url: string, name = 'server'): ServerConfig => ({
  name,
  disabled: false,
  kind: 'remote',
  url,
  type: 'auto',
  headers: {},
  era: 'auto',
  timeoutMs: 20_000,
})

/** Keeps what arrived and lets a test wait for more of it. */
export const createArrivals = () => {
  const arrivals: Arrival[] = []
  const waiting = new Set<() => void>()
  const of = (method: string): Arrival[] => arrivals.filter(({ message }) => message.method === method)
  return {
    arrivals,
    of,
    push: (arrival: Arrival): void => {
      arrivals.push(arrival)
      for (const look of [...waiting]) look()
    },
    arrived: (method: string, count = 1): Promise<Arrival> =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`${method} did not arrive ${count} times`)), 8000)
        const look = (): void => {
          const found = of(method)[count - 1]
          if (!found) return
          waiting.delete(look)
          clearTimeout(timer)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
  }
}
