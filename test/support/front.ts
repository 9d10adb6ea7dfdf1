import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_SSE,
  type Limits,
  type Listen,
  type Sse,
} from '../../src/config/snapshot.ts'
import { Active } from '../../src/fronts/active.ts'
import { createChannelDoors } from '../../src/fronts/channel-doors.ts'
import { Channels } from '../../src/fronts/channels.ts'
import { createDoor } from '../../src/fronts/door.ts'
import { createEntrance } from '../../src/fronts/entrance.ts'
import { createGuard } from '../../src/fronts/guard.ts'
import { createHttpSse } from '../../src/fronts/http-sse.ts'
import { listen } from '../../src/fronts/listen.ts'
import { LogShelf } from '../../src/fronts/log-shelf.ts'
import { Sessions } from '../../src/fronts/sessions.ts'
import { createStreamable } from '../../src/fronts/streamable.ts'
import { Ticker } from '../../src/fronts/ticker.ts'
import type { House } from '../../src/fronts/visit.ts'
import type { Dispatch, Exchange } from '../../src/protocol/exchange.ts'
import { META } from '../../src/protocol/meta.ts'
import { type Log, SILENT } from '../../src/telemetry/log.ts'
import { Json } from '../../src/wire/json.ts'

/** The far side of a front in a test: what each method does. Discovery and listening have a default. */
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

/** Doors on a real port in front of a scripted far side. */
export const startFront = async (
  script: Script = {},
  options: {
    readonly limits?: Partial<Limits>
    readonly listen?: Partial<Listen>
    readonly identify?: (header: string | undefined) => string | undefined
    readonly sse?: Partial<Sse>
    readonly log?: Log
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
  const house: House = {
    dispatch,
    limits,
    log,
    ticker: new Ticker(limits.keepAliveMs),
    shelf: new LogShelf({ total: limits.totalLogBytes, perOwner: limits.principalLogBytes }),
    active: new Active(),
  }
  house.ticker.each(now => house.shelf.sweep(now))
  const sessions = new Sessions(house)
  const channels = new Channels(house, { ...DEFAULT_SSE, ...options.sse })
  const ways = {
    enter: createEntrance(house, (request, workspace) => {
      if (!['default', 'other'].includes(workspace))
        return { kind: 'out', status: 404, error: { code: -32600, message: 'There is no such workspace' } }
      const principal = options.identify ? options.identify(request.headers.authorization) : 'local'
      return { kind: 'in', principal }
    }),
    streamable: createStreamable(house, sessions),
    httpSse: createHttpSse(house, channels),
  }
  const listener = await listen({
    listen: where,
    limits,
    guard: createGuard(where),
    routes: { ...createDoor(house, ways), ...createChannelDoors(house, ways) },
    log: SILENT,
  })
  return {
    url: `http://127.0.0.1:${listener.port}/mcp`,
    port: listener.port,
    seen,
    sessions,
    channels,
    house,
    connections: () => listener.connections(),
    close: async () => {
      listener.stop()
      await house.active.drain(100)
      sessions.endAll()
      channels.endAll('shutdown')
      await listener.close()
      house.ticker.stop()
    },
  }
}

export type Front = Awaited<ReturnType<typeof startFront>>
