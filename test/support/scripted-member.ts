import { type RpcError, rpcError } from '../../src/protocol/errors.ts'
import type { Exchange, Peer } from '../../src/protocol/exchange.ts'
import { MODERN, type Revision } from '../../src/protocol/revisions.ts'
import { Json, type Plain, type PlainObject } from '../../src/wire/json/json.ts'
import type { Member } from '../../src/workspace/member.ts'

type Answer = PlainObject | Json | RpcError | Promise<PlainObject | RpcError>

interface Script {
  readonly revision?: Revision
  readonly capabilities?: PlainObject
  readonly instructions?: string
  readonly overlays?: Member['overlays']
  /** What is answered to a method; what is not here is unknown. */
  readonly answers?: Readonly<Record<string, (params: Json, exchange: Exchange) => Answer>>
}

/** A member of a workspace that answers as a test says, always in its own revision. */
export interface ScriptedMember extends Member {
  readonly asked: Exchange[] // in order of arrival; standing exchanges are in `listeners`
  readonly listeners: Set<Exchange>
  /** How often a method arrived. */
  count(method: string): number
  /** Sends a notification to all listeners. */
  say(method: string, params?: PlainObject): void
  /** Goes down, which ends every open subscription, or comes back. */
  turn(state: 'up' | 'down'): void
}

const LISTENS = { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true } }
const DOWN = rpcError('internal', 'the server is down', Json.of({ reason: 'upstream_lost' }))

export const scriptedMember = (server: string, script: Script = {}): ScriptedMember => {
  const { revision = MODERN, capabilities = LISTENS, instructions, overlays = new Map(), answers = {} } = script
  const asked: Exchange[] = []
  const listeners = new Set<Exchange>()
  let isUp = true

  const discovered = () => ({ resultType: 'complete', capabilities, instructions, ttlMs: 0, cacheScope: 'private' })
  const known: Script['answers'] = { 'server/discover': discovered, ping: () => ({}), ...answers }

  const listen = (exchange: Exchange): void => {
    listeners.add(exchange)
    exchange.signal.onAbort(() => listeners.delete(exchange))
    const notifications = exchange.params.get('notifications') ?? Json.empty
    const params = Json.of({ notifications })
    void exchange.sink({ kind: 'notice', method: 'notifications/subscriptions/acknowledged', params })
  }

  const dispatch = async (exchange: Exchange): Promise<void> => {
    if (exchange.method === 'subscriptions/listen') return listen(exchange)
    asked.push(exchange)
    const answer = await known[exchange.method]?.(exchange.params, exchange)
    if (!answer) return void exchange.sink({ kind: 'failure', error: rpcError('methodNotFound') })
    if (answer instanceof Json || !isError(answer))
      return void exchange.sink({ kind: 'result', result: Json.of(answer as Plain) })
    void exchange.sink({ kind: 'failure', error: answer })
  }

  const peer: Peer = { revision, asks: false, dispatch: exchange => void dispatch(exchange) }
  const upstream = {
    open: async () => {
      if (!isUp) throw new Error(DOWN.message)
      return peer
    },
    close: async () => {},
  }
  return {
    server,
    bridged: upstream,
    native: upstream,
    isRemote: true,
    isProcess: false,
    overlays,
    isUp: () => isUp,
    asked,
    listeners,
    count: method => asked.filter(exchange => exchange.method === method).length,
    say: (method, params = {}) => {
      for (const { sink } of [...listeners]) void sink({ kind: 'notice', method, params: Json.of(params) })
    },
    turn: state => {
      isUp = state === 'up'
      if (isUp) return
      const ended = [...listeners]
      listeners.clear()
      for (const { sink } of ended) void sink({ kind: 'failure', error: DOWN })
    },
  }
}

const isError = (answer: PlainObject | RpcError): answer is RpcError => typeof answer.code === 'number'

/** Definitions of tools of these names. */
export const toolsOf = (...names: readonly string[]): PlainObject[] =>
  names.map(name => ({ name, inputSchema: { type: 'object' } }))
