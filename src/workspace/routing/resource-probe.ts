import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import { ERRORS, type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { Json } from '../../wire/json/json.ts'
import { callerKey, shortReference } from '../catalog/provenance.ts'
import type { Member } from '../member.ts'
import type { RouteContext } from './route-context.ts'
import { rejectWith } from './send.ts'

const NOT_FOUND: ReadonlySet<number> = new Set(
  [ERRORS.resourceNotFound, ERRORS.invalidParams, ERRORS.methodNotFound].map(({ code }) => code),
)
const CACHE_MS = 60_000
const TIMEOUT_MS = 10_000 // for one member, while there are others to try
const MOST_CACHED = 10_000

/** Whether a member has a URI. */
interface ProbeResult {
  readonly has: boolean
  readonly until: number
}

/** Makes the function that sends a request for an unlisted URI to one member after the other until one has it. */
export const createResourceProbe = (
  context: RouteContext,
  rejectUnknown: (exchange: Exchange, uri: string) => void,
) => {
  const results = new BoundedCache<ProbeResult>(MOST_CACHED, CACHE_MS)

  const keyOf = ({ caller }: Exchange, member: Member, uri: string): string | undefined => {
    const key = callerKey(caller)
    return key === undefined ? undefined : JSON.stringify([key, member.server, shortReference(uri)])
  }

  const cached = (exchange: Exchange, member: Member, uri: string): ProbeResult | undefined => {
    const result = results.get(keyOf(exchange, member, uri) ?? '')
    return result && result.until > Date.now() ? result : undefined
  }

  const store = (exchange: Exchange, member: Member, uri: string, has: boolean): void => {
    const key = keyOf(exchange, member, uri)
    if (key !== undefined) results.set(key, { has, until: Date.now() + CACHE_MS })
  }

  /** The member that had it a minute ago is first; members that did not have it are left out. */
  const candidatesFor = (exchange: Exchange, uri: string): readonly Member[] => {
    const rules = context.rulesOf(exchange.caller)
    const allowed = context.members.filter(member => rules.allows('resources', member.server, uri))
    const owner = allowed.find(member => cached(exchange, member, uri)?.has)
    const others = allowed.filter(member => cached(exchange, member, uri) === undefined)
    return owner ? [owner, ...others] : others
  }

  return (exchange: Exchange, uri: string, exchangeFor: (member: Member) => Exchange): void => {
    const candidates = candidatesFor(exchange, uri)
    let failure: RpcError | undefined // of a member that may have it

    const tryNext = (at: number): void => {
      const member = candidates[at]
      if (exchange.signal.reason) return
      if (!member) return failure ? rejectWith(exchange, failure) : rejectUnknown(exchange, uri)
      const isLast = at === candidates.length - 1
      attempt(context, exchangeFor(member), member, isLast ? undefined : TIMEOUT_MS, error => {
        if (!error) return store(exchange, member, uri, true)
        if (NOT_FOUND.has(error.code)) store(exchange, member, uri, false)
        else failure ??= error
        tryNext(at + 1)
      })
    }
    tryNext(0)
  }
}

/** Sends the request to one member. A failure or a timeout does not reach the client: `onEnd` decides what follows. */
const attempt = (
  context: RouteContext,
  exchange: Exchange,
  member: Member,
  timeoutMs: number | undefined,
  onEnd: (error?: RpcError) => void,
): void => {
  const abort = new Abort()
  const release = exchange.signal.onAbort(reason => abort.abort(reason))
  const expire = (ms: number): void => {
    if (isOver) return
    abort.abort({ kind: 'expired' })
    onEnd(timeoutError(member, ms))
  }
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs, timeoutMs)
  let isOver = false

  const settle = (): boolean => {
    if (isOver) return false
    isOver = true
    clearTimeout(timer)
    release()
    return true
  }
  const sink = (frame: Frame): void | Promise<void> => {
    if (isOver) return
    if (frame.kind === 'failure') return settle() ? onEnd(frame.error) : undefined
    if (frame.kind === 'result' && settle()) onEnd()
    else clearTimeout(timer) // the member has started to work on it
    return deliver(exchange.sink, frame) // a failure of the sink could not be sent back: the attempt is over
  }
  abort.onAbort(() => settle())
  context.send(member, { ...exchange, signal: abort, sink })
}

const timeoutError = ({ server }: Member, ms: number): RpcError =>
  rpcError(
    'internal',
    `Server "${server}" did not answer within ${ms / 1000} s whether it has the resource`,
    Json.of({ reason: 'timeout', upstream: server }),
  )
