import { Abort } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { errorPieces, type Incoming, type Message } from '../../wire/json-rpc.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { idOf } from '../http/read-request.ts'
import { sendEmpty, sendError } from '../http/response.ts'
import { readHello, shakeHands } from '../sessions/handshake.ts'
import { receive } from '../sessions/receive.ts'
import type { Channel, Door } from './channel.ts'
import { CHANNEL_MANNERS } from './channel-reply.ts'
import type { Channels } from './channels.ts'

const DEAD_CHANNEL = rpcError(
  'invalidRequest',
  'Session not found: its stream has closed or is not yours; open a new one',
)
const INITIALIZED = rpcError('invalidRequest', 'This session is already initialized')
const ONE_STREAM = rpcError('invalidRequest', 'This session is an SSE channel: it has the stream it was opened with')

/** 2024-11-05 to 2025-11-25 over HTTP+SSE: a stream that is the session, and messages posted beside it. */
export const createHttpSse = (house: FrontContext, channels: Channels) => {
  /** The channel of an id, or nothing after having refused it. */
  const find = (visit: FrontRequest, id: string, incoming: Incoming | undefined): Channel | undefined => {
    const channel = channels.find(id, visit.principal)
    if (channel?.caller.workspace === visit.workspace) return channel
    sendError(visit.response, 404, idOf(incoming), DEAD_CHANNEL)
    return undefined
  }

  /** A message for the channel of that id. */
  const post = (visit: FrontRequest, incoming: Incoming, door: Door, id: string): void => {
    const channel = find(visit, id, incoming)
    if (channel) deliver(channel, visit, incoming, door)
  }

  /** A message without an id: for the one channel its sender has open at this door, if that is so. */
  const postLoose = (visit: FrontRequest, incoming: Incoming): boolean => {
    const channel = channels.sole(visit)
    if (channel) deliver(channel, visit, incoming, 'mcp')
    return channel !== undefined
  }

  const deliver = (channel: Channel, visit: FrontRequest, incoming: Incoming, door: Door): void => {
    if (incoming.kind === 'invalid') {
      const error = rpcError('invalidRequest', `Invalid Request: ${incoming.reason}`)
      return sendError(visit.response, 400, incoming.id, error)
    }
    channel.allow(visit.policy)
    channel.entered(door)
    try {
      if (incoming.kind === 'request' && incoming.method === 'initialize') initialize(channel, visit, incoming, door)
      else receive(house, channel, visit, incoming, CHANNEL_MANNERS[door])
    } catch (error) {
      // Its client may wait on the channel for an answer that will never come.
      channel.fail(rpcError('internal'))
      throw error
    }
  }

  const initialize = (
    channel: Channel,
    visit: FrontRequest,
    request: Message & { kind: 'request' },
    door: Door,
  ): void => {
    const { id, params } = request
    if (channel.isGreeted) return sendError(visit.response, 400, id, INITIALIZED)
    const reply = CHANNEL_MANNERS[door].reply(house, channel, visit, false)
    const call = new Abort()
    const index = reply.expect(call)
    const refuse = (error: RpcError) => reply.respond(index, errorPieces(id, error))
    const hello = readHello(params)
    if (typeof hello === 'string') return refuse(rpcError('invalidParams', hello))
    const clash = channel.running.add(id, params, call) // it ends with the channel, as every call does
    if (clash) return refuse(clash)
    const caller = channel.greet(hello)
    shakeHands(house, caller, id, call, (outcome, isWelcome) => {
      channel.running.delete(id)
      channel.greeted(caller, isWelcome)
      reply.respond(index, outcome)
    })
  }

  const end = (visit: FrontRequest, id: string): void => {
    const channel = find(visit, id, undefined)
    if (!channel) return
    channel.end('closed')
    sendEmpty(visit.response, 200)
  }

  const refuseStream = (visit: FrontRequest, id: string): void => {
    if (find(visit, id, undefined)) sendError(visit.response, 405, undefined, ONE_STREAM, { allow: 'POST, DELETE' })
  }

  return {
    open: (visit: FrontRequest, door: 'sse' | 'mcp'): void => channels.open(visit, door),
    workspaceOf: (id: string): string | undefined => channels.peek(id)?.caller.workspace,
    post,
    postLoose,
    end,
    refuseStream,
  }
}

export type HttpSse = ReturnType<typeof createHttpSse>
