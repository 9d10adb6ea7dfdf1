import { DEFAULT_PROCESS_LIMITS, type ProcessServer } from '../../config/snapshot.ts'
import type { Caller, Peer, Upstream } from '../../protocol/exchange.ts'
import { isModern } from '../../protocol/revisions.ts'
import { isSameUser } from '../../protocol/users.ts'
import { DISCONNECTED, forOtherCallers, UpstreamFailure } from '../failures.ts'
import { type CallerUpstream, connectPerCaller } from '../personal/connect-per-caller.ts'
import type { Era } from '../probe.ts'
import { ProcessLimit } from '../process/process-limits.ts'
import { eraFor } from '../session/legacy-leg.ts'
import { type Place, SessionPool } from '../session/pool.ts'
import { createVerdict } from './known-era.ts'
import { ModernProcesses } from './modern-processes.ts'
import { createOpeners, OtherEra } from './openers.ts'
import type { Pipe } from './pipe.ts'
import { StdioShared } from './shared-process.ts'
import { createStdioLink, type StdioOptions } from './stdio-link.ts'
import { StdioSession } from './stdio-session.ts'

/** What `connectProcess` may be told; everything but the log has a default. */
export interface ProcessOptions extends StdioOptions {
  readonly holdMs?: number // a question nobody can be asked yet
  readonly legacyMs?: number // how long a server counts as legacy without being asked again
  readonly sessionsPerPrincipal?: number | undefined // for callers without one of their own
}

/** What is known of one process. */
interface ProcessStatus {
  readonly pid: number
  readonly startedAt: number
  readonly noise: number // lines on stdout that were no messages
  readonly stderr: string // its last lines
}

/** A server this machine runs. */
export interface ProcessUpstream extends Upstream {
  status(): { readonly processes: readonly ProcessStatus[]; readonly crashes: number }
}

const ATTEMPTS = 3 // to open: the era of a server, its legacy leg, and then what there is
const EVERYONE = 'everyone'
const DAY = 24 * 60 * 60_000

type Server = ProcessServer & { readonly name: string }

/** A server that is started here and spoken to over its stdin and stdout. `open` rejects with UpstreamFailure. */
export const connectProcess = (server: Server, options: ProcessOptions): ProcessUpstream => {
  const { name, personal, env, limits = DEFAULT_PROCESS_LIMITS } = server
  const roster = new ProcessLimit(name, limits.processes)
  const noise = { isLogged: false }
  if (!personal) return connectAlike(server, { ...options, noise }, roster)
  const all = new Set<ProcessUpstream>()
  const connect = (own: Readonly<Record<string, string>>) => {
    const upstream = connectAlike({ ...server, env: { ...env, ...own } }, { ...options, noise }, roster)
    all.add(upstream)
    return { ...upstream, close: () => upstream.close().finally(() => all.delete(upstream)) }
  }
  const statuses = () => [...all].map(upstream => upstream.status())
  return {
    ...connectPerCaller({ name, personal, faultOf: variableFault, connect }),
    status: () => ({
      processes: statuses().flatMap(({ processes }) => processes),
      crashes: statuses().reduce((sum, { crashes }) => sum + crashes, 0),
    }),
  }
}

/** Why a text cannot be the value of a variable. */
const variableFault = (text: string): string | undefined =>
  text.includes('\0') ? 'holds a character that no variable can hold' : undefined

