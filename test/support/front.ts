import { expect } from 'vitest'
import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_SSE,
  type Limits,
  type Listen,
  type Sse,
} from '../../src/config/snapshot.ts'
import { ActiveCalls } from '../../src/fronts/http/active-calls.ts'
import type { FrontContext, FrontRequest } from '../../src/fronts/http/front-request.ts'
import { createRequestGuard } from '../../src/fronts/http/guard.ts'
import { listen } from '../../src/fronts/http/listen.ts'
import { createMcpEndpoint } from '../../src/fronts/http/mcp-endpoint.ts'
import { createRequestReader } from '../../src/fronts/http/read-request.ts'
import { createClientChannels } from '../../src/fronts/http-sse/channels.ts'
import { createHttpSse, createHttpSseRoutes } from '../../src/fronts/http-sse/http-sse.ts'
import { createStreamableSessions } from '../../src/fronts/streamable/sessions.ts'
import { createStreamable } from '../../src/fronts/streamable/streamable.ts'
import { KeepAlive } from '../../src/fronts/streams/keep-alive.ts'
import { StreamRetention } from '../../src/fronts/streams/stream-retention.ts'
import type { OpenerTokens } from '../../src/protocol/admission.ts'
import type { Dispatch, Exchange } from '../../src/protocol/exchange.ts'
import { META } from '../../src/protocol/meta.ts'
import { MemoryCluster } from '../../src/stores/state/memory-state.ts'
import { randomKeys, type StateKeys } from '../../src/stores/state/secret.ts'
import type { StateStore } from '../../src/stores/state/state-store.ts'
import { type Log, SILENT } from '../../src/telemetry/log.ts'
import { Json } from '../../src/wire/json/json.ts'

/** The server behind a front in a test: what each method does. Discovery and listening have a default. */
export type Script = Readonly<Record<string, (exchange: Exchange) => void>>

const DEFAULTS: Script = {
  'server/discover': exchange =>
    exchange.sink({
      kind: 'result',
      result: Json.of({
        capabilities: { tools: {} },
        instructions: 'Be kind',
        _meta: { [META.serverInfo]: { name: 'far', version: '2' } },
      }),
    }),
  'subscriptions/listen': () => {},
}

const NO_TOKENS: OpenerTokens = { isValid: () => true, onRevoked: () => () => {} }

/** Every HTTP front on a real port, in front of a scripted server. */
export const startFront = async (
  script: Script = {},
  options: {
    readonly limits?: Partial<Limits>
    readonly listen?: Partial<Listen>
    readonly identify?: (header: string | undefined) => string | undefined
    readonly sse?: Partial<Sse>
    readonly log?: Log
    readonly state?: { readonly store: StateStore; readonly keys: StateKeys } // by default nothing outlives the front
    readonly tokens?: OpenerTokens
    readonly access?: Pick<FrontRequest, 'token' | 'scopes' | 'expires'> // of every caller
    readonly scopeChallenge?: FrontContext['scopeChallenge']
  } = {},
) => {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const where = { ...DEFAULT_LISTEN, port: 0, ...options.listen }
  const log = options.log ?? SILENT
  const seen: Exchange[] = []
  const dispatch: Dispatch = exchange => {
    seen.push(exchange)
    const act = script[exchange.method] ?? DEFAULTS[exchange.method]
    if (act) act(exchange)
    else if (exchange.kind === 'request')
      void exchange.sink({ kind: 'failure', error: { code: -32601, message: 'Method not found' } })
  }
  const context: FrontContext = {
    dispatch,
    limits,
    log,
    keepAlive: new KeepAlive(limits.keepAliveMs),
    retention: new StreamRetention({ total: limits.totalLogBytes, perOwner: limits.principalLogBytes }),
    activeCalls: new ActiveCalls(limits.principalSessions),
    scopeChallenge: options.scopeChallenge,
  }
  context.keepAlive.onTick(now => context.retention.sweep(now))
  const state = options.state
    ? { ...options.state, isLasting: true }
    : { store: new MemoryCluster().join(), keys: randomKeys(), isLasting: false }
  const sessions = createStreamableSessions(context, state, options.tokens ?? NO_TOKENS)
  const channels = createClientChannels(context, { ...DEFAULT_SSE, ...options.sse }, state)
  const fronts = {
    readRequest: createRequestReader(context, (request, workspace) => {
      if (!['default', 'other'].includes(workspace))
        return { kind: 'out', status: 404, error: { code: -32600, message: 'There is no such workspace' } }
      const principal = options.identify ? options.identify(request.headers.authorization) : 'local'
      return { kind: 'in', principal, ...options.access }
    }),
    streamable: createStreamable(context, sessions),
    httpSse: createHttpSse(channels),
  }
  const listener = await listen({
    listen: where,
    limits,
    guard: createRequestGuard(where),
    routes: { ...createMcpEndpoint(context, fronts), ...createHttpSseRoutes(context, fronts) },
    log: SILENT,
  })
  const origin = `http://127.0.0.1:${listener.port}`
  const seenOf = (method: string): Exchange[] => seen.filter(exchange => exchange.method === method)
  return {
    origin,
    url: `${origin}/mcp`,
    port: listener.port,
    seen,
    last: (method: string): Exchange => seenOf(method).at(-1) as Exchange,
    /** Resolves to the latest exchange of a method once there are `times` of them. */
    whenSeen: async (method: string, times = 1): Promise<Exchange> => {
      await expect.poll(() => seenOf(method).length).toBe(times)
      return seenOf(method).at(-1) as Exchange
    },
    sessions,
    channels,
    context,
    connections: () => listener.connections(),
    close: async () => {
      listener.stop()
      await context.activeCalls.drain(100)
      await sessions.stop()
      channels.endAll('shutdown')
      await state.store.releaseAll()
      await state.store.close()
      await listener.close()
      context.keepAlive.stop()
    },
    /** Ends as a crash does: connections break, and nothing is written any more. */
    kill: async () => {
      await listener.close()
      context.keepAlive.stop()
    },
  }
}

export type Front = Awaited<ReturnType<typeof startFront>>

/** Answers a call with an empty result. */
export const answerEmpty = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.of({ content: [] }) })

export const rpcRequest = (id: number | string, method = 'tools/call', params: object = { name: 'echo' }) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})

export const rpcNotification = (method: string, params: object = {}) => ({ jsonrpc: '2.0', method, params })

export const rpcInitialize = (protocolVersion: unknown, more: object = {}) =>
  rpcRequest(0, 'initialize', {
    protocolVersion,
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
    ...more,
  })
