import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import { answerQuestion, deliver } from '../../protocol/deliver.ts'
import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { Json } from '../../wire/json/json.ts'
import { cacheOwnerOf, principalOf } from '../catalog/cache-owner.ts'
import { NO_CLIENT } from '../catalog/fetch.ts'
import type { CacheTimes } from '../catalog/freshness.ts'
import { DISCOVER, haveSameItems, learntResult } from '../catalog/learnt-results.ts'
import type { LearntServer, LearntSource } from '../catalog/learnt-server.ts'
import { LIST_KINDS, listKindOf } from '../catalog/list-kinds.ts'
import type { Member } from '../member.ts'
import { ListListeners } from './list-listeners.ts'

const LISTEN = 'subscriptions/listen'
const MOST_OWNERS = 1000
const MOST_PER_PRINCIPAL = 64
const IDLE_MS = 3_600_000

/** What the callers of one cache owner have got, by method. */
interface OwnerAnswers {
  readonly own: Set<string> // the server itself has answered
  readonly pending: Set<string> // the server has been asked behind a known answer
  readonly shown: Map<string, LearntServer> // what the latest known answer was made of
}

/** The route of a single server, in front of which known answers are given. */
export interface KnownAnswers {
  readonly dispatch: Dispatch
  close(): void
}

/**
 * Answers lists and `server/discover` from what the gateway has learnt until the server has answered a caller of the same
 * principal and capabilities itself. Everything else, and every later request, is forwarded unchanged.
 */
export const createKnownAnswers = (
  member: Member,
  source: LearntSource,
  send: Dispatch,
  times: CacheTimes,
): KnownAnswers => {
  const owners = new BoundedCache<OwnerAnswers>(MOST_OWNERS, IDLE_MS, { mostPerGroup: MOST_PER_PRINCIPAL })
  const listeners = new ListListeners()

  const answersOf = (owner: string): OwnerAnswers => {
    const known = owners.get(owner)
    if (known) return known
    const answers: OwnerAnswers = { own: new Set(), pending: new Set(), shown: new Map() }
    owners.set(owner, answers, principalOf(owner))
    return answers
  }

  const notify = (owner: string, method: string): void => {
    const kind = listKindOf(method)
    if (kind) listeners.notify(owner, LIST_KINDS[kind].capability)
  }

  /** Asks the server, and gives the known answer if the server takes too long. */
  const ask = (exchange: Exchange, owner: string, known: Json): void => {
    const { method } = exchange
    const answers = answersOf(owner)
    const abort = new Abort()
    let isAnswered = false
    const show = (): void => {
      if (isAnswered) return
      isAnswered = true
      answers.pending.add(method)
      if (!exchange.signal.reason) void deliver(exchange.sink, { kind: 'result', result: known })
    }
    const timer = setTimeout(show, Math.min(times.directListMs, times.listWaitMs))
    const end = (reason: AbortReason): void => {
      clearTimeout(timer)
      clearTimeout(expiry)
      answers.pending.delete(method)
      abort.abort(reason)
    }
    const expiry = setTimeout(() => end({ kind: 'expired' }), times.fetchTimeoutMs).unref()
    const take = (frame: Frame): void | Promise<void> => {
      if (frame.kind === 'question' && isAnswered) return answerQuestion(frame, { kind: 'error', error: NO_CLIENT })
      if (frame.kind === 'notice' || frame.kind === 'question') return isAnswered ? undefined : exchange.sink(frame)
      clearTimeout(timer)
      clearTimeout(expiry)
      answers.pending.delete(method)
      if (frame.kind === 'result') answers.own.add(method)
      if (isAnswered)
        return frame.kind === 'failure' || haveSameItems(method, known, frame.result)
          ? undefined
          : notify(owner, method)
      isAnswered = true
      return exchange.sink(frame)
    }
    // Once the client is answered, the server's answer is still of use for later requests.
    exchange.signal.onAbort(reason => {
      if (!isAnswered) end(reason)
    })
    send({ ...exchange, signal: abort, sink: take })
  }

  const answer = (exchange: Exchange): void => {
    const { method, caller, sink } = exchange
    const owner = cacheOwnerOf(caller)
    const answers = answersOf(owner)
    const learnt = !answers.own.has(method) && member.isUp() && isPlain(exchange) ? source.get() : undefined
    const known = learnt && learntResult(learnt, method, caller.revision)
    if (!learnt || !known) return send(exchange)
    answers.shown.set(method, learnt)
    if (answers.pending.has(method)) return void deliver(sink, { kind: 'result', result: known })
    ask(exchange, owner, known)
  }

  /** The gateway has read the server again: callers that were shown another list are told. */
  const stop = source.onLearnt(() => {
    const latest = source.get()
    for (const [owner, { own, shown }] of owners.entries())
      for (const [method, before] of shown) {
        if (own.has(method) || !latest || isSameList(before, latest, method)) continue
        shown.set(method, latest)
        notify(owner, method)
      }
  })

  const dispatch: Dispatch = exchange => {
    const { kind, method } = exchange
    if (kind === 'notification') return send(exchange)
    if (listKindOf(method) || method === DISCOVER) return answer(exchange)
    if (method === LISTEN) return send(listeners.add(exchange))
    send(exchange)
  }

  return {
    dispatch,
    close: () => {
      stop()
      listeners.clear()
      owners.clear()
    },
  }
}

/** A request with params of its own may ask for another answer than the one that is known. */
const isPlain = ({ params }: Exchange): boolean => params.entries().every(([key]) => key === '_meta')

const isSameList = (a: LearntServer, b: LearntServer, method: string): boolean => {
  const [some, others] = [a, b].map(learnt => learntResult(learnt, method, learnt.revision) ?? Json.empty) as [
    Json,
    Json,
  ]
  return haveSameItems(method, some, others)
}
