import type { Abort } from '../../protocol/cancellation.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { FrontRequest } from '../http/front-request.ts'
import { sendEmpty, sendError } from '../http/response.ts'
import { Answers, type Outcome } from '../sessions/answers.ts'
import type { Manner, Reply } from '../sessions/receive.ts'
import type { Channel, Door } from './channel.ts'

const ACCEPTED = Buffer.from('Accepted')

const sayAccepted = ({ response }: FrontRequest): void => {
  response.writeHead(202, { 'content-type': 'text/plain', 'content-length': ACCEPTED.length })
  response.end(ACCEPTED)
}

const acceptSilently = ({ response }: FrontRequest): void => sendEmpty(response, 202)

const refuse = ({ response }: FrontRequest, error: RpcError): void => sendError(response, 400, undefined, error)

/** How each door answers a message for a channel. */
export const CHANNEL_MANNERS: Readonly<Record<Door, Manner<Channel>>> = {
  messages: {
    reply: (_house, channel, visit) => new ChannelReply(channel, 'messages', sayAccepted, visit),
    accept: sayAccepted,
    refuse,
  },
  message: {
    reply: (_house, channel, visit, isBatch) => new DirectReply(channel, visit, isBatch),
    accept: acceptSilently,
    refuse,
  },
  mcp: {
    reply: (_house, channel, visit) => new ChannelReply(channel, 'mcp', acceptSilently, visit),
    accept: acceptSilently,
    refuse,
  },
}

/** Answers on the channel; the POST has only been accepted. */
class ChannelReply implements Reply {
  readonly takesMore = true
  readonly #channel: Channel
  readonly #door: Door

  constructor(channel: Channel, door: Door, accept: Manner<Channel>['accept'], visit: FrontRequest) {
    this.#channel = channel
    this.#door = door
    accept(visit)
  }

  expect(_call: Abort): number {
    return 0
  }

  say(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.#channel.say(pieces, merge)
  }

  respond(_index: number, outcome: Outcome): void {
    if (outcome !== 'none') this.#channel.answer(this.#door, outcome)
  }
}

/** Answers on the channel and in the body of the POST. */
class DirectReply implements Reply {
  readonly takesMore = true
  readonly #channel: Channel
  readonly #visit: FrontRequest
  readonly #answers: Answers

  constructor(channel: Channel, visit: FrontRequest, isBatch: boolean) {
    this.#channel = channel
    this.#visit = visit
    this.#answers = new Answers(isBatch)
  }

  expect(_call: Abort): number {
    return this.#answers.expect()
  }

  say(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.#channel.say(pieces, merge)
  }

  respond(index: number, outcome: Outcome): void {
    if (outcome !== 'none') this.#channel.answer('message', outcome)
    this.#answers.give(index, outcome)
    if (this.#answers.isComplete && !this.#visit.response.destroyed) this.#answers.sendTo(this.#visit.response)
  }
}
