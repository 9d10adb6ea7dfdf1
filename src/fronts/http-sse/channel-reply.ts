import type { Abort } from '../../protocol/cancellation.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { FrontRequest } from '../http/front-request.ts'
import { sendEmpty, sendError } from '../http/response.ts'
import type { Responder } from '../sessions/receive.ts'
import { BodyWriter, type CallOutcome, type ResponseWriter } from '../sessions/response-collector.ts'
import type { PostEndpoint, SseChannel } from './channel.ts'

const ACCEPTED = Buffer.from('Accepted')

const sendAccepted = ({ response }: FrontRequest): void => {
  response.writeHead(202, { 'content-type': 'text/plain', 'content-length': ACCEPTED.length })
  response.end(ACCEPTED)
}

const sendEmptyAccepted = ({ response }: FrontRequest): void => sendEmpty(response, 202)

const reject = ({ response }: FrontRequest, error: RpcError): void => sendError(response, 400, undefined, error)

/** How each endpoint responds to a message for a channel. */
export const CHANNEL_RESPONDERS: Readonly<Record<PostEndpoint, Responder<SseChannel>>> = {
  messages: {
    createWriter: (_context, channel, request) => {
      sendAccepted(request)
      return new ChannelWriter(channel, 'messages')
    },
    accept: sendAccepted,
    reject,
  },
  message: {
    createWriter: (_context, channel, request, isBatch) =>
      new ChannelWriter(channel, 'message', new BodyWriter(request.response, isBatch)),
    accept: sendEmptyAccepted,
    reject,
  },
  mcp: {
    createWriter: (_context, channel, request) => {
      sendEmptyAccepted(request)
      return new ChannelWriter(channel, 'mcp')
    },
    accept: sendEmptyAccepted,
    reject,
  },
}

/** Writes responses to the channel, and to the body of the POST if that has not been sent yet. */
class ChannelWriter implements ResponseWriter {
  readonly canSendMore = true
  readonly #channel: SseChannel
  readonly #endpoint: PostEndpoint
  readonly #body: BodyWriter | undefined

  constructor(channel: SseChannel, endpoint: PostEndpoint, body?: BodyWriter) {
    this.#channel = channel
    this.#endpoint = endpoint
    this.#body = body
  }

  expect(call: Abort): number {
    return this.#body?.expect(call) ?? 0
  }

  send(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.#channel.send(pieces, merge)
  }

  respond(index: number, outcome: CallOutcome): void {
    this.#channel.respond(this.#endpoint, outcome)
    this.#body?.respond(index, outcome)
  }
}
