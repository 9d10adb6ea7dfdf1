import type { RemoteServer } from '../../config/snapshot.ts'
import type { Caller } from '../../protocol/exchange.ts'
import type { UpstreamFailure } from '../failures.ts'
import type { HttpLink } from '../http/http-link.ts'
import { NoChannel } from '../http-sse/channel.ts'
import { ChannelSession } from '../http-sse/http-sse.ts'
import { SpareChannel } from '../http-sse/spare-channel.ts'
import { StreamableSession } from '../streamable/streamable.ts'
import { NotTaken } from './handshake.ts'
import type { LegacySession, SessionOptions } from './session.ts'
import type { SessionCall } from './session-call.ts'

type Session = LegacySession<SessionCall>

/** Opens legacy sessions with one server, the way they turn out to travel there; rejects with UpstreamFailure. */
export const createLegacy = (link: HttpLink, type: RemoteServer['type'], idleMs: number) => {
  const spare = new SpareChannel(idleMs)
  let hasChannels = type === 'sse'
  let hasAccepted = false // requests, at the address of the channel

  const openChannel = (caller: Caller, options: SessionOptions): Promise<Session> =>
    ChannelSession.open(link, caller, options, { hasAccepted, spare })

  /** A server that takes no handshake here may be one that answers on a channel. */
  const tryChannel = async (caller: Caller, options: SessionOptions, refusal: NotTaken): Promise<Session> => {
    hasAccepted = refusal.answer === 'accepted'
    try {
      const session = await openChannel(caller, options)
      hasChannels = true
      link.log.debug({}, 'the server answers on an SSE channel')
      return session
    } catch (error) {
      throw error instanceof NoChannel ? moreTelling(refusal, error) : error
    }
  }

  /** What was a channel may be something else by now. */
  const tryKnownChannel = async (caller: Caller, options: SessionOptions): Promise<Session> => {
    try {
      return await openChannel(caller, options)
    } catch (error) {
      if (type === 'sse' || !(error instanceof NoChannel) || error.reason !== 'upstream_protocol') throw error
      hasChannels = false
      return await open(caller, options).catch(() => {
        hasChannels = true
        throw error // what the channel said; a server may grant one only
      })
    }
  }

  const open = async (caller: Caller, options: SessionOptions): Promise<Session> => {
    if (hasChannels) return tryKnownChannel(caller, options)
    try {
      return await StreamableSession.open(link, caller, options)
    } catch (error) {
      if (error instanceof NotTaken) return tryChannel(caller, options, error)
      throw error
    }
  }

  return { open, close: () => spare.close() }
}

/** What to tell of two attempts that failed. */
const moreTelling = (refusal: NotTaken, noChannel: NoChannel): UpstreamFailure => {
  const isUnclear = !noChannel.isStream || (refusal.answer === 'error' && noChannel.reason === 'upstream_timeout')
  return isUnclear ? refusal : noChannel
}
