import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { Json } from '../../wire/json/json.ts'
import { callerKey, shortened } from '../catalog/provenance.ts'
import type { Member } from '../member.ts'
import { type RouteContext, rejectWith } from './route-context.ts'

const NOT_MINE: ReadonlySet<number> = new Set([-32002, -32602, -32601])
const FORGET_MS = 60_000
const PATIENCE_MS = 10_000 // for one member, while there are others to ask
const MOST_KNOWN = 10_000

/** What was found out about a member and a URI. */
interface Finding {
  readonly has: boolean
  readonly until: number
}

/** Asks the members one after the other for something that none of them lists. */
export const createResourceProbe = (context: RouteContext, unknown: (exchange: Exchange, uri: string) => void) => {
  const findings = new BoundedCache<Finding>(MOST_KNOWN, FORGET_MS)

  const keyOf = ({ caller }: Exchange, member: Member, uri: string): string | undefined => {
    const who = callerKey(caller)
    return who === undefined ? undefined : JSON.stringify([who, member.server, shortened(uri)])
  }

  const known = (exchange: Exchange, member: Member, uri: string): Finding | undefined => {
    const finding = findings.get(keyOf(exchange, member, uri) ?? '')
    return finding && finding.until > Date.now() ? finding : undefined
  }

  const note = (exchange: Exchange, member: Member, uri: string, has: boolean): void => {
    const key = keyOf(exchange, member, uri)
    if (key !== undefined) findings.set(key, { has, until: Date.now() + FORGET_MS })
  }

  /** Whoever had it a moment ago comes first; who had it not, not at all. */
  const candidatesFor = (exchange: Exchange, uri: string): readonly Member[] => {
    const rules = context.rulesOf(exchange.caller)
    const allowed = context.members.filter(member => rules.allows('resources', member.server, uri))
    const owner = allowed.find(member => known(exchange, member, uri)?.has)
    const others = allowed.filter(member => known(exchange, member, uri) === undefined)
    return owner ? [owner, ...others] : others
  }

  return (exchange: Exchange, uri: string, visit: (member: Member) => Exchange): void => {
    const candidates = candidatesFor(exchange, uri)
    let trouble: RpcError | undefined // of a member that may have it

    const next = (at: number): void => {
      const member = candidates[at]
      if (exchange.signal.reason) return
      if (!member) return trouble ? rejectWith(exchange, trouble) : unknown(exchange, uri)
      const isLast = at === candidates.length - 1
      attempt(context, visit(member), member, isLast ? undefined : PATIENCE_MS, error => {
        if (!error) return note(exchange, member, uri, true)
        if (NOT_MINE.has(error.code)) note(exchange, member, uri, false)
        else trouble ??= error
        next(at + 1)
      })
    }
    next(0)
  }
}

/** Sends to one member; a failure is no answer yet, and neither is silence. */
const attempt = (
  context: RouteContext,
  exchange: Exchange,
  member: Member,
  patienceMs: number | undefined,
  ended: (error?: RpcError) => void,
): void => {
  const abort = new Abort()
  const release = exchange.signal.onAbort(reason => abort.abort(reason))
  const giveUp = (ms: number): void => {
    if (isOver) return
    abort.abort({ kind: 'expired' })
    ended(slow(member, ms))
  }
  const timer = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs, patienceMs)
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
    if (frame.kind === 'failure') return settle() ? ended(frame.error) : undefined
    if (frame.kind === 'result' && settle()) ended()
    else clearTimeout(timer) // it has begun to work on it
    return deliver(exchange.sink, frame) // once it is over, a failure from below would not get through
  }
  abort.onAbort(() => settle())
  context.send(member, { ...exchange, signal: abort, sink })
}

const slow = ({ server }: Member, ms: number): RpcError =>
  rpcError(
    'internal',
    `Server "${server}" did not say within ${ms / 1000} s whether it has the resource`,
    Json.of({ reason: 'timeout', upstream: server }),
  )
