import type { Caller, Peer } from '../../protocol/exchange.ts'
import { leaseOf } from '../session/lease.ts'
import type { Pipe } from './pipe.ts'
import type { StdioShared } from './shared-process.ts'

interface ModernOptions {
  readonly isForEveryone: boolean // one process for all principals
  create(): StdioShared
}

interface Owned {
  readonly shared: StdioShared
  readonly peer: Promise<Peer>
}

const MOST_OWNERS = 1000 // beyond that, those without a process are forgotten

/** The modern processes of one server: one per principal, or one for everyone if its entry says so. */
export class ModernProcesses {
  readonly #options: ModernOptions
  readonly #owned = new Map<string, Owned>()
  readonly #isolated = new Set<StdioShared>() // of anonymous callers, for one request each
  #spare: Owned | undefined // used by health checks alone so far: the first caller gets it

  constructor(options: ModernOptions) {
    this.#options = options
  }

  get all(): StdioShared[] {
    const spare = this.#spare ? [this.#spare.shared] : []
    return [...spare, ...[...this.#owned.values()].map(({ shared }) => shared), ...this.#isolated]
  }

  /** The process this caller has, if it runs. */
  find(caller: Caller): Promise<Peer> | undefined {
    const owned = caller.isHealthCheck ? this.#checked() : this.#owned.get(this.#ownerOf(caller) ?? '')
    return owned?.shared.isRunning ? owned.peer : undefined
  }

  /** Starts a process for this caller where it has none; rejects with UpstreamFailure. */
  async open(caller: Caller): Promise<Peer> {
    const owner = this.#ownerOf(caller)
    if (owner === undefined && !caller.isHealthCheck) return this.#isolate(caller)
    const owned = caller.isHealthCheck ? (this.#checked() ?? this.#keepSpare()) : this.#assign(owner ?? '')
    await owned.shared.ensure(caller)
    return owned.peer
  }

  /** Keeps a process that turned out to be modern for the next caller. */
  adopt(pipe: Pipe): void {
    const { shared } = this.#spare ?? this.#keepSpare()
    if (shared.isRunning) return void pipe.child.stop()
    try {
      shared.adopt(pipe)
    } catch {
      void pipe.child.stop() // the session that started it holds the last place; another is started when it has left
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map(shared => shared.close()))
  }

  /** Equal for callers that share a process; undefined for an anonymous one without a session. */
  #ownerOf({ principal, workspace, session }: Caller): string | undefined {
    if (this.#options.isForEveryone) return 'everyone'
    if (principal !== undefined) return `principal ${principal}`
    return session === undefined ? undefined : `session ${workspace} ${session}`
  }

  /** A health check leaves nothing behind in a process, so any will do. */
  #checked(): Owned | undefined {
    if (this.#spare?.shared.isRunning) return this.#spare
    return [...this.#owned.values()].find(({ shared }) => shared.isRunning) ?? this.#spare
  }

  #keepSpare(): Owned {
    this.#spare = ownedOf(this.#options.create())
    return this.#spare
  }

  #assign(owner: string): Owned {
    const known = this.#owned.get(owner)
    if (known) return known
    if (this.#owned.size >= MOST_OWNERS) this.#forgetIdle()
    const owned = this.#takeSpare() ?? ownedOf(this.#options.create())
    this.#owned.set(owner, owned)
    return owned
  }

  async #isolate(caller: Caller): Promise<Peer> {
    const { shared } = this.#takeSpare() ?? ownedOf(this.#options.create())
    this.#isolated.add(shared)
    shared.onClosed = () => void this.#isolated.delete(shared)
    try {
      await shared.ensure(caller)
      return leaseOf(shared)
    } catch (error) {
      void shared.close()
      throw error
    }
  }

  #takeSpare(): Owned | undefined {
    const spare = this.#spare
    this.#spare = undefined
    return spare
  }

  #forgetIdle(): void {
    for (const [owner, { shared }] of this.#owned) {
      if (shared.isRunning || shared.isWorking) continue
      this.#owned.delete(owner)
      void shared.close()
    }
  }
}

const ownedOf = (shared: StdioShared): Owned => ({ shared, peer: Promise.resolve<Peer>(shared) })
