import { Abort, type Signal } from '../../protocol/cancellation.ts'
import { answerQuestion } from '../../protocol/deliver.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Answer, Caller, Frame, Question, Sink } from '../../protocol/exchange.ts'
import { isMethodOf, type LogSeverity } from '../../protocol/methods.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { listItems } from '../../protocol/send-request.ts'
import { Json } from '../../wire/json/json.ts'
import type { ClientPeer, WatchRequest } from '../command.ts'
import { ClientError, type ClientState, EXIT, STATE_WORDS, toClientError } from './exit-codes.ts'

/** What a command does with frames that are no results. */
export interface FrameHandlers {
  notice(method: string, params: Json): void
  /** Resolves with the result for the server; a ClientError ends the command. */
  answer(question: Question): Promise<Json>
}

interface SessionOptions {
  readonly name: string // of the server, for messages
  readonly caller: Caller
  readonly signal: Signal // aborted by Ctrl-C
  readonly timeoutMs: Readonly<Record<ClientState, number>> // of silence; 0: none
  readonly handlers: FrameHandlers
}

/** One connection of a command: sends requests, answers questions, and ends what takes too long. */
export class ServerConnection {
  readonly #options: SessionOptions
  readonly #caller: Caller
  readonly #failed = new Abort() // a question that cannot be answered ends the request it belongs to
  #peer: ClientPeer
  #failure: ClientError | undefined

  constructor(peer: ClientPeer, options: SessionOptions) {
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
    try {
      return await this.#send(method, params, state)
    } catch (thrown) {
      throw toClientError(thrown, state)
    }
  }

  /** All items of a list, page by page. */
  async list(method: string, member: string): Promise<Json[]> {
    const items: Json[] = []
    for await (const item of listItems(member, params => this.request(method, params, 'listing'))) items.push(item)
    return items
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
    else if (frame.kind === 'question') this.#ask(frame)
  }

  close(): Promise<void> {
    return this.#peer.close()
  }

  #send(method: string, params: Json, state: ClientState): Promise<Json> {
    return new Promise((resolve, reject) => {
      const { signal: interrupted, handlers } = this.#options
      const ending = new Abort()
      const timer = this.#startTimer(state, () => {
        ending.abort({ kind: 'cancelled', text: 'timed out' })
        reject(this.#silence(method, state))
      })
      const stops = [
        interrupted.onAbort(reason => {
          timer.end()
          ending.abort(reason)
          reject(new ClientError(`cancelled ${STATE_WORDS[state]}`, EXIT.cancelled))
        }),
        this.#failed.onAbort(() => {
          timer.end()
          ending.abort({ kind: 'cancelled', text: 'the question has no answer' })
          if (this.#failure) reject(this.#failure)
        }),
      ]
      const end = (settle: () => void): void => {
        timer.end()
        for (const stop of stops) stop()
        settle()
      }
      const sink = (frame: Frame): void => {
        timer.restart()
        if (frame.kind === 'result') end(() => resolve(frame.result))
        else if (frame.kind === 'failure') end(() => reject(new RpcFailure(frame.error)))
        else if (frame.kind === 'notice') handlers.notice(frame.method, frame.params)
        else this.#ask(frame, timer)
      }
      if (ending.reason) return
      this.#peer.dispatch({ kind: 'request', method, params, caller: this.#caller, signal: ending, sink })
    })
  }

  #ask(question: Question, timer?: SilenceTimer): void {
    timer?.pause() // the server waits for the user
    this.#options.handlers
      .answer(question)
      .then(
        result => answerQuestion(question, { kind: 'result', result }),
        (thrown: unknown) => {
          if (!(thrown instanceof ClientError)) throw thrown
          this.#failure = thrown
          answerQuestion(question, refusalOf(question.method, thrown.message))
          this.#failed.abort({ kind: 'cancelled' })
        },
      )
      .finally(() => timer?.restart())
  }

  #silence(method: string, state: ClientState): ClientError {
    const seconds = this.#options.timeoutMs[state] / 1000
    const text = `${this.name} did not answer ${method} within ${seconds} s (${STATE_WORDS[state]})\nWait longer with --timeout SECONDS.`
    return new ClientError(text, EXIT.unreachable)
  }

  #startTimer(state: ClientState, expired: () => void): SilenceTimer {
    const ms = this.#options.timeoutMs[state]
    let timer: NodeJS.Timeout | undefined
    let isOver = false
    const pause = (): void => clearTimeout(timer)
    const restart = (): void => {
      pause()
      if (ms > 0 && !isOver) timer = setTimeout(expired, ms)
    }
    const end = (): void => {
      isOver = true
      pause()
    }
    restart()
    return { restart, pause, end }
  }
}

/** Fires after a silence of the server. */
interface SilenceTimer {
  restart(): void
  pause(): void
  end(): void
}

const refusalOf = (method: string, message: string): Answer =>
  method === 'elicitation/create'
    ? { kind: 'result', result: Json.of({ action: 'cancel' }) }
    : { kind: 'error', error: rpcError('internal', message) }
