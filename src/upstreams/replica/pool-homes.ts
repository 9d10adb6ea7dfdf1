import { createHash } from 'node:crypto'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { type Claim, StateError, type StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'

/** Where the session of a pool id lives: at this replica, or at the one of that name. */
export type PoolHome = 'here' | { readonly replica: string }

interface OwnPool {
  readonly claim: Claim
  usedAt: number
  writtenAt: number
}

interface PoolHomesOptions {
  readonly store: Pick<StateStore, 'create' | 'take' | 'write' | 'remove' | 'onLost' | 'members'>
  readonly log: Log
}

const HOUR = 60 * 60_000
const KEPT_MS = 24 * HOUR // after its last use; longer than any session without a use
const EXPIRES_MS = 2 * KEPT_MS
const MOST = 100_000 // homes remembered, and own pools
const ALONE_MS = 2000 // for which sessions are opened here after the store has failed
const ATTEMPTS = 3 // to claim, while other replicas do the same
const HERE: PoolHome = 'here'
const EMPTY = Buffer.alloc(0)

/** The id of the session that callers with this key share at a server. It tells nothing about them. */
export const poolId = (server: string, key: string): string =>
  createHash('sha256')
    .update(JSON.stringify([server, key]))
    .digest('base64url')

/**
 * Which replica holds the session that callers without one of their own share at a legacy server. The first replica that
 * needs it claims it; the others send their calls there. If that replica is gone, the next one that needs it takes over.
 */
export class PoolHomes {
  readonly #store: PoolHomesOptions['store']
  readonly #log: Log
  readonly #own = new Map<string, OwnPool>() // by id
  readonly #others = new BoundedCache<{ readonly replica: string }>(MOST, KEPT_MS) // by id
  readonly #claiming = new Map<string, Promise<PoolHome>>()
  readonly #timer: NodeJS.Timeout
  readonly #stopListening: () => void
  #aloneUntil = 0

  constructor({ store, log }: PoolHomesOptions) {
    this.#store = store
    this.#log = log
    this.#timer = setInterval(() => void this.#renew(), HOUR).unref()
    this.#stopListening = store.onLost(({ kind, id }) => kind === 'pool' && this.#own.delete(id))
  }

  /** Finds the home; claims it if there is none. A promise only where the store has to be asked. */
  locate(id: string): PoolHome | Promise<PoolHome> {
    if (this.holds(id)) return HERE
    const known = this.#others.get(id)
    if (known && this.#store.members.at(known.replica)) return known
    if (Date.now() < this.#aloneUntil) return HERE
    const claiming = this.#claiming.get(id) ?? this.#claim(id).finally(() => this.#claiming.delete(id))
    this.#claiming.set(id, claiming)
    return claiming
  }

  /** Whether this replica is the home. Counts as a use. */
  holds(id: string): boolean {
    const own = this.#own.get(id)
    if (own) own.usedAt = Date.now()
    return own !== undefined
  }

  /** The replica that was the home is gone, or holds the session no more. */
  forget(id: string): void {
    this.#others.delete(id)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#stopListening()
  }

  async #claim(id: string): Promise<PoolHome> {
    try {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const taken = await this.#store.take('pool', id)
        if (taken.kind === 'other') return this.#remember(id, taken.home)
        const claim = taken.kind === 'mine' ? taken.held : await this.#create(id)
        if (claim) return this.#add(id, claim)
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'homes of shared sessions could not be read: new ones are opened here')
      this.#aloneUntil = Date.now() + ALONE_MS
    }
    return HERE
  }

  /** Undefined if another replica was faster. */
  #create(id: string): Promise<Claim | undefined> {
    return this.#store.create('pool', id, EMPTY, { expires: Date.now() + EXPIRES_MS }).catch((error: unknown) => {
      if (error instanceof StateError && error.reason === 'exists') return undefined
      throw error
    })
  }

  #add(id: string, { kind, epoch }: Claim): PoolHome {
    const now = Date.now()
    this.#others.delete(id)
    this.#own.set(id, { claim: { kind, id, epoch }, usedAt: now, writtenAt: now })
    const [oldest] = this.#own.size > MOST ? this.#own : []
    if (oldest) this.#release(...oldest)
    return HERE
  }

  #remember(id: string, replica: string): PoolHome {
    const home = { replica }
    this.#others.set(id, home)
    return home
  }

  #release(id: string, { claim }: OwnPool): void {
    this.#own.delete(id)
    this.#store.remove(claim).catch((error: unknown) => this.#log.debug({ err: error }, 'pool not released'))
  }

  /** Keeps the records of sessions that are used, and removes the others. */
  async #renew(): Promise<void> {
    const now = Date.now()
    for (const [id, own] of [...this.#own]) {
      if (now - own.usedAt > KEPT_MS) this.#release(id, own)
      else if (own.usedAt > own.writtenAt) {
        own.writtenAt = now
        const isOwn = await this.#store.write(own.claim, EMPTY, { expires: now + EXPIRES_MS }).catch(() => true)
        if (!isOwn) this.#own.delete(id)
      }
    }
  }
}
