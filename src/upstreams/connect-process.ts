import { DEFAULT_PROCESS_LIMITS, type ProcessServer } from '../config/snapshot.ts'
import { isSameUser } from '../protocol/callers.ts'
import type { Caller, Exchange, Peer, Upstream } from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import { type CallerUpstream, connectPerCaller } from './connect-per-caller.ts'
import { DISCONNECTED, forOtherCallers, UpstreamFailure } from './failures.ts'
import type { Era } from './probe.ts'
import { ProcessLimit } from './process/process-limits.ts'
import { chooseEra } from './session/legacy-support.ts'
import { type PoolSlot, SessionPool } from './session/pool.ts'
import { LegacySession } from './session/session.ts'
import { KnownEra, KnownEras } from './stdio/known-era.ts'
import { ModernProcess } from './stdio/modern-process.ts'
import { ModernProcesses } from './stdio/modern-processes.ts'
import type { Pipe } from './stdio/pipe.ts'
import { createProcessOpener, WrongEra } from './stdio/process-opener.ts'
import { createRedirect } from './stdio/redirect.ts'
import { SessionSharing } from './stdio/session-sharing.ts'
import { SpareProcess } from './stdio/spare-process.ts'
import { createInvalidLineLog, createStdioLink, type StdioOptions } from './stdio/stdio-link.ts'
import { StdioTransport } from './stdio/stdio-transport.ts'

/** What `connectProcess` may be told; everything but the log has a default. */
export interface ProcessOptions extends StdioOptions {
  readonly holdMs?: number // how long a question of the server waits for a listener
  readonly legacyMs?: number // how long a server counts as legacy without being probed again
  readonly sessionsPerPrincipal?: number | undefined // for callers without a client session
  readonly knownEras?: KnownEras // shared by all servers of the gateway
}

/** What is known of one process. */
interface ProcessStatus {
  readonly pid: number
  readonly startedAt: number
  readonly invalidLines: number // lines on stdout that were no messages
  readonly stderr: string // its last lines
}

/** A server this machine runs. */
export interface ProcessUpstream extends Upstream {
  status(): { readonly processes: readonly ProcessStatus[]; readonly crashes: number }
}

const ATTEMPTS = 3 // to open: the era of the server, its legacy sessions, and then what there is
const DAY = 24 * 60 * 60_000

type Server = ProcessServer & { readonly name: string }
type SharedOptions = ProcessOptions & { readonly knownEras: KnownEras }

/** A server that is started here and used over its stdin and stdout. `open` rejects with UpstreamFailure. */
export const connectProcess = (server: Server, given: ProcessOptions): ProcessUpstream => {
  const { name, personal, env, limits = DEFAULT_PROCESS_LIMITS } = server
  const limit = new ProcessLimit(name, limits.processes)
  const { knownEras = new KnownEras(), log } = given
  const options: SharedOptions = { ...given, knownEras, logInvalidLine: createInvalidLineLog(log) }
  if (!personal) return connectOne(server, options, limit)
  const all = new Set<ProcessUpstream>()
  const connect = (own: Readonly<Record<string, string>>) => {
    const upstream = connectOne({ ...server, env: { ...env, ...own } }, options, limit)
    all.add(upstream)
    return { ...upstream, close: () => upstream.close().finally(() => all.delete(upstream)) }
  }
  const statuses = () => [...all].map(upstream => upstream.status())
  return {
    ...connectPerCaller({ name, personal, faultOf: variableFault, connect }),
    processCount: () => statuses().reduce((sum, { processes }) => sum + processes.length, 0),
    status: () => ({
      processes: statuses().flatMap(({ processes }) => processes),
      crashes: statuses().reduce((sum, { crashes }) => sum + crashes, 0),
    }),
  }
}

/** Why a text cannot be the value of a variable. */
const variableFault = (text: string): string | undefined =>
  text.includes('\0') ? 'holds a character that no variable can hold' : undefined

