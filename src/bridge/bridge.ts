import type { Caller, Dispatch, Exchange, Peer, Upstream } from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import { withDispatch } from '../protocol/with-dispatch.ts'
import { ConnectedPeers } from './connected-peers.ts'
import { DiscoverCache } from './discover-cache.ts'
import { LoginQuestions, type LoginQuestionsOptions } from './login-questions.ts'
import { ParamHeaderWriter } from './param-header-writer.ts'
import { createParking, type ParkingOptions } from './parking/parking.ts'
import { pinRounds } from './pinned-rounds.ts'
import { askInRounds } from './rounds.ts'
import { SharedListens } from './shared-listen/shared-listens.ts'
import { RootsHabit } from './shared-session/session-setup.ts'
import { SharedSession } from './shared-session/shared-session.ts'
import { LegacySubscriptions } from './subscriptions.ts'
import { type BridgeTasksOptions, createBridgeTasks, type TaskAccess } from './tasks/bridge-tasks.ts'
import { driveExtension } from './tasks/extension-task.ts'
import { TaskTools } from './tasks/task-tools.ts'
import { translate } from './translate.ts'
import { askForUrls } from './url-elicitation.ts'

/** Lets callers of every revision use servers of every revision. */
export interface Bridge {
  wrap(upstream: Upstream, server: string, options?: WrapOptions): Upstream
  /** The number of calls that wait for an answer of their client. */
  parkedCalls(): number
  /** The server that a task belongs to, if the caller may use it. */
  serverOfTask(caller: Caller, taskId: string): string | undefined
  /** Adds tasks to `subscriptions/listen` and `server/discover`; `next` serves the rest of them, and every other exchange. */
  addTasks(exchange: Exchange, next: Dispatch): void
  readonly tasks: TaskAccess
  /** The number of tasks that this process runs for clients or servers that lack them. */
  runningTasks(): number
  /** Resolves when tasks that run now, and would be lost with this process, are over, or after that time. */
  tasksSettled(timeoutMs: number): Promise<void>
  /** For a planned stop: tasks of the gateway stay as they are stored, whatever happens to their calls. */
  releaseTasks(): void
  close(): void
}

export interface BridgeOptions extends ParkingOptions {
  readonly tasks?: BridgeTasksOptions | undefined // undefined: the gateway has no tasks of its own
}

interface WrapOptions {
  readonly isLocal?: boolean | undefined // each replica runs the server itself, so its state of a call is valid at one of them
  readonly login?: Omit<LoginQuestionsOptions, 'server' | 'questionTtlMs'> | undefined // undefined: the server never wants one
}

