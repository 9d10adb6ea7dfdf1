import type { ProcessSharing } from '../../config/snapshot.ts'
import type { Caller, Peer } from '../../protocol/exchange.ts'
import type { Json } from '../../wire/json/json.ts'
import { leaseSession } from '../session/lease.ts'
import type { ModernProcess } from './modern-process.ts'
import type { Pipe } from './pipe.ts'

interface ModernProcessesOptions {
  readonly share: ProcessSharing
  /** `capabilities`: of the server, if one of its processes has told them. */
  create(onClosed: () => void, capabilities: Json | undefined): ModernProcess
}

interface OwnedProcess {
  readonly process: ModernProcess
  readonly peer: Promise<Peer>
}

const MOST_OWNERS = 1000 // beyond that, owners without a running process are forgotten

/** The modern processes of one server: one per principal, unless the configuration says otherwise. */
export class ModernProcesses {
  readonly #options: ModernProcessesOptions
  readonly #owned = new Map<string, OwnedProcess>()
  readonly #isolated = new Set<ModernProcess>() // of anonymous callers, for one request each
  #spare: OwnedProcess | undefined // used by health checks alone so far: the first caller gets it

  constructor(options: ModernProcessesOptions) {
    this.#options = options
  }

  get all(): ModernProcess[] {
    const spare = this.#spare ? [this.#spare.process] : []
    return [...spare, ...[...this.#owned.values()].map(({ process }) => process), ...this.#isolated]
  }

  /** The process this caller has, if it runs. */
  find(caller: Caller): Promise<Peer> | undefined {
    const owned = caller.isHealthCheck ? this.#findForHealthCheck() : this.#owned.get(this.#ownerOf(caller) ?? '')
    return owned?.process.isRunning ? owned.peer : undefined
  }

  /** Starts a process for this caller if it has none, unless its first call can; rejects with UpstreamFailure. */
  async open(caller: Caller): Promise<Peer> {
    const owner = this.#ownerOf(caller)
    if (owner === undefined && !caller.isHealthCheck) return this.#isolate(caller)
    const owned = caller.isHealthCheck ? (this.#findForHealthCheck() ?? this.#createSpare()) : this.#assign(owner ?? '')
    if (caller.isHealthCheck || !owned.process.isDormant) await owned.process.ensure(caller)
    return owned.peer
  }

  /** Keeps a process that was detected to be modern for the next caller. */
  adopt(pipe: Pipe): void {
    const { process } = this.#spare ?? this.#createSpare()
    if (process.isRunning) return void pipe.child.stop()
    try {
      process.adopt(pipe)
    } catch {
      void pipe.child.stop() // the limit of processes is reached until the session that started it has closed
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map(process => process.close()))
  }

  /** Equal for callers that share a process; undefined for an anonymous caller without a session. */
  #ownerOf({ principal, workspace, session }: Caller): string | undefined {
    const { share } = this.#options
    if (share === 'everyone') return 'everyone'
    if (session !== undefined && (share === 'session' || principal === undefined))
      return `session ${workspace} ${session}`
    return principal === undefined ? undefined : `principal ${principal}`
  }

  /** A health check leaves no state in a process, so it may use any. */
  #findForHealthCheck(): OwnedProcess | undefined {
    if (this.#spare?.process.isRunning) return this.#spare
    return [...this.#owned.values()].find(({ process }) => process.isRunning) ?? this.#spare
  }

  #create(): OwnedProcess {
    const capabilities = this.all.find(other => other.capabilities)?.capabilities
    const process: ModernProcess = this.#options.create(() => void this.#isolated.delete(process), capabilities)
    return { process, peer: Promise.resolve<Peer>(process) }
  }

  #createSpare(): OwnedProcess {
    this.#spare = this.#create()
    return this.#spare
  }

  #assign(owner: string): OwnedProcess {
    const known = this.#owned.get(owner)
    if (known) return known
    if (this.#owned.size >= MOST_OWNERS) this.#forgetIdle()
    const process = this.#takeSpare() ?? this.#create()
    this.#owned.set(owner, process)
    return process
  }

  async #isolate(caller: Caller): Promise<Peer> {
    const { process } = this.#takeSpare() ?? this.#create()
    this.#isolated.add(process)
    try {
      await process.ensure(caller)
      return leaseSession(process)
    } catch (error) {
      void process.close()
      throw error
    }
  }

  #takeSpare(): OwnedProcess | undefined {
    const spare = this.#spare
    this.#spare = undefined
    return spare
  }

  #forgetIdle(): void {
    for (const [owner, { process }] of this.#owned) {
      if (process.isRunning || process.isBusy) continue
      this.#owned.delete(owner)
      void process.close()
    }
  }
}