/** One server with one environment: the same for every caller, or that of one caller. */
const connectOne = (server: Server, options: SharedOptions, limit: ProcessLimit): ProcessUpstream & CallerUpstream => {
  const { holdMs = 20_000, legacyMs = DAY, knownEras } = options
  const bounds = server.limits ?? DEFAULT_PROCESS_LIMITS
  const link = createStdioLink(server, options)
  const known = new KnownEra(knownEras, link.fingerprint, server.era, legacyMs)
  const sessions = new Map<LegacySession<Pipe>, StdioTransport>()
  const isUnused = () => [...sessions.values()].every(({ isRunning }) => !isRunning)
  const sharing = new SessionSharing({ server, known, peek: key => pool.peek(key) })
  const redirect = createRedirect({
    name: server.name,
    known,
    sharing,
    open: caller => open(caller),
    settling: (session, caller) => sessions.get(session)?.settling(caller),
  })
  const spare = new SpareProcess(limit, bounds.idleMs, isUnused)
  let probing: { readonly caller: Caller; readonly peer: Promise<Peer> } | undefined
  let closing: Promise<void> | undefined

  const { openModern, openLegacy } = createProcessOpener({ server, link, known, adopt: pipe => modern.adopt(pipe) })

  const openSession = (caller: Caller, slot: PoolSlot): Promise<LegacySession<Pipe>> => {
    const onClosed: PoolSlot['onClosed'] = closing => {
      sessions.delete(session)
      if (slot.isDedicated) sharing.forget(caller)
      slot.onClosed(closing)
    }
    const handshake = isLegacyUnknown() ? undefined : known.handshake
    const startsAtOnce = slot.index > 0
    const onQuestion = (method: string) => known.recordQuestion(method)
    const transportOptions = { limit, bounds, handshake, startsAtOnce, start: openLegacy, spare, onQuestion }
    const redirectCall = (exchange: Exchange): boolean => !slot.isDedicated && redirect(session, exchange)
    const session: LegacySession<Pipe> = new LegacySession<Pipe>(
      { ...slot, onClosed, holdMs, redirect: redirectCall },
      created => {
        const transport = new StdioTransport(created, link, caller, transportOptions)
        sessions.set(created, transport)
        return transport
      },
    )
    if (slot.isDedicated) moveTo(session, caller)
    return session.open().catch(error => {
      void session.close()
      throw error
    })
  }

  /** The client has shared another session so far: what it has there moves. */
  const moveTo = (session: LegacySession<Pipe>, caller: Caller): void => {
    for (const other of sessions.keys()) {
      const released = other === session ? undefined : other.release(caller)
      if (released) session.adopt(released)
    }
  }

  const modern = new ModernProcesses({
    share: server.share ?? 'user',
    create: (onClosed, capabilities) =>
      new ModernProcess(link, { limit, bounds, start: openModern, onClosed, capabilities }),
  })
  const pool = new SessionPool<LegacySession<Pipe>>({
    name: server.name,
    idleMs: bounds.idleMs || DAY,
    placeOf: (caller, index) => sharing.placeOf(caller, index),
    perPrincipal: options.sessionsPerPrincipal,
    open: openSession,
  })

  const eraOf = (caller: Caller): Era | undefined => chooseEra(caller, server.era, known.era, known.legacy)

  /** No process of the modern server has been sent `initialize` yet. */
  const isLegacyUnknown = (): boolean => known.era === 'modern' && known.legacy.isSupported === undefined

  /** False where a process has to be probed first. */
  const isEraKnown = (caller: Caller): boolean => {
    const era = eraOf(caller)
    return era === 'legacy' ? !isLegacyUnknown() : era !== undefined
  }

  const openOnce = (caller: Caller, index: number): Promise<Peer> =>
    eraOf(caller) === 'modern' ? modern.open(caller) : pool.open(caller, index)

  /** Opens in another era if the process turns out not to have the one that was tried. */
  const openInAnyEra = async (caller: Caller, index: number, attempts = ATTEMPTS): Promise<Peer> => {
    const isTrial = eraOf(caller) === 'legacy' && isLegacyUnknown()
    try {
      return await openOnce(caller, index)
    } catch (error) {
      // A trial needs a process of its own; where the limit allows none, the modern process serves.
      const isAtLimit = isTrial && error instanceof UpstreamFailure && error.reason === 'upstream_busy'
      if (isAtLimit) known.legacy.deny(false)
      if (!(error instanceof WrongEra || isAtLimit) || closing || attempts === 1) throw error
      return openInAnyEra(caller, index, attempts - 1)
    }
  }

  /** The first caller detects the era; callers that come meanwhile wait for that. */
  const detectAndOpen = (caller: Caller, index: number): Promise<Peer> => {
    if (isEraKnown(caller)) return openInAnyEra(caller, index)
    if (probing) {
      const isOwn = isSameUser(probing.caller, caller)
      const refuse = (thrown: unknown): never => {
        throw isOwn ? thrown : forOtherCallers(thrown)
      }
      return probing.peer.then(() => open(caller, index), refuse)
    }
    const peer = openInAnyEra(caller, index)
    const over = () => {
      probing = undefined
    }
    probing = { caller, peer }
    peer.then(over, over)
    return peer
  }

  const open = (caller: Caller, index = 0): Promise<Peer> => {
    if (closing) return Promise.reject(new UpstreamFailure(server.name, DISCONNECTED))
    if (eraOf(caller) === 'modern' && (isModern(caller.revision) || sessions.size === 0))
      return modern.find(caller) ?? detectAndOpen(caller, index)
    // The session that is being opened to detect the era may turn out to be no session at all.
    if (probing && !isEraKnown(caller)) return detectAndOpen(caller, index)
    return pool.find(caller, index) ?? detectAndOpen(caller, index)
  }

  /** One process is enough: another that hangs is found by the calls it does not answer. */
  const probe = async (): Promise<boolean> => {
    if (closing) return false
    const running = modern.all.find(({ isRunning }) => isRunning)
    const transport = [...sessions.values()].find(({ pipes }) => pipes.length > 0)
    return (running ?? transport)?.answersPing() ?? false
  }

  const runsFor = (caller: Caller): boolean => {
    if (eraOf(caller) === 'modern') return modern.find(caller) !== undefined
    const session = pool.peek(sharing.placeOf(caller, 0).key)
    return session !== undefined && sessions.get(session)?.isRunning === true
  }

  const close = async (): Promise<void> => {
    await Promise.all([modern.close(), ...[...sessions.keys()].map(session => session.close()), pool.close()])
    spare.endProcess()
    await link.endAll()
    link.deadlines.close()
  }

  const statusOf = ({ child, invalidLines }: Pipe): ProcessStatus => ({
    pid: child.pid,
    startedAt: child.startedAt,
    invalidLines,
    stderr: link.lastLinesOf(child),
  })

  const pipes = (): readonly Pipe[] => [
    ...[...modern.all, ...sessions.values()].flatMap(({ pipes }) => pipes),
    ...(spare.pipe ? [spare.pipe] : []),
  ]

  return {
    open,
    sharedKey: caller =>
      eraOf(caller) === 'modern' || caller.session !== undefined ? undefined : sharing.placeOf(caller, 0).key,
    probe,
    processCount: () => pipes().length,
    runsFor,
    close: () => (closing ??= close()),
    isIdle: () => sessions.size === 0 && modern.all.every(({ pipes }) => pipes.length === 0) && probing === undefined,
    status: () => ({
      processes: pipes().map(statusOf),
      crashes: link.restarts.crashes,
    }),
  }
}
