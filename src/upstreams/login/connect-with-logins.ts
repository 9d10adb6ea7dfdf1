import type { CallerValues } from '../../config/caller-values.ts'
import { RpcFailure } from '../../protocol/errors.ts'
import type { Caller, Upstream } from '../../protocol/exchange.ts'
import { headerValueError } from '../../std/header-text.ts'
import { type CallerUpstream, connectPerCaller } from '../connect-per-caller.ts'
import type { UpstreamLogins } from './upstream-logins.ts'

interface WithLoginsOptions {
  readonly name: string // of the server
  readonly personal: CallerValues | undefined // headers that differ by caller
  readonly logins: UpstreamLogins
  /** The upstream of all callers, which sends no token. */
  readonly connectShared: () => CallerUpstream
  readonly connectOwn: (headers: Readonly<Record<string, string>>, principal: string | undefined) => CallerUpstream
}

const NO_VALUES: CallerValues = { values: {} }

/**
 * Connects to a server that may want a login of each user. Until it asks for one, all callers share an upstream; from then
 * on each principal has its own, so that no request, session or list can carry the token of another.
 */
export const connectWithLogins = (options: WithLoginsOptions): Upstream => {
  const { name, personal, logins, connectShared, connectOwn } = options
  const { credentials, demand } = logins
  const shared = connectShared()
  const own = connectPerCaller({
    name,
    personal: personal ?? NO_VALUES,
    faultOf: headerValueError,
    connect: (headers, { principal }) => connectOwn(headers, principal),
  })
  const isOwn = (caller: Caller): boolean =>
    personal !== undefined || (demand.isKnown && caller.isHealthCheck === undefined)
  const upstreamOf = (caller: Caller): Upstream => (isOwn(caller) ? own : shared)

  /** What was opened with a login ends with it. */
  const changed = (principal: string | undefined, token: string | undefined): void => {
    if (token === undefined) own.disconnect(principal)
    else demand.record() // the user has logged in before the server was called
  }
  const stopListening = credentials.onChanged(principal => {
    const token = credentials.bearerOf(principal)
    if (token instanceof Promise) void token.then(found => changed(principal, found))
    else changed(principal, token)
  })

  /**
   * Opens with the caller's own upstream, if the shared one was refused just now and no login seems to be offered: without
   * metadata only a request to log in shows whether there is one.
   */
  const open: Upstream['open'] = (caller, sessionIndex) => {
    const upstream = upstreamOf(caller)
    const opening = upstream.open(caller, sessionIndex)
    if (upstream === own) return opening
    return opening.catch((error: unknown) => {
      const isAsked = error instanceof RpcFailure && error.error.data?.get('reason')?.isString('login_required')
      if (isAsked || !isOwn(caller)) throw error
      return own.open(caller, sessionIndex)
    })
  }

  return {
    open,
    knownPeer: caller => upstreamOf(caller).knownPeer?.(caller),
    sharedKey: caller => upstreamOf(caller).sharedKey?.(caller),
    probe: async () => (demand.isKnown && (await own.probe?.())) || (shared.probe?.() ?? false),
    close: async () => {
      stopListening()
      await Promise.all([shared.close(), own.close()])
    },
  }
}
