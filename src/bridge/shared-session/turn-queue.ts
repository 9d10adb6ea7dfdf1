import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { Json } from '../../wire/json/json.ts'

const DETOUR_MS = 1000 // of waiting behind an unanswered question, before the next call takes a further session
const EVICT_MS = 5000 // of waiting behind one, if there is no further session
const CHECK_MS = 1000
const RETRY_LANE_MS = 60_000 // after a further session could not be opened
const MAX_LANES = 4
const MAX_WAITING = 64

/** A call that the server may ask questions. */
interface QueuedCall {
  readonly askedAt: number | undefined // since when a question to its client is open
}

/** How the queue starts and ends calls. */
interface QueueHooks<C> {
  start(call: C): void
  /** Starts the call on a further session of the same kind; resolves with false if there is none. */
  startOnLane(call: C, lane: number): Promise<boolean>
  fail(call: C, error: RpcError): void
}

interface Waiting<C> {
  readonly call: C
  readonly since: number
  readonly number: number // in order of arrival
}

type Step<C> =
  | { readonly kind: 'start'; readonly lane: number }
  | { readonly kind: 'evict'; readonly call: C }
  | { readonly kind: 'wait'; readonly ms: number }

/**
 * Calls take turns on a session whose questions do not name their call: one call that can be asked runs at a time, so that
 * no answer reaches the wrong call. While a question to its client is open, the next call takes a further session (a lane).
 * The session itself is lane 0 and preferred, so that a server keeps its state of a user in one place.
 */
export const createTurnQueue = <C extends QueuedCall>(hooks: QueueHooks<C>) => {
  const waiting: Waiting<C>[] = []
  const running: (C | undefined)[] = [undefined] // by lane
  const early = new Set<C>() // on lane 0 since before calls had to take turns
  let noLaneUntil = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let arrivals = 0

  const proceed = (): void => {
    clearTimeout(timer)
    const [next] = waiting
    if (!next) return
    const step = stepFor(next, Date.now())
    if (step.kind === 'start') start(next, step.lane)
    else if (step.kind === 'evict')
      hooks.fail(step.call, EVICTED) // which deletes the call, and proceeds
    else timer = setTimeout(proceed, step.ms).unref()
  }

  const stepFor = ({ since }: Waiting<C>, now: number): Step<C> => {
    const first = findFirst()
    if (!first) return { kind: 'start', lane: 0 }
    const detour = first.askedAt === undefined ? undefined : first.askedAt + DETOUR_MS - now
    if (detour === undefined || detour > 0) return { kind: 'wait', ms: Math.min(detour ?? CHECK_MS, CHECK_MS) }
    const free = now < noLaneUntil ? undefined : freeLane()
    if (free !== undefined) return { kind: 'start', lane: free }
    const longest = [...running, ...early].reduce<C>((a, b) => (b && isLonger(b, a) ? b : a), first)
    const rest = Math.max(since, longest.askedAt ?? now) + EVICT_MS - now
    return rest <= 0 ? { kind: 'evict', call: longest } : { kind: 'wait', ms: Math.min(rest, CHECK_MS) }
  }

  /** The call that keeps others from lane 0; one without an open question if there is one. */
  const findFirst = (): C | undefined => {
    let [first] = running
    for (const call of early) if (!first || isLonger(first, call)) first = call
    return first
  }

  const freeLane = (): number | undefined => {
    for (let lane = 1; lane < MAX_LANES; lane++) if (!running[lane]) return lane
    return undefined
  }

  const start = (next: Waiting<C>, lane: number): void => {
    const { call } = next
    waiting.shift()
    running[lane] = call
    if (lane === 0) hooks.start(call)
    else
      void hooks.startOnLane(call, lane).then(hasStarted => {
        if (hasStarted || running[lane] !== call) return
        running[lane] = undefined
        noLaneUntil = Date.now() + RETRY_LANE_MS
        putBack(next)
        proceed()
      })
    proceed()
  }

  /** In order of arrival: several may have left the queue at once. */
  const putBack = (next: Waiting<C>): void => {
    const at = waiting.findIndex(({ number }) => number > next.number)
    waiting.splice(at < 0 ? waiting.length : at, 0, next)
  }

  return {
    add: (call: C): void => {
      if (findFirst() && waiting.length >= MAX_WAITING) return hooks.fail(call, QUEUE_FULL)
      waiting.push({ call, since: Date.now(), number: arrivals++ })
      proceed()
    },
    /** Adds a call that runs already: until it ends, no other call starts on the session. */
    addRunning: (call: C): void => void early.add(call),
    delete: (call: C): void => {
      const lane = running.indexOf(call)
      const at = waiting.findIndex(each => each.call === call)
      if (lane > 0) noLaneUntil = Number.NEGATIVE_INFINITY // this one is free
      if (lane >= 0) running[lane] = undefined
      else if (at >= 0) waiting.splice(at, 1)
      else if (!early.delete(call)) return
      proceed()
    },
  }
}

/** Whether `a` has an open question, and for longer than `b`. */
const isLonger = (a: QueuedCall, b: QueuedCall): boolean =>
  a.askedAt !== undefined && a.askedAt < (b.askedAt ?? Number.POSITIVE_INFINITY)

const QUEUE_FULL = rpcError(
  'internal',
  'Too many calls wait for this session; try again when some of them have finished',
  Json.of({ reason: 'pool_exhausted' }),
)

const EVICTED = rpcError(
  'invalidParams',
  'Invalid or expired requestState: another call of yours needed the session while this one waited for an answer',
  Json.of({ reason: 'invalid_request_state' }),
)
