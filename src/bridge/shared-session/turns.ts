import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { Json } from '../../wire/json/json.ts'

const DETOUR_MS = 1000 // with a call that waits for a person, before the next one takes another session
const PATIENCE_MS = 5000 // with such a call when there is no other session
const LOOK_MS = 1000
const NO_LANE_MS = 60_000 // before a further session is asked for again where none was to be had
const MOST_LANES = 4
const MOST_WAITING = 64

/** A call that may be asked something, as far as taking turns is concerned. */
export interface Turn {
  readonly askedAt: number | undefined // since when a person has been asked
  start(): void
  /** Starts on another session of the same kind; settles with false where there is none to be had. */
  startElsewhere(lane: number): Promise<boolean>
  /** Ends a call whose person has not answered, for the sake of the next. */
  giveWay(): void
  refuse(error: RpcError): void
}

interface Waiting {
  readonly turn: Turn
  readonly since: number
  readonly number: number // in order of arrival
}

type Step =
  | { readonly kind: 'start'; readonly lane: number }
  | { readonly kind: 'clear'; readonly holder: Turn }
  | { readonly kind: 'wait'; readonly ms: number }

/**
 * Turns on a session that does not say which call a question belongs to: one call that can be asked at a time, so that
 * no answer ever reaches the wrong one. Whoever finds it held by a call that waits for a person takes a further
 * session, a lane; the first is taken whenever it is free, so that a server's memory of a user is in one place.
 */
export class Turns {
  readonly #waiting: Waiting[] = []
  readonly #holders: (Turn | undefined)[] = [undefined] // by lane; the session itself is lane 0
  readonly #early = new Set<Turn>() // on the session itself since before they had to take turns
  #noLaneUntil = Number.NEGATIVE_INFINITY
  #look: NodeJS.Timeout | undefined
  #taken = 0

  take(turn: Turn): void {
    if (this.#first && this.#waiting.length >= MOST_WAITING) return turn.refuse(EXHAUSTED)
    this.#waiting.push({ turn, since: Date.now(), number: this.#taken++ })
    this.#proceed()
  }

  /** Takes in a call that runs already: until it leaves, nobody else starts on the session. */
  occupy(turn: Turn): void {
    this.#early.add(turn)
  }

  leave(turn: Turn): void {
    const lane = this.#holders.indexOf(turn)
    const at = this.#waiting.findIndex(waiting => waiting.turn === turn)
    if (lane > 0) this.#noLaneUntil = Number.NEGATIVE_INFINITY // here is one
    if (lane >= 0) this.#holders[lane] = undefined
    else if (at >= 0) this.#waiting.splice(at, 1)
    else if (!this.#early.delete(turn)) return
    this.#proceed()
  }

  #proceed(): void {
    clearTimeout(this.#look)
    const [next] = this.#waiting
    if (!next) return
    const step = this.#stepFor(next, Date.now())
    if (step.kind === 'start') this.#start(next, step.lane)
    else if (step.kind === 'clear')
      step.holder.giveWay() // and comes back here by leaving
    else {
      this.#look = setTimeout(() => this.#proceed(), step.ms)
      this.#look.unref()
    }
  }

  #stepFor({ since }: Waiting, now: number): Step {
    const first = this.#first
    if (!first) return { kind: 'start', lane: 0 }
    const detour = first.askedAt === undefined ? undefined : first.askedAt + DETOUR_MS - now
    if (detour === undefined || detour > 0) return { kind: 'wait', ms: Math.min(detour ?? LOOK_MS, LOOK_MS) }
    const free = now < this.#noLaneUntil ? undefined : this.#freeLane()
    if (free !== undefined) return { kind: 'start', lane: free }
    const longest = [...this.#holders, ...this.#early].reduce<Turn>((a, b) => (b && isLonger(b, a) ? b : a), first)
    const rest = Math.max(since, longest.askedAt ?? now) + PATIENCE_MS - now
    return rest <= 0 ? { kind: 'clear', holder: longest } : { kind: 'wait', ms: Math.min(rest, LOOK_MS) }
  }

  /** Who keeps the next from the session itself: one that works, if there is one. */
  get #first(): Turn | undefined {
    let [first] = this.#holders
    for (const turn of this.#early) if (!first || isLonger(first, turn)) first = turn
    return first
  }

  #freeLane(): number | undefined {
    for (let lane = 1; lane < MOST_LANES; lane++) if (!this.#holders[lane]) return lane
    return undefined
  }

  #start(waiting: Waiting, lane: number): void {
    const { turn } = waiting
    this.#waiting.shift()
    this.#holders[lane] = turn
    if (lane === 0) turn.start()
    else
      void turn.startElsewhere(lane).then(hasStarted => {
        if (hasStarted || this.#holders[lane] !== turn) return
        this.#holders[lane] = undefined
        this.#noLaneUntil = Date.now() + NO_LANE_MS
        this.#waitOn(waiting)
        this.#proceed()
      })
    this.#proceed()
  }

  /** Back to its place: several may have left the line at once. */
  #waitOn(waiting: Waiting): void {
    const at = this.#waiting.findIndex(({ number }) => number > waiting.number)
    this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, waiting)
  }
}

const isLonger = (a: Turn, b: Turn): boolean => a.askedAt !== undefined && a.askedAt < (b.askedAt ?? Infinity)

const EXHAUSTED = rpcError(
  'internal',
  'Too many calls wait for this session; try again when some of them have finished',
  Json.of({ reason: 'pool_exhausted' }),
)
