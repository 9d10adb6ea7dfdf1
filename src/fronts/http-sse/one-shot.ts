import { Abort } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import { OLDEST } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import type { Incoming } from '../../wire/json-rpc.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { invalidMessage } from '../http/read-request.ts'
import { sendError } from '../http/response.ts'
import { ClientSession } from '../sessions/client-session.ts'
import { readInitialize } from '../sessions/handshake.ts'
import { type Responder, receiveMessage } from '../sessions/receive.ts'
import { BodyWriter, EMPTY_RESPONDER, handshakeOrigin } from '../sessions/response-collector.ts'

/** A legacy client without a session: 2024-11-05, no capabilities, one POST and its response. */
class SessionlessClient extends ClientSession {
  constructor(context: FrontContext, { workspace, principal, policy, scopes }: FrontRequest) {
    const caller = { workspace, principal, policy, scopes, revision: OLDEST, capabilities: Json.empty }
    super({ ...caller, headers: new Map() }, context)
  }

  override listen(): void {} // the client has no stream to receive anything on

  override send(): void {}
}

/** Writes one JSON body; the calls end if the client disconnects. */
const createWriter = (context: FrontContext, request: FrontRequest, isBatch: boolean): BodyWriter => {
  const writer = new BodyWriter(context, request, isBatch)
  request.response.on('close', () => writer.abortPending({ kind: 'gone' }))
  return writer
}

const RESPONDER: Responder<SessionlessClient> = {
  createWriter: ({ context }, request, isBatch) => createWriter(context, request, isBatch),
  ...EMPTY_RESPONDER,
}

/** Serves a message that belongs to no session, without a handshake and without keeping anything. */
export const serveOnce = (context: FrontContext, request: FrontRequest, incoming: Incoming): void => {
  const client = new SessionlessClient(context, request)
  if (incoming.kind === 'invalid') return sendError(request.response, 400, incoming.id, invalidMessage(incoming.reason))
  if (incoming.kind !== 'request' || incoming.method !== 'initialize')
    return receiveMessage(client, request, incoming, RESPONDER)
  const { id, params } = incoming
  const identity = readInitialize(params)
  if (typeof identity === 'string') return sendError(request.response, 400, id, rpcError('invalidParams', identity))
  const abort = new Abort()
  const origin = handshakeOrigin(request, id, params)
  client.initialize(identity, origin, abort, createWriter(context, request, false).expect(abort))
}
