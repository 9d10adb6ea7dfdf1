import { randomUUID } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { Abort } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { OLDEST } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { errorPieces, type Incoming, type Message, readIncoming } from '../../wire/json-rpc.ts'
import { LineDecoder, LineTooLong } from '../../wire/ndjson.ts'
import type { FrontContext } from '../http/front-request.ts'
import { idOf } from '../http/read-request.ts'
import { bodyFault } from '../sessions/client-limits.ts'
import { ClientSession } from '../sessions/client-session.ts'
import { readHello, shakeHands } from '../sessions/handshake.ts'
import { type Manner, receive } from '../sessions/receive.ts'
import { PipeOutbox } from './pipe-outbox.ts'
import { PipeRequests } from './pipe-requests.ts'

interface Options {
  readonly input: Readable
  readonly output: Writable
  readonly workspace: string
  readonly principal: string | undefined
}

/** Serves one client over a pipe, both eras line by line; settles when the client has closed its end. */
export const servePipe = (house: FrontContext, options: Options): Promise<void> =>
  new Promise(resolve => {
    const pipe = new Pipe(house, options)
    options.input.on('data', chunk => pipe.feed(chunk))
    let isOver = false
    const over = (): void => {
      if (isOver) return
      isOver = true
      void pipe.end().then(resolve)
    }
    for (const event of ['end', 'close', 'error']) options.input.on(event, over)
    for (const event of ['close', 'error']) options.output.on(event, over)
  })

class Pipe {
  readonly #house: FrontContext
  readonly #outbox: PipeOutbox
  readonly #session: PipeSession
  readonly #requests: PipeRequests
  readonly #lines: LineDecoder

  constructor(house: FrontContext, { output, workspace, principal }: Options) {
    this.#house = house
    this.#outbox = new PipeOutbox(output, house.limits.bodyBytes)
    const base = { workspace, principal, headers: new Map() }
    this.#session = new PipeSession(
      { ...base, revision: OLDEST, capabilities: Json.empty, session: randomUUID() },
      house,
      this.#outbox,
    )
    this.#requests = new PipeRequests(house, base, this.#session.running, pieces => this.#outbox.send(pieces))
    this.#lines = new LineDecoder(line => this.#line(line), { maxBytes: house.limits.bodyBytes })
  }

  feed(chunk: Buffer): void {
    try {
      this.#lines.feed(chunk)
    } catch (error) {
      if (!(error instanceof LineTooLong)) throw error
      this.#refuse(undefined, rpcError('invalidRequest', error.message))
    }
  }

  async end(): Promise<void> {
    this.#session.end()
    await this.#outbox.end()
  }

  #line(line: Buffer): void {
    try {
      const incoming = readIncoming(line)
      const tooLarge = bodyFault(incoming, line.length)
      if (tooLarge !== undefined) return this.#refuse(idOf(incoming), rpcError('invalidRequest', tooLarge))
      this.#take(incoming)
    } catch (error) {
      if (error instanceof JsonSyntaxError)
        return this.#refuse(undefined, rpcError('parse', `Parse error: ${error.message}`))
      this.#house.log.error({ err: error }, 'a line failed inside the gateway')
    }
  }

  #take(incoming: Incoming): void {
    if (incoming.kind === 'invalid')
      return this.#refuse(incoming.id, rpcError('invalidRequest', `Invalid Request: ${incoming.reason}`))
    if (incoming.kind === 'request') {
      if (incoming.params.at('_meta', META.protocolVersion)) return this.#requests.run(incoming)
      if (incoming.method === 'initialize') return this.#greet(incoming)
    }
    if (incoming.kind === 'notification') {
      if (this.#requests.cancel(incoming)) return
      if (!this.#session.isGreeted) return this.#requests.notify(incoming)
    }
    receive(this.#house, this.#session, undefined, incoming, this.#session.manner)
  }

  #greet({ id, params }: Message & { kind: 'request' }): void {
    const hello = readHello(params)
    if (typeof hello === 'string') return this.#refuse(id, rpcError('invalidParams', hello))
    if (this.#session.isGreeted)
      return this.#refuse(id, rpcError('invalidRequest', 'This session is already initialized'))
    const caller: Caller = { ...this.#session.caller, ...hello }
    this.#session.isGreeted = true
    shakeHands(this.#house, caller, id, new Abort(), (outcome, isWelcome) => {
      this.#session.isGreeted = isWelcome
      if (isWelcome) this.#session.become(caller)
      if (outcome !== 'none') void this.#outbox.send(outcome)
    })
  }

  #refuse(id: Json | undefined, error: RpcError): void {
    void this.#outbox.send(errorPieces(id, error))
  }
}

/** The legacy client on a pipe: everything goes out on the one line there is. */
class PipeSession extends ClientSession {
  isGreeted = false
  readonly #outbox: PipeOutbox

  readonly manner: Manner<PipeSession, undefined> = {
    reply: () => ({
      takesMore: true,
      expect: () => 0,
      say: (pieces, merge) => this.#outbox.send(pieces, merge),
      respond: (_index, outcome) => {
        if (outcome !== 'none') void this.#outbox.send(outcome)
      },
    }),
    accept: () => {},
    refuse: (_visit, error) => void this.#outbox.send(errorPieces(undefined, error)),
  }

  constructor(caller: Caller, house: FrontContext, outbox: PipeOutbox) {
    super(caller, house)
    this.#outbox = outbox
  }

  become(caller: Caller): void {
    this.beginAnew(caller)
  }

  override say(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.#outbox.send(pieces, merge)
  }

  end(): void {
    this.stop()
  }
}
