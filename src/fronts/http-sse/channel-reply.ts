import type { Abort } from '../../protocol/cancellation.ts'
import type { FrontRequest } from '../http/front-request.ts'
import type { Responder } from '../sessions/receive.ts'
import { BodyWriter, type CallOutcome, EMPTY_RESPONDER, type ResponseWriter } from '../sessions/response-collector.ts'
import type { ClientChannel, PostEndpoint } from './channel.ts'

const ACCEPTED = Buffer.from('Accepted')

const sendAccepted = ({ response }: FrontRequest): void => {
  response.writeHead(202, { 'content-type': 'text/plain', 'content-length': ACCEPTED.length })
  response.end(ACCEPTED)
}

const createResponder = (endpoint: PostEndpoint, accept = EMPTY_RESPONDER.accept): Responder<ClientChannel> => ({
  createWriter: (_context, channel, request, isBatch) => {
    if (endpoint === 'message') return new ChannelWriter(channel, endpoint, new BodyWriter(request.response, isBatch))
    accept(request)
    return new ChannelWriter(channel, endpoint)
  },
  accept,
  reject: EMPTY_RESPONDER.reject,
})

/** How each endpoint responds to a message for a channel; `/message` repeats the responses in the body of the POST. */
export const CHANNEL_RESPONDERS: Readonly<Record<PostEndpoint, Responder<ClientChannel>>> = {
  messages: createResponder('messages', sendAccepted),
  message: createResponder('message'),
  mcp: createResponder('mcp'),
}

/** Writes responses to the channel, and to the body of the POST if that has not been sent yet. */
class ChannelWriter implements ResponseWriter {
  readonly canSendMore = true
  readonly #channel: ClientChannel
  readonly #endpoint: PostEndpoint
  readonly #body: BodyWriter | undefined

  constructor(channel: ClientChannel, endpoint: PostEndpoint, body?: BodyWriter) {
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
