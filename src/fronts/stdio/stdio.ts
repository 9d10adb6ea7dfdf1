import { randomUUID } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { Abort } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { OLDEST } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { errorPieces, type Incoming, type Message, readIncoming } from '../../wire/json-rpc.ts'
import { LineDecoder, LineTooLong } from '../../wire/ndjson.ts'
import type { FrontContext } from '../http/front-request.ts'
import { invalidMessage, requestIdOf } from '../http/read-request.ts'
import { findOversizedBody } from '../sessions/client-limits.ts'
import { ClientSession } from '../sessions/client-session.ts'
import { readInitialize } from '../sessions/handshake.ts'
import { type Responder, receiveMessage } from '../sessions/receive.ts'
import type { ResponseWriter } from '../sessions/response-collector.ts'
import { LineOutbox } from '../streams/outbox.ts'
import { ModernRequests } from './modern-requests.ts'

interface StdioOptions {
  readonly input: Readable
  readonly output: Writable
  readonly workspace: string
  readonly principal: string | undefined
}

/** Serves one client of either era over a pipe, one message per line; resolves when the client has closed it. */
export const serveStdio = (context: FrontContext, options: StdioOptions): Promise<void> =>
  new Promise(resolve => {
    const pipe = new Pipe(context, options)
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

class Pipe {
  readonly #context: FrontContext
  readonly #outbox: LineOutbox
  readonly #session: PipeSession
  readonly #modern: ModernRequests
  readonly #responder: Responder<PipeSession, undefined>
  readonly #lines: LineDecoder

  constructor(context: FrontContext, { output, workspace, principal }: StdioOptions) {
    this.#context = context
    const outbox = new LineOutbox(output, context.limits.bodyBytes)
    const base = { workspace, principal, headers: new Map() }
    const caller = { ...base, revision: OLDEST, capabilities: Json.empty, session: randomUUID() }
    this.#outbox = outbox
    this.#session = new PipeSession(caller, context, outbox)
    this.#modern = new ModernRequests(context, base, this.#session.inFlight, outbox)
    this.#lines = new LineDecoder(line => this.#receiveLine(line), { maxBytes: context.limits.bodyBytes })
    const writer: ResponseWriter = {
      canSendMore: true,
      expect: () => 0,
      send: (pieces, merge) => outbox.send(pieces, merge),
      respond: (_index, outcome) => {
        if (outcome !== 'none') void outbox.send(outcome)
      },
    }
    this.#responder = {
      createWriter: () => writer,
      accept: () => {},
      reject: (_request, error) => this.#reject(undefined, error),
    }
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
    this.#session.end()
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
      this.#context.log.error({ err: error }, 'message failed with an internal error')
    }
  }

  #receive(incoming: Incoming): void {
    if (incoming.kind === 'invalid') return this.#reject(incoming.id, invalidMessage(incoming.reason))
    if (incoming.kind === 'request') {
      if (incoming.params.at('_meta', META.protocolVersion)) return this.#modern.run(incoming)
      if (incoming.method === 'initialize') return this.#initialize(incoming)
    }
    if (incoming.kind === 'notification') {
      const { method, params } = incoming
      if (method === NOTIFICATIONS.cancelled && this.#session.inFlight.cancel(params)) return
      if (!this.#session.isInitialized) return this.#modern.notify(incoming)
    }
    receiveMessage(this.#context, this.#session, undefined, incoming, this.#responder)
  }

  #initialize({ id, params }: Message & { kind: 'request' }): void {
    const identity = readInitialize(params)
    if (typeof identity === 'string') return this.#reject(id, rpcError('invalidParams', identity))
    if (this.#session.isInitialized)
      return this.#reject(id, rpcError('invalidRequest', 'This session is already initialized'))
    this.#session.initialize(identity, id, new Abort(), outcome => {
      if (outcome !== 'none') void this.#outbox.send(outcome)
    })
  }

  #reject(id: Json | undefined, error: RpcError): void {
    void this.#outbox.send(errorPieces(id, error))
  }
}

/** The legacy client on a pipe, which has one stream for everything. */
class PipeSession extends ClientSession {
  readonly #outbox: LineOutbox

  constructor(caller: Caller, context: FrontContext, outbox: LineOutbox) {
    super(caller, context)
    this.#outbox = outbox
  }

  override send(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.#outbox.send(pieces, merge)
  }

  end(): void {
    this.stop()
  }
}
