import { Abort } from '../../src/protocol/cancellation.ts'
import type { Caller, Exchange, Frame } from '../../src/protocol/exchange.ts'
import { Json, type Plain } from '../../src/wire/json/json.ts'

/** A request whose frames a test reads. */
export interface ObservedExchange {
  readonly e: Exchange
  readonly frames: Frame[]
  readonly abort: Abort
}

/** Makes requests of a modern caller; `who` changes the caller of one of them. */
export const observedExchanges = (capabilities: Plain, principal: string | undefined) => {
  const caller: Caller = {
    workspace: 'w',
    principal,
    revision: '2026-07-28',
    capabilities: Json.of(capabilities),
    headers: new Map(),
  }
  return (method: string, params: Plain, who: Partial<Caller> = {}): ObservedExchange => {
    const frames: Frame[] = []
    const abort = new Abort()
    const sink: Exchange['sink'] = frame => void frames.push(frame)
    const e: Exchange = {
      ...{ kind: 'request', method, params: Json.of(params), signal: abort, sink },
      caller: { ...caller, ...who },
    }
    return { e, frames, abort }
  }
}
