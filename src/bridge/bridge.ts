import {
  type Caller,
  type Dispatch,
  type Exchange,
  type Peer,
  type Upstream,
  withDispatch,
} from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import { LoginQuestions, type LoginQuestionsOptions } from './login-questions.ts'
import { ParamHeaderWriter } from './param-header-writer.ts'
import { createParking, type ParkingOptions } from './parking/parking.ts'
import { pinRounds } from './pinned-rounds.ts'
import { askInRounds } from './rounds.ts'
import { SharedListens } from './shared-listen/shared-listens.ts'
import { RootsHabit } from './shared-session/session-setup.ts'
import { SharedSession } from './shared-session/shared-session.ts'
import { LegacySubscriptions } from './subscriptions.ts'
import { translate } from './translate.ts'
import { askForUrls } from './url-elicitation.ts'

/** Lets callers of every revision use servers of every revision. */
export interface Bridge {
  wrap(upstream: Upstream, server: string, options?: WrapOptions): Upstream
  /** The number of calls that wait for an answer of their client. */
  parkedCalls(): number
  close(): void
}

interface WrapOptions {
  readonly isLocal?: boolean | undefined // each replica runs the server itself, so its state of a call is valid at one of them
  readonly login?: Omit<LoginQuestionsOptions, 'server' | 'questionTtlMs'> | undefined // undefined: the server never wants one
}

export const createBridge = (options: ParkingOptions): Bridge => {
  const parking = createParking(options)

  const wrap = (upstream: Upstream, server: string, { isLocal = false, login }: WrapOptions = {}): Upstream => {
    const { questionTtlMs } = options
    const pinning = isLocal ? options.home : undefined
    const logins = login && new LoginQuestions({ ...login, server, questionTtlMs })
    const withLogin = new WeakMap<Peer, Peer>() // of peers that are handed out unchanged otherwise
    const subscriptions = new LegacySubscriptions()
    const listens = new SharedListens(upstream)
    const parkedCalls = parking.at(server)
    const paramHeaders = new WeakMap<Peer, ParamHeaderWriter>() // per peer: peers of different callers may list other tools
    const sessions = new WeakMap<Peer, SharedSession>()
    const rootsHabit = new RootsHabit()

    const openLane = async (caller: Caller, lane: number): Promise<SharedSession | undefined> => {
      const peer = await upstream.open(caller, lane)
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

    /** Makes a peer of one era behave like one of the other, before messages are converted. */
    const adapt = (caller: Caller, peer: Peer): Dispatch => {
      if (isModern(caller.revision) === isModern(peer.revision)) return peer.dispatch
      if (isModern(caller.revision)) return sessionOf(peer).serverInfo.wrap(askForUrls(sessionOf(peer)))
      return peer.asks ? peer.dispatch : askInRounds(paramHeadersOf(peer).wrap(peer.dispatch), options)
    }

    const connect = (caller: Caller, peer: Peer): Peer => {
      const parks = peer.asks && isModern(caller.revision)
      if (peer.revision === caller.revision && !parks) {
        const isPinned = pinning && isModern(peer.revision)
        if (isPinned) return withDispatch(peer, pinRounds(server, pinning, peer.dispatch))
        return logins ? askingForLogin(peer, logins) : peer
      }
      let dispatch = adapt(caller, peer)
      if (peer.revision !== caller.revision) dispatch = translate(peer.revision, dispatch, subscriptions)
      if (parks) dispatch = parkedCalls.wrap(dispatch)
      if (logins) dispatch = logins.wrap(dispatch)
      return { revision: caller.revision, asks: peer.asks && !parks, dispatch }
    }

    const askingForLogin = (peer: Peer, questions: LoginQuestions): Peer => {
      const known = withLogin.get(peer) ?? withDispatch(peer, questions.wrap(peer.dispatch))
      withLogin.set(peer, known)
      return known
    }

    const listen = async (exchange: Exchange): Promise<void> => {
      const { caller, signal } = exchange
      const peer = await upstream.open(caller)
      const isOwnSession = !isModern(peer.revision) && caller.session !== undefined
      if (signal.reason && !isOwnSession) return // the session of a client that has left ends by its listener
      if (!isModern(peer.revision)) return connect(caller, peer).dispatch(exchange)
      exchange.record?.sentTo(server)
      const share: Dispatch = each => listens.listen(each, peer)
      if (peer.revision === caller.revision) share(exchange)
      else translate(peer.revision, share, subscriptions)(exchange)
    }

    return {
      listen,
      relisten: () => listens.reconnect(),
      open: caller => upstream.open(caller).then(peer => connect(caller, peer)),
      resume: exchange =>
        isModern(exchange.caller.revision) && (logins?.resume(exchange) || parkedCalls.resume(exchange)),
      close: () => upstream.close(),
    }
  }

  return { wrap, parkedCalls: () => parking.size, close: parking.close }
}
