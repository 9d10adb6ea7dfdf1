import type { ServerConfig } from '../../src/config/snapshot.ts'
import { Abort } from '../../src/protocol/cancellation.ts'
import { NoAnswer, type RpcError, RpcFailure, rpcError } from '../../src/protocol/errors.ts'
import type { Caller, Exchange, Frame, Peer, Upstream } from '../../src/protocol/exchange.ts'
import { NEWEST_LEGACY, type Revision } from '../../src/protocol/revisions.ts'
import { Json } from '../../src/wire/json/json.ts'

export const REMOTE: ServerConfig = {
  name: 'x',
  disabled: false,
  kind: 'remote',
  url: 'http://127.0.0.1:1/mcp',
  type: 'auto',
  headers: {},
  era: 'auto',
  timeoutMs: 1000,
}

export const PROCESS = {
  name: 'x',
  disabled: false,
  kind: 'process',
  command: 'x',
  args: [],
  env: {},
  cwd: undefined,
  era: 'auto',
  timeoutMs: 1000,
} as const satisfies ServerConfig

export const lossOf = (reason: string): RpcError =>
  new NoAnswer(rpcError('internal', `Server "x" ${reason}`, Json.of({ reason, upstream: 'x' })))

type Mood = 'well' | 'silent' | RpcError

/** A server in the hands of the test: how it opens, how it answers, and whether it is there when it is looked at. */
export const farSide = (revision: Revision = NEWEST_LEGACY) => {
  const calls: Exchange[] = []
  const far = {
    opening: 'well' as Mood,
    answering: 'well' as Mood,
    looking: 'well' as Mood | 'nothing',
    opens: 0,
    looks: 0,
    closes: 0,
    calls, // those it has not answered by itself
  }
  const dispatch = (exchange: Exchange): void => {
    if (exchange.kind === 'notification') return void calls.push(exchange)
    if (far.answering === 'silent' || exchange.method === 'subscriptions/listen') return void calls.push(exchange)
    const result = exchange.method === 'tools/list' ? { tools: [{ name: 't' }] } : { capabilities: { tools: {} } }
    void exchange.sink(
      far.answering === 'well'
        ? { kind: 'result', result: Json.of(result) }
        : { kind: 'failure', error: far.answering },
    )
  }
  const peer: Peer = { revision, asks: true, dispatch }
  const upstream: Upstream = {
    open: () => {
      far.opens++
      if (far.opening === 'silent') return new Promise(() => {})
      return far.opening === 'well' ? Promise.resolve(peer) : Promise.reject(new RpcFailure(far.opening))
    },
    probe: () => {
      far.looks++
      if (far.looking === 'silent') return new Promise(() => {})
      if (far.looking === 'well' || far.looking === 'nothing') return Promise.resolve(far.looking === 'well')
      return Promise.reject(new RpcFailure(far.looking))
    },
    close: async () => void far.closes++,
  }
  return Object.assign(far, { upstream })
}

export const callerOf = (principal?: string): Caller => ({
  workspace: 'w',
  principal,
  revision: NEWEST_LEGACY,
  capabilities: Json.empty,
  headers: new Map(),
})

/** One request through a gate; a failure to open is its failure too, as it is for whoever really calls. */
export const callThrough = (gate: Upstream, method = 'tools/call', principal?: string) => {
  const frames: Frame[] = []
  const abort = new Abort()
  const caller = callerOf(principal)
  const exchange: Exchange = {
    kind: 'request',
    method,
    params: Json.empty,
    caller,
    signal: abort,
    sink: frame => void frames.push(frame),
  }
  const sent = gate.open(caller).then(
    peer => peer.dispatch(exchange),
    (error: RpcFailure) => void frames.push({ kind: 'failure', error: error.error }),
  )
  return {
    frames,
    abort,
    sent,
    /** The error, once it was sent and is over. */
    error: async (): Promise<RpcError | undefined> => {
      await sent
      const last = frames.at(-1)
      return last?.kind === 'failure' ? last.error : undefined
    },
  }
}
