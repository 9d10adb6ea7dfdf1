import type { Signal } from '../../protocol/cancellation.ts'
import { answerQuestion } from '../../protocol/deliver.ts'
import { RpcFailure } from '../../protocol/errors.ts'
import type { Caller, Question, Sink } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { isMethodOf, type LogSeverity } from '../../protocol/methods.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { listItems } from '../../protocol/send-request.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import type { ClientPeer, WatchRequest } from '../command.ts'
import { ClientRequest, type FrameHandlers, refusalOf } from './client-request.ts'
import { ClientError, type ClientState, EXIT, STATE_WORDS, toClientError } from './exit-codes.ts'

interface ConnectionOptions {
  readonly name: string // of the server, for messages
  readonly caller: Caller
  readonly signal: Signal // aborted by Ctrl-C
  readonly timeoutMs: Readonly<Record<ClientState, number>> // of silence; 0: none
  readonly handlers: FrameHandlers
}

interface ServedItem {
  readonly definition: Json
  readonly server: string | undefined
}

/** One connection of a command: sends requests, answers questions, and ends what takes too long. */
export class ServerConnection {
  readonly missingServers = new Set<string>() // whose items the lists of the daemon lack
  leftOut = 0 // tools that the daemon leaves out of the list, because of a budget
  readonly #options: ConnectionOptions
  readonly #caller: Caller
  readonly #peer: ClientPeer
  readonly #pending = new Set<ClientRequest>()

  constructor(peer: ClientPeer, options: ConnectionOptions) {
    this.#peer = peer
    this.#options = options
    this.#caller = { ...options.caller, revision: peer.revision }
  }

  get name(): string {
    return this.#options.name
  }

  get revision(): Revision {
    return this.#peer.revision
  }

  /** Rejects with ClientError. */
  async request(method: string, params: Json, state: ClientState): Promise<Json> {
    const { signal, handlers, timeoutMs } = this.#options
    const pending = new ClientRequest({
      handlers,
      timeoutMs: timeoutMs[state],
      silent: () => this.#silence(method, state),
    })
    this.#pending.add(pending)
    const stopListening = signal.onAbort(({ kind }) =>
      pending.fail(new ClientError(`cancelled ${STATE_WORDS[state]}`, EXIT.cancelled), INTERRUPT_REASONS[kind] ?? kind),
    )
    try {
      const { sink, signal: ending } = pending
      if (!signal.reason)
        this.#peer.dispatch({ kind: 'request', method, params, caller: this.#caller, signal: ending, sink })
      return await pending.result
    } catch (thrown) {
      throw toClientError(thrown, state)
    } finally {
      stopListening()
      void pending.over.then(() => this.#pending.delete(pending))
    }
  }

  /** All items of a list, page by page; with the server of each, if `meta` asks for that and the daemon knows it. */
  async list(method: string, member: string, meta: PlainObject): Promise<ServedItem[]> {
    const [items, servers]: [Json[], (string | undefined)[]] = [[], []]
    const fetchPage = async (params: Json): Promise<Json> => {
      const asked = Object.keys(meta).length > 0 ? params.with('_meta', Json.of(meta)) : params
      const page = await this.request(method, asked, 'listing')
      const missing = page.at('_meta', META.unavailable)?.elements() ?? []
      for (const server of missing) this.missingServers.add(server.asString() ?? '')
      this.leftOut = page.at('_meta', META.allTools)?.asNumber() ?? this.leftOut
      servers.push(...(page.at('_meta', META.servers)?.elements() ?? []).map(server => server.asString()))
      return page
    }
    for await (const item of listItems(member, fetchPage)) items.push(item)
    return items.map((definition, at) => ({ definition, server: servers[at] }))
  }

  discover(): Promise<Json> {
    return this.request('server/discover', Json.empty, 'listing')
  }

  /** Sets the level of log messages at a server with sessions; others read it in each request. */
  async setLogLevel(level: LogSeverity): Promise<void> {
    const hasLogging = (await this.discover()).at('capabilities', 'logging') !== undefined
    if (hasLogging && isMethodOf('logging/setLevel', this.#peer.revision))
      await this.request('logging/setLevel', Json.of({ level }), 'handshake')
  }

  /** Resolves when the server ends the subscription, or the user does; rejects with ClientError. */
  watch(request: WatchRequest, changed: (method: string, params: Json) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const sink: Sink = frame => {
        if (frame.kind === 'notice') changed(frame.method, frame.params)
        else if (frame.kind === 'result') resolve()
        else if (frame.kind === 'failure') reject(toClientError(new RpcFailure(frame.error), 'watching'))
      }
      this.#options.signal.onAbort(() => resolve())
      this.#peer.watch(request, { caller: this.#caller, signal: this.#options.signal, sink })
    })
  }

  /** Takes what the server sends outside requests. */
  readonly outside: Sink = frame => {
    if (frame.kind === 'notice') this.#options.handlers.notice(frame.method, frame.params)
    else if (frame.kind === 'question') this.#answerOutside(frame)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pending].map(({ over }) => over))
    await this.#peer.close()
  }

  #answerOutside(question: Question): void {
    this.#options.handlers.answer(question).then(
      result => answerQuestion(question, { kind: 'result', result }),
      (thrown: unknown) => {
        const error = toClientError(thrown, 'calling')
        answerQuestion(question, refusalOf(question.method, error.message))
        for (const pending of this.#pending) pending.fail(error, 'a question has no answer')
      },
    )
  }

  #silence(method: string, state: ClientState): ClientError {
    const seconds = this.#options.timeoutMs[state] / 1000
    const text = `${this.name} did not answer ${method} within ${seconds} s (${STATE_WORDS[state]})`
    return new ClientError(`${text}\nWait longer with --timeout SECONDS.`, EXIT.unreachable)
  }
}

const INTERRUPT_REASONS: Readonly<Record<string, string>> = {
  cancelled: 'interrupted by the user',
  gone: 'the reader of the output has gone',
}