export const createBridge = (options: BridgeOptions): Bridge => {
  const parking = createParking(options)
  const tasks = createBridgeTasks(options)

  const wrap = (upstream: Upstream, server: string, { isLocal = false, login }: WrapOptions = {}): Upstream => {
    const { questionTtlMs } = options
    const pinning = isLocal ? options.home : undefined
    const logins = login && new LoginQuestions({ ...login, server, questionTtlMs })
    const subscriptions = new LegacySubscriptions()
    const listens = new SharedListens(upstream)
    const parkedCalls = parking.at(server)
    const paramHeaders = new WeakMap<Peer, ParamHeaderWriter>() // per peer: peers of different callers may list other tools
    const sessions = new WeakMap<Peer, SharedSession>()
    const rootsHabit = new RootsHabit()
    const taskTools = new WeakMap<Peer, TaskTools>() // by the peer that runs calls as tasks where a tool needs it
    const runningTasks = new WeakMap<Peer, Peer>()
    const connections = new ConnectedPeers()
    const discoverCaches = new WeakMap<Peer, DiscoverCache>() // per peer: one with other credentials may be told something else

    /** The peer of a server that may have tools which only run as tasks, for callers without tasks. */
    const drive = (peer: Peer): Peer => {
      if (!peer.runsTasks) return peer
      const known = runningTasks.get(peer)
      if (known) return known
      const tools = new TaskTools()
      const driven = withDispatch(peer, tools.wrap(peer.dispatch))
      runningTasks.set(peer, driven)
      taskTools.set(driven, tools)
      return driven
    }

    const openPeer = async (caller: Caller, lane?: number): Promise<Peer> => drive(await upstream.open(caller, lane))

    const openLane = async (caller: Caller, lane: number): Promise<SharedSession | undefined> => {
      const peer = await openPeer(caller, lane)
      return isModern(peer.revision) ? undefined : sessionOf(peer)
    }

    const sessionOf = (peer: Peer): SharedSession => {
      const session = sessions.get(peer) ?? new SharedSession(peer, openLane, rootsHabit)
      sessions.set(peer, session)
      return session
    }

    const paramHeadersOf = (peer: Peer): ParamHeaderWriter => {
      const headers = paramHeaders.get(peer) ?? new ParamHeaderWriter()
      paramHeaders.set(peer, headers)
      return headers
    }

    const discoverCacheOf = (peer: Peer): DiscoverCache => {
      const cache = discoverCaches.get(peer) ?? new DiscoverCache()
      discoverCaches.set(peer, cache)
      return cache
    }

    /** Makes a peer of one era behave like one of the other, before messages are converted. */
    const adapt = (caller: Caller, peer: Peer): Dispatch => {
      if (isModern(caller.revision) === isModern(peer.revision)) return peer.dispatch
      if (isModern(caller.revision)) return sessionOf(peer).serverInfo.wrap(askForUrls(sessionOf(peer)))
      return peer.asks
        ? driveExtension(peer.dispatch)
        : askInRounds(driveExtension(paramHeadersOf(peer).wrap(peer.dispatch)), options)
    }

    const connect = (caller: Caller, peer: Peer): Peer =>
      connections.find(caller, peer) ?? connections.add(caller, peer, connectWithTasks(caller, peer))

    const connectWithTasks = (caller: Caller, peer: Peer): Peer =>
      calls.wrap(caller, { plain: connectPlainly(caller, peer), tools: taskTools.get(peer), server: peer })

    const connectPlainly = (caller: Caller, peer: Peer): Peer => {
      const parks = peer.asks && isModern(caller.revision)
      if (peer.revision === caller.revision && !parks) {
        const isPinned = pinning && isModern(peer.revision)
        if (isPinned) return withDispatch(peer, pinRounds(server, pinning, peer.dispatch))
        return logins ? withDispatch(peer, logins.wrap(peer.dispatch)) : peer
      }
      let dispatch = adapt(caller, peer)
      if (isModern(peer.revision) && !isModern(caller.revision)) {
        const cache = discoverCacheOf(peer)
        dispatch = cache.wrap(translate(peer.revision, dispatch, subscriptions, cache.keep))
      } else if (peer.revision !== caller.revision) dispatch = translate(peer.revision, dispatch, subscriptions)
      if (parks) dispatch = parkedCalls.wrap(dispatch)
      if (logins) dispatch = logins.wrap(dispatch)
      return { revision: caller.revision, asks: peer.asks && !parks, dispatch }
    }

    const listen = async (exchange: Exchange): Promise<void> => {
      const { caller, signal } = exchange
      const peer = await openPeer(caller)
      const isOwnSession = !isModern(peer.revision) && caller.session !== undefined
      if (signal.reason && !isOwnSession) return // the session of a client that has left ends by its listener
      if (!isModern(peer.revision)) return connect(caller, peer).dispatch(exchange)
      exchange.record?.sentTo(server)
      const share: Dispatch = each => listens.listen(each, peer)
      if (peer.revision === caller.revision) share(exchange)
      else translate(peer.revision, share, subscriptions)(exchange)
    }

    const open = (caller: Caller): Promise<Peer> => openPeer(caller).then(peer => connect(caller, peer))
    const isElsewhere = async (caller: Caller): Promise<boolean> => (await openPeer(caller)).isReplica === true
    const { calls, serve } = tasks.at(server, open, isElsewhere)

    return {
      listen,
      relisten: () => listens.reconnect(),
      open,
      knownPeer: caller => {
        const peer = upstream.knownPeer?.(caller)
        return peer && connect(caller, drive(peer))
      },
      resume: exchange => {
        if (serve(exchange)) return true
        if (!isModern(exchange.caller.revision)) return false
        return logins?.resume(exchange) || calls.resumeParked(exchange, parkedCalls.resume)
      },
      close: () => upstream.close(),
    }
  }

  const close = (): void => {
    tasks.close()
    parking.close()
  }
  return {
    wrap,
    parkedCalls: () => parking.size,
    serverOfTask: tasks.serverOf,
    addTasks: tasks.addTo,
    tasks: tasks.access,
    runningTasks: () => tasks.tasks.size,
    tasksSettled: timeoutMs => tasks.tasks.whenSettled(timeoutMs),
    releaseTasks: tasks.close,
    close,
  }
}
