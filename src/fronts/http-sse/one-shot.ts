import { Abort } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import { OLDEST } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import type { Incoming, Message } from '../../wire/json-rpc.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { sendEmpty, sendError } from '../http/response.ts'
import { Answers, type Outcome } from '../sessions/answers.ts'
import { ClientSession } from '../sessions/client-session.ts'
import { readHello, shakeHands } from '../sessions/handshake.ts'
import { type Manner, type Reply, receive } from '../sessions/receive.ts'

/** A legacy client without a session: 2024-11-05, no capabilities, one POST and its answer. */
class Passerby extends ClientSession {
  constructor(house: FrontContext, { workspace, principal, policy }: FrontRequest) {
    super({ workspace, principal, policy, revision: OLDEST, capabilities: Json.empty, headers: new Map() }, house)
  }

  override begin(): void {} // it will not be there to hear anything

  override say(): void {}
}

/** One JSON body; without a client that waits for it the calls end. */
class BodyReply implements Reply {
  readonly takesMore = false
  readonly #visit: FrontRequest
  readonly #answers: Answers
  readonly #calls: Abort[] = []

  constructor(visit: FrontRequest, isBatch: boolean) {
    this.#visit = visit
    this.#answers = new Answers(isBatch)
    visit.response.on('close', () => this.#giveUp())
  }

  expect(call: Abort): number {
    this.#calls.push(call)
    return this.#answers.expect()
  }

  say(): void {}

  respond(index: number, outcome: Outcome): void {
    this.#answers.give(index, outcome)
    if (this.#answers.isComplete && !this.#visit.response.destroyed) this.#answers.sendTo(this.#visit.response)
  }

  #giveUp(): void {
    for (const [index, call] of this.#calls.entries()) if (!this.#answers.has(index)) call.abort({ kind: 'gone' })
  }
}

const MANNER: Manner<Passerby> = {
  reply: (_house, _passerby, visit, isBatch) => new BodyReply(visit, isBatch),
  accept: visit => sendEmpty(visit.response, 202),
  refuse: (visit, error) => sendError(visit.response, 400, undefined, error),
}

/** Answers a message that belongs to no session, with no handshake before it and nothing kept after it. */
export const serveOnce = (house: FrontContext, visit: FrontRequest, incoming: Incoming): void => {
  const passerby = new Passerby(house, visit)
  if (incoming.kind === 'invalid')
    return sendError(
      visit.response,
      400,
      incoming.id,
      rpcError('invalidRequest', `Invalid Request: ${incoming.reason}`),
    )
  if (incoming.kind === 'request' && incoming.method === 'initialize')
    return introduce(house, passerby, visit, incoming)
  receive(house, passerby, visit, incoming, MANNER)
}

const introduce = (
  house: FrontContext,
  { caller }: Passerby,
  visit: FrontRequest,
  { id, params }: Message & { kind: 'request' },
) => {
  const hello = readHello(params)
  if (typeof hello === 'string') return sendError(visit.response, 400, id, rpcError('invalidParams', hello))
  const reply = new BodyReply(visit, false)
  const abort = new Abort()
  const index = reply.expect(abort)
  shakeHands(house, { ...caller, ...hello }, id, abort, outcome => reply.respond(index, outcome))
}
