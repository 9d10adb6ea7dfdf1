import type { ProcessServer } from '../../config/snapshot.ts'
import { canBeAsked } from '../../protocol/capabilities.ts'
import type { Caller, Exchange } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { type PoolPlace, poolPlace } from '../session/pool.ts'
import type { LegacySession } from '../session/session.ts'
import type { KnownEra } from './known-era.ts'
import type { Pipe } from './pipe.ts'

interface SharingOptions {
  readonly server: Pick<ProcessServer, 'share' | 'pool'>
  readonly known: KnownEra
  /** The open session at that place, if any. */
  peek(key: string | undefined): LegacySession<Pipe> | undefined
}

const EVERYONE = 'everyone'
const MOST_OWN = 10_000 // a client may leave before it uses its own process

/**
 * Decides which callers of a legacy server share a session, which over stdio is a process. Where nothing tells which call
 * a question belongs to, calls of two clients that can be asked must not run in one process at the same time.
 */
export class SessionSharing {
  readonly #options: SharingOptions
  readonly #own = new Set<string>() // client sessions that share no process any more

  constructor(options: SharingOptions) {
    this.#options = options
  }

  placeOf(caller: Caller, index: number): PoolPlace {
    const { pool } = this.#options.server
    if (!this.#mayShare(caller)) return poolPlace(this.#ownerOf(caller), pool, index)
    const shared = this.#sharedPlace(caller, index)
    return this.#needsOwn(caller, shared) ? poolPlace(caller, pool, index) : shared
  }

  /** Whether this call must not run in the session that its client shares. */
  isConflicting({ caller, method }: Exchange, session: LegacySession<Pipe>): boolean {
    if (!this.isAskable(caller, method) || !session.isAskedByOthers(caller)) return false
    // A client stays where the server may hold state of it, unless the server is known to ask.
    return this.#options.known.asks === 'anything' || !session.hasServed(caller)
  }

  /** Whether the server has been given roots in that session, and it is not known whether the client has the same. */
  mayHaveOtherRoots({ caller, method }: Exchange, session: LegacySession<Pipe>): boolean {
    return (
      session.roots !== undefined &&
      caller.capabilities.has('roots') &&
      this.isAskable(caller, method) &&
      !session.hasSameRoots(caller)
    )
  }

  /** Whether a client session may be asked something because of that method. */
  isAskable({ session, capabilities }: Caller, method: string): boolean {
    return session !== undefined && methodInfo(method)?.asks === true && canBeAsked(capabilities)
  }

  /** From now on the client session has a process of its own. */
  separate({ session = '' }: Caller): void {
    const [oldest = ''] = this.#own.size >= MOST_OWN ? this.#own : []
    this.#own.delete(oldest)
    this.#own.add(session)
  }

  /** The client's own process is not needed any more. */
  forget({ session = '' }: Caller): void {
    this.#own.delete(session)
  }

  /**
   * Requests without a session that can be asked share one only with each other: a client's roots arrive as the answer
   * to one of its calls, so they cannot be compared with those that a process has been given before.
   */
  #mayShare({ session, principal, capabilities }: Caller): boolean {
    const { share = 'user', pool = 'sticky' } = this.#options.server
    if (session === undefined && canBeAsked(capabilities)) return false
    if (share === 'everyone') return true
    return principal !== undefined && (session === undefined || (share === 'user' && pool === 'sticky'))
  }

  /** A server that everyone shares does not tell principals apart; none tells the workspaces of a user apart. */
  #sharedPlace(caller: Caller, index: number): PoolPlace {
    const { pool } = this.#options.server
    return poolPlace({ ...this.#ownerOf(caller), workspace: '', session: undefined }, pool, index)
  }

  #ownerOf(caller: Caller): Caller {
    return this.#options.server.share === 'everyone' ? { ...caller, principal: EVERYONE } : caller
  }

  /** A server that asks gets a session for each client that can answer. */
  #needsOwn(caller: Caller, shared: PoolPlace): boolean {
    const { known, peek } = this.#options
    if (caller.session === undefined || !canBeAsked(caller.capabilities)) return false
    return this.#own.has(caller.session) || (known.asks === 'anything' && peek(shared.key)?.hasServed(caller) !== true)
  }
}