/** The same for every caller, or for one alone. */
const connectAlike = (
  server: Server,
  options: ProcessOptions,
  roster: ProcessLimit,
): ProcessUpstream & CallerUpstream => {
  const { holdMs = 20_000, legacyMs = DAY } = options
  const bounds = server.limits ?? DEFAULT_PROCESS_LIMITS
  const link = createStdioLink(server, options)
  const verdict = createVerdict(link.fingerprint, server.era, legacyMs)
  const sessions = new Set<StdioSession>()
  let probing: { readonly caller: Caller; readonly peer: Promise<Peer> } | undefined
  let closing: Promise<void> | undefined

  const openers = createOpeners({ server, link, verdict, adopt: pipe => modern.adopt(pipe) })

  const openSession = async (caller: Caller, { isDedicated, onClosed }: Place): Promise<StdioSession> => {
    const leave: Place['onClosed'] = closing => {
      sessions.delete(session)
      onClosed(closing)
    }
    const greeting = isLegUnknown() ? undefined : verdict.greeting
    const place = { isDedicated, onClosed: leave }
    const { openLegacy: open } = openers
    const session = new StdioSession(link, caller, { ...place, roster, bounds, holdMs, greeting, open })
    sessions.add(session)
    await session.begin().catch(error => {
      sessions.delete(session)
      throw error
    })
    return session
  }

  const modern = new ModernProcesses({
    isForEveryone: server.share === 'everyone',
    create: () => new StdioShared(link, { roster, bounds, open: openers.openModern }),
  })
  const pool = new SessionPool({
    name: server.name,
    idleMs: bounds.idleMs || DAY,
    manner: server.pool,
    perPrincipal: options.sessionsPerPrincipal,
    open: openSession,
  })

  const eraOf = (caller: Caller): Era | undefined => eraFor(caller, server.era, verdict.era, verdict.leg)

  /** Whether no process of a modern server was asked yet if it takes `initialize`. */
  const isLegUnknown = (): boolean => verdict.era === 'modern' && verdict.leg.exists === undefined

  /** False where a process has to be asked first. */
  const isDecided = (caller: Caller): boolean => {
    const era = eraOf(caller)
    return era === 'legacy' ? !isLegUnknown() : era !== undefined
  }

  const openAs = (caller: Caller): Promise<Peer> =>
    eraOf(caller) === 'modern' ? modern.open(caller) : pool.open(asOwner(caller))

  const openAnyway = async (caller: Caller, attempts = ATTEMPTS): Promise<Peer> => {
    const isTrial = eraOf(caller) === 'legacy' && isLegUnknown()
    try {
      return await openAs(caller)
    } catch (error) {
      // A trial needs a process of its own; where there is no room for one, the modern process serves.
      const hasNoRoom = isTrial && error instanceof UpstreamFailure && error.reason === 'upstream_busy'
      if (hasNoRoom) verdict.leg.missed(false)
      if (!(error instanceof OtherEra || hasNoRoom) || closing || attempts === 1) throw error
      return openAnyway(caller, attempts - 1)
    }
  }

  /** A server that everyone shares does not tell principals apart. */
  const asOwner = (caller: Caller): Caller =>
    server.share === 'everyone' ? { ...caller, principal: EVERYONE } : caller

  /** The first caller finds out what the server speaks; those who come meanwhile share what he finds. */
  const find = (caller: Caller): Promise<Peer> => {
    if (isDecided(caller)) return openAnyway(caller)
    if (probing) {
      const isOwn = isSameUser(probing.caller, caller)
      const refuse = (thrown: unknown): never => {
        throw isOwn ? thrown : forOtherCallers(thrown)
      }
      return probing.peer.then(() => open(caller), refuse)
    }
    const peer = openAnyway(caller)
    const over = () => {
      probing = undefined
    }
    probing = { caller, peer }
    peer.then(over, over)
    return peer
  }

  const open = (caller: Caller): Promise<Peer> => {
    if (closing) return Promise.reject(new UpstreamFailure(server.name, DISCONNECTED))
    if (eraOf(caller) === 'modern' && (isModern(caller.revision) || sessions.size === 0))
      return modern.find(caller) ?? find(caller)
    // What is being opened to find out may turn out to be no session at all.
    if (probing && !isDecided(caller)) return find(caller)
    return pool.find(asOwner(caller)) ?? find(caller)
  }

  /** One process is enough: another that hangs is found out by the calls it does not answer. */
  const probe = async (): Promise<boolean> => {
    if (closing) return false
    const shared = modern.all.find(({ isRunning }) => isRunning)
    const session = [...sessions].find(({ pipes }) => pipes.length > 0)
    return shared ? shared.answers() : (session?.answers() ?? false)
  }

  const close = async (): Promise<void> => {
    await Promise.all([modern.close(), ...[...sessions].map(session => session.close()), pool.close()])
    await link.endAll()
    link.deadlines.close()
  }

  const statusOf = ({ child, noise }: Pipe): ProcessStatus => ({
    pid: child.pid,
    startedAt: child.startedAt,
    noise,
    stderr: link.tailOf(child),
  })

  return {
    open,
    probe,
    close: () => (closing ??= close()),
    isIdle: () => sessions.size === 0 && modern.all.every(({ pipes }) => pipes.length === 0) && probing === undefined,
    status: () => ({
      processes: [...modern.all, ...sessions].flatMap(({ pipes }) => pipes).map(statusOf),
      crashes: link.restarts.crashes,
    }),
  }
}
