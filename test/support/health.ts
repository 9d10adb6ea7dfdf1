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

/** An upstream that a test controls: how it opens, answers calls and answers liveness checks. */
export const farSide = (revision: Revision = NEWEST_LEGACY) => {
  const calls: Exchange[] = []
  const far = {
    opening: 'well' as Mood,
    answering: 'well' as Mood,
    probing: 'well' as Mood | 'nothing',
    opens: 0,
    probes: 0,
    closes: 0,
    calls, // requests the test must answer
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
      far.probes++
      if (far.probing === 'silent') return new Promise(() => {})
      if (far.probing === 'well' || far.probing === 'nothing') return Promise.resolve(far.probing === 'well')
      return Promise.reject(new RpcFailure(far.probing))
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

/** Sends one request through a guard; a failure to open is reported as its failure. */
export const callThrough = (guard: Upstream, method = 'tools/call', principal?: string) => {
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
  const sent = guard.open(caller).then(
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
