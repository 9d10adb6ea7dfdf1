import type { RemoteServer } from '../../config/snapshot.ts'
import type { Caller } from '../../protocol/exchange.ts'
import type { UpstreamFailure } from '../failures.ts'
import type { HttpLink } from '../http/http-link.ts'
import { HttpSseTransport } from '../http-sse/http-sse-transport.ts'
import { SpareChannel } from '../http-sse/spare-channel.ts'
import { NoChannel, type SseChannel } from '../http-sse/sse-channel.ts'
import { StreamableTraits, StreamableTransport } from '../streamable/streamable-transport.ts'
import { type Handshake, HandshakeNotAccepted } from './handshake.ts'
import type { ServerSessionRecord } from './server-session-record.ts'
import { LegacySession, type SessionOptions } from './session.ts'

interface OpenOptions extends SessionOptions {
  readonly requiresHandshake: boolean // the server is modern and need not accept one
  readonly record: ServerSessionRecord
}

/** Opens legacy sessions with one server over HTTP, by the transport the server turns out to have. */
export const createSessionOpener = (link: HttpLink, type: RemoteServer['type'], idleMs: number) => {
  const spare = new SpareChannel(idleMs)
  const traits = new StreamableTraits()
  let hasChannels = type === 'sse'
  let hasSessionIds = true // false: a handshake had none, so the server keeps nothing between requests
  let hasAccepted = false // the server accepted a POST at the URL of the channel

  const openChannel = (caller: Caller, options: OpenOptions): Promise<LegacySession> =>
    new LegacySession<SseChannel>(
      options,
      session => new HttpSseTransport(session, caller, { link, hasAccepted, spare, ...options }),
    ).open()

  const openStreamable = async (caller: Caller, options: OpenOptions): Promise<LegacySession> => {
    const session = await new LegacySession<Handshake>(
      options,
      created => new StreamableTransport(created, caller, { link, traits, ...options }),
    ).open()
    hasSessionIds = session.handshake.sessionId !== undefined
    return session
  }

  /** A server that accepts no handshake by POST may answer on a channel. */
  const tryChannel = async (
    caller: Caller,
    options: OpenOptions,
    refusal: HandshakeNotAccepted,
  ): Promise<LegacySession> => {
    hasAccepted = refusal.answer === 'accepted'
    try {
      const session = await openChannel(caller, options)
      hasChannels = true
      link.log.debug({}, 'server uses HTTP+SSE')
      return session
    } catch (error) {
      throw error instanceof NoChannel && !error.isAboutLogin ? moreTelling(refusal, error) : error
    }
  }

  /** A server that had channels before may be another one by now. */
  const tryKnownChannel = async (caller: Caller, options: OpenOptions): Promise<LegacySession> => {
    try {
      return await openChannel(caller, options)
    } catch (error) {
      if (type === 'sse' || !(error instanceof NoChannel) || error.reason !== 'upstream_protocol') throw error
      hasChannels = false
      return await open(caller, options).catch(() => {
        hasChannels = true
        throw error // the first failure: a server may grant one channel only
      })
    }
  }

  /** Rejects with UpstreamFailure. */
  const open = async (caller: Caller, options: OpenOptions): Promise<LegacySession> => {
    if (options.record.stored) return openStreamable(caller, options)
    if (hasChannels) return tryKnownChannel(caller, options)
    try {
      return await openStreamable(caller, options)
    } catch (error) {
      if (error instanceof HandshakeNotAccepted) return tryChannel(caller, options, error)
      throw error
    }
  }

  return {
    open,
    /** Whether the server may keep state in a session. */
    hasState: (): boolean => hasChannels || hasSessionIds,
    expectGetStream: () => traits.setGetStream(true),
    close: () => spare.close(),
  }
}

/** The failure to report after both transports failed. */
const moreTelling = (refusal: HandshakeNotAccepted, noChannel: NoChannel): UpstreamFailure => {
  const isUnclear = !noChannel.isStream || (refusal.answer === 'error' && noChannel.reason === 'upstream_timeout')
  return isUnclear ? refusal : noChannel
}
