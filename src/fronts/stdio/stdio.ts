import { randomUUID } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { Abort } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { META } from '../../protocol/meta.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { OLDEST } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { encodeError, type Incoming, type Message, readIncoming } from '../../wire/json-rpc.ts'
import { LineDecoder, LineTooLong } from '../../wire/ndjson.ts'
import type { FrontContext } from '../http/front-request.ts'
import { invalidMessage, requestIdOf } from '../http/read-request.ts'
import { findOversizedBody } from '../sessions/client-limits.ts'
import { ClientSession } from '../sessions/client-session.ts'
import { INITIALIZED, readInitialize } from '../sessions/handshake.ts'
import { type Responder, receiveMessage } from '../sessions/receive.ts'
import type { CallOutcome, ResponseWriter } from '../sessions/response-collector.ts'
import { LineOutbox } from '../streams/outbox.ts'
import { createModernRequests } from './modern-requests.ts'

interface StdioOptions {
  readonly input: Readable
  readonly output: Writable
  readonly workspace: string
  readonly principal: string | undefined
}

const MOST_WAITING = 1000
const TOO_MANY_WAITING = rpcError(
  'invalidRequest',
  `More than ${MOST_WAITING} messages came before the response to initialize: wait for it`,
)

/** Serves one client of either era over a pipe, one message per line; resolves when the client has closed it. */
export const serveStdio = (context: FrontContext, options: StdioOptions): Promise<void> =>
  new Promise(resolve => {
    const pipe = new PipeSession(context, options)
    options.input.on('data', chunk => pipe.feed(chunk))
    let isClosed = false
    const close = (): void => {
      if (isClosed) return
      isClosed = true
      void pipe.end().then(resolve)
    }
    for (const event of ['end', 'close', 'error']) options.input.on(event, close)
    for (const event of ['close', 'error']) options.output.on(event, close)
  })

/** The client on a pipe: a legacy session, beside which the client may send modern requests. */
class PipeSession extends ClientSession {
  readonly #outbox: LineOutbox
  readonly #modern: ReturnType<typeof createModernRequests>
  readonly #lines: LineDecoder
  readonly #responder: Responder<PipeSession, undefined>
  #waiting: Incoming[] | undefined // what came after an `initialize` without a response yet

  constructor(context: FrontContext, { output, workspace, principal }: StdioOptions) {
    const base = { workspace, principal, headers: new Map() }
    super({ ...base, revision: OLDEST, capabilities: Json.empty, session: randomUUID(), isTransient: true }, context)
    const maxBytes = context.limits.bodyBytes
    this.#outbox = new LineOutbox(output, maxBytes)
    this.#modern = createModernRequests(context, base, this.inFlight, this.#outbox)
    this.#lines = new LineDecoder(line => this.#receiveLine(line), { maxBytes })
    const writer: ResponseWriter = {
      canSendMore: true,
      expect: () => outcome => this.#respond(outcome),
      send: (pieces, merge) => this.send(pieces, merge),
    }
    this.#responder = {
      createWriter: () => writer,
      accept: () => {},
      reject: (_request, error) => this.#reject(undefined, error),
    }
  }

  override send(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.#outbox.send(pieces, merge)
  }

  feed(chunk: Buffer): void {
    try {
      this.#lines.feed(chunk)
    } catch (error) {
      if (!(error instanceof LineTooLong)) throw error
      this.#reject(undefined, rpcError('invalidRequest', error.message))
    }
  }

  async end(): Promise<void> {
    this.stop()
    await this.#outbox.finish()
  }

  #receiveLine(line: Buffer): void {
    try {
      const incoming = readIncoming(line)
      const tooLarge = findOversizedBody(incoming, line.length)
      if (tooLarge !== undefined) return this.#reject(requestIdOf(incoming), rpcError('invalidRequest', tooLarge))
      this.#receive(incoming)
    } catch (error) {
      if (error instanceof JsonSyntaxError)
        return this.#reject(undefined, rpcError('parse', `Parse error: ${error.message}`))
      this.context.log.error({ err: error }, 'message failed with an internal error')
    }
  }

  #receive(incoming: Incoming): void {
    if (incoming.kind === 'invalid') return this.#reject(incoming.id, invalidMessage(incoming.reason))
    if (incoming.kind === 'request') {
      if (incoming.params.at('_meta', META.protocolVersion)) return this.#modern.run(incoming)
      if (incoming.method === 'initialize') return this.#initialize(incoming)
    }
    if (incoming.kind === 'notification') {
      if (incoming.method === NOTIFICATIONS.cancelled && this.inFlight.cancel(incoming.params)) return
      if (!this.isInitialized) return this.#modern.notify(incoming)
    }
    if (this.#waiting) return this.#wait(incoming, this.#waiting)
    receiveMessage(this, undefined, incoming, this.#responder)
  }

  /** Until the handshake is over, the session has neither the client's revision nor its capabilities. */
  #wait(incoming: Incoming, waiting: Incoming[]): void {
    if (waiting.length >= MOST_WAITING) return this.#reject(requestIdOf(incoming), TOO_MANY_WAITING)
    waiting.push(incoming)
  }

  #initialize({ id, params }: Message & { kind: 'request' }): void {
    const identity = readInitialize(params)
    if (typeof identity === 'string') return this.#reject(id, rpcError('invalidParams', identity))
    if (this.isInitialized) return this.#reject(id, INITIALIZED)
    this.#waiting = []
    this.initialize(identity, { id, initialize: params }, new Abort(), outcome => {
      this.#respond(outcome)
      const waiting = this.#waiting ?? []
      this.#waiting = undefined
      if (!this.isEnded) for (const each of waiting) this.#receive(each)
    })
  }

  #respond(outcome: CallOutcome): void {
    if (outcome !== 'none') void this.send(outcome)
  }

  #reject(id: Json | undefined, error: RpcError): void {
    void this.send(encodeError(id, error))
  }
}
