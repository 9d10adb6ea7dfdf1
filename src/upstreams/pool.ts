import type { Caller, Exchange, Peer } from '../protocol/exchange.ts'
import type { Json } from '../wire/json.ts'
import { DISCONNECTED, UpstreamFailure } from './failures.ts'
import type { Link } from './link.ts'
import { Session } from './streamable.ts'

interface Options {
  readonly idleMs: number
  readonly holdMs: number
}

interface Entry {
  ready: Promise<Session> | undefined
  session: Session | undefined // once it is ready
}

/** Decides which legacy session a caller gets; nothing is shared between principals. */
export class SessionPool {
  readonly #link: Link
  readonly #options: Options
  readonly #entries = new Map<string | symbol, Entry>()
  #sweeper: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(link: Link, options: Options) {
    this.#link = link
    this.#options = options
  }

  /** The session this caller has already, if any. */
  find(caller: Caller): Promise<Peer> | undefined {
    const key = keyOf(caller)
    const entry = key === undefined ? undefined : this.#entries.get(key)
    if (entry?.session) entry.session.lastUsed = Date.now()
    return entry?.ready
  }

  /** Opens a session for this caller; rejects with UpstreamFailure. */
  open(caller: Caller): Promise<Peer> {
    const key = keyOf(caller)
    if (key === undefined) return this.#create(Symbol('isolated'), caller).then(isolated)
    return this.#entries.get(key)?.ready ?? this.#create(key, caller)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    const failed = () => {} // whoever opened it was told
    await Promise.all(entries.map(({ ready }) => ready?.then(session => session.close(), failed)))
  }

  #create(key: string | symbol, caller: Caller): Promise<Session> {
    const entry: Entry = { ready: undefined, session: undefined }
    this.#entries.set(key, entry)
    entry.ready = this.#fill(key, entry, caller)
    this.#sweep()
    return entry.ready
  }

  async #fill(key: string | symbol, entry: Entry, caller: Caller): Promise<Session> {
    const drop = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
    }
    const isDedicated = caller.session !== undefined
    try {
      if (this.#isClosed) throw new UpstreamFailure(this.#link.name, DISCONNECTED)
      const session = await Session.open(this.#link, caller, {
        holdMs: this.#options.holdMs,
        isDedicated,
        onClosed: drop,
      })
      entry.session = session
      return session
    } catch (error) {
      drop()
      throw error
    }
  }

  #sweep(): void {
    if (this.#sweeper) return
    this.#sweeper = setInterval(() => this.#closeIdle(), Math.min(60_000, this.#options.idleMs / 2))
    this.#sweeper.unref()
  }

  #closeIdle(): void {
    const oldest = Date.now() - this.#options.idleMs
    for (const { session } of [...this.#entries.values()])
      if (session && !session.isBusy && session.lastUsed < oldest) void session.close()
    if (this.#entries.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}

/** Undefined for a caller nobody knows: he shares with nobody, not even with himself. */
const keyOf = ({ workspace, principal, session, capabilities }: Caller): string | undefined => {
  if (session !== undefined) return JSON.stringify(['session', workspace, session])
  if (principal === undefined) return undefined
  return JSON.stringify(['principal', workspace, principal, fingerprint(capabilities)])
}

// A client writes its capabilities the same way every time.
const fingerprints = new Map<string, string>()
const MOST_FINGERPRINTS = 1000

/** Equal for capabilities that mean the same; servers shape their lists by them. */
const fingerprint = (capabilities: Json): string => {
  const text = capabilities.toString()
  const known = fingerprints.get(text)
  if (known !== undefined) return known
  if (fingerprints.size >= MOST_FINGERPRINTS) fingerprints.clear()
  const made = JSON.stringify(sorted(capabilities.toValue()))
  fingerprints.set(text, made)
  return made
}

const sorted = (value: unknown): unknown => {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(sorted)
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)])
}

/** A session for one exchange. */
const isolated = (session: Session): Peer => ({
  revision: session.revision,
  asks: session.asks,
  dispatch: exchange => {
    if (exchange.kind === 'notification') return void session.close() // it has nobody to tell
    session.dispatch(once(exchange, () => void session.close()))
    exchange.signal.onAbort(() => void session.close())
  },
})

const once = (exchange: Exchange, over: () => void): Exchange => ({
  ...exchange,
  sink: frame => {
    const waiting = exchange.sink(frame)
    if (frame.kind === 'result' || frame.kind === 'failure') over()
    return waiting
  },
})
