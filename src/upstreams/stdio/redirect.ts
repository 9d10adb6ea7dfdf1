import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Exchange, Peer } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { within } from '../../std/time.ts'
import { errorOfThrown } from '../failures.ts'
import type { LegacySession } from '../session/session.ts'
import { askForRoots, rootsIn } from './client-roots.ts'
import type { KnownEra } from './known-era.ts'
import type { Pipe } from './pipe.ts'
import type { SessionSharing } from './session-sharing.ts'

interface RedirectOptions {
  readonly name: string // of the server
  readonly known: KnownEra
  readonly sharing: SessionSharing
  open(caller: Caller): Promise<Peer>
  /** As in StdioTransport. */
  settling(session: LegacySession<Pipe>, caller: Caller): Promise<void> | undefined
}

const TURN_MS = 1000

/** Makes the function that takes the exchanges of a client that must not run in the session it shares; false: they may. */
export const createRedirect = ({ name, known, sharing, open, settling }: RedirectOptions) => {
  /** Its roots are others from now on. */
  const separateAtNextCall = (caller: Caller): true => {
    sharing.separate(caller)
    return true
  }

  /** Clients with the same roots share a process that has been given them. */
  const compareRoots = async (session: LegacySession<Pipe>, exchange: Exchange): Promise<void> => {
    const roots = await askForRoots(exchange)
    if (exchange.signal.reason) return
    if (roots !== undefined && roots === rootsIn(session.roots)) session.setSameRoots(exchange.caller)
    else sharing.separate(exchange.caller)
    dispatchElsewhere(exchange)
  }

  /** Most calls end sooner than another process could start; otherwise the client gets its own. */
  const awaitTurn = async (session: LegacySession<Pipe>, exchange: Exchange): Promise<void> => {
    const { caller, signal } = exchange
    const until = Date.now() + TURN_MS
    const restMs = () => (known.asks === 'anything' || session.isClosing ? 0 : until - Date.now())
    while (sharing.isConflicting(exchange, session) && restMs() > 0)
      await within(restMs(), session.onceAskedByNoOther(caller), () => {})
    if (signal.reason) return
    if (!sharing.isConflicting(exchange, session) && !session.isClosing) return session.dispatch(exchange)
    sharing.separate(caller)
    dispatchElsewhere(exchange)
  }

  const dispatchElsewhere = (exchange: Exchange): void => {
    open(exchange.caller).then(
      peer => {
        if (!exchange.signal.reason) peer.dispatch(exchange)
      },
      (thrown: unknown) => void deliver(exchange.sink, { kind: 'failure', error: errorOfThrown(name, thrown) }),
    )
  }

  /**
   * Takes a call that must not run in a shared session now. Whether a server asks for roots shows when its process starts:
   * another client waits until then, because it must not call a process that has the roots of the first.
   */
  const redirect = (session: LegacySession<Pipe>, exchange: Exchange): boolean => {
    const { caller, method, kind } = exchange
    const hasOtherRoots = kind === 'notification' && method === NOTIFICATIONS.rootsChanged
    if (hasOtherRoots && session.hasSeveralClients) return separateAtNextCall(caller)
    const settled = sharing.isAskable(caller, method) ? settling(session, caller) : undefined
    if (settled) void settled.then(() => dispatchElsewhere(exchange))
    else if (sharing.mayHaveOtherRoots(exchange, session)) void compareRoots(session, exchange)
    else if (sharing.isConflicting(exchange, session)) void awaitTurn(session, exchange)
    else return false
    return true
  }

  return redirect
}
