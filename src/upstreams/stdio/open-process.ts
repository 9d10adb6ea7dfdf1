import type { Signal } from '../../protocol/cancellation.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { isModern, isRevision, MODERN, NEWEST_LEGACY, type Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { type Message, notificationPieces, requestPieces } from '../../wire/json-rpc.ts'
import { DISCONNECTED, type FailureDetails, failureOfHandshake, UpstreamFailure, withQuote } from '../failures.ts'
import { classifyProbe, type Era } from '../probe.ts'
import type { ProcessExit } from '../process/child.ts'
import { mayBlameCapabilities } from '../session/offers.ts'
import type { Pipe, PipeReader } from './pipe.ts'
import type { StdioLink } from './stdio-link.ts'

/** What `initialize` settled. */
export interface Greeting {
  readonly revision: Revision
  readonly result: Json // the InitializeResult as it came
}

/** A process that is ready for its first request, of the era it turned out to be. */
export type Opened =
  | { readonly era: 'modern'; readonly pipe: Pipe }
  | { readonly era: 'legacy'; readonly pipe: Pipe; readonly greeting: Greeting }

const PROBE = 'dragoman-probe' // a string, so that no answer to it is taken for one to a call
const INITIALIZE = 0
const INITIALIZE_AGAIN = 'dragoman-initialize' // with fewer capabilities
const NOBODY: PipeReader = { message: () => {}, gone: () => {} }
const TRIAL_MS = 10_000 // for `initialize` where another leg can serve

/**
 * Starts a process and finds out, or is told, how to speak with it; rejects with UpstreamFailure.
 * `isTrial`: the server need not speak that era; a failure is no crash, and a long silence no reason to wait.
 */
export const openProcess = async (
  server: StdioLink,
  caller: Pick<Caller, 'capabilities' | 'info' | 'isHealthCheck'>,
  era: Era | undefined,
  signal: Signal,
  isTrial = false,
): Promise<Opened> => {
  const link = isTrial ? { ...server, startMs: Math.min(server.startMs, TRIAL_MS) } : server
  await link.restarts.wait()
  const leave = await link.host.startLimit.acquire()
  const startedAt = Date.now()
  try {
    // Others may have found it broken while this one stood in line.
    if (link.restarts.pausedMs > 0) await link.restarts.wait()
    const opened = await new Opening(link, caller, signal, era === undefined).run(era)
    if (typeof opened !== 'string') return opened
    return (await new Opening(link, caller, signal, false).run(opened)) as Opened
  } catch (error) {
    if (error instanceof UpstreamFailure && !signal.reason && !isTrial) {
      const { text, stderr } = withQuote(error.details)
      link.log.warn({ reason: text, stderr }, 'server start failed')
      link.restarts.recordCrash(error.details, Date.now() - startedAt)
    }
    throw error
  } finally {
    leave()
  }
}

/** The first words with a new process. */
class Opening implements PipeReader {
  readonly #link: StdioLink
  readonly #caller: Pick<Caller, 'capabilities' | 'info' | 'isHealthCheck'>
  readonly #signal: Signal
  readonly #probes: boolean
  #pipe: Pipe | undefined
  #isAsked = false // `initialize` was sent
  #isProbed = false // the probe was answered
  #refusal: FailureDetails | undefined // of the first `initialize`
  #timer: NodeJS.Timeout | undefined
  #settle: (opened: Opened | Era) => void = () => {}
  #fail: (loss: FailureDetails) => void = () => {}

  constructor(
    link: StdioLink,
    caller: Pick<Caller, 'capabilities' | 'info' | 'isHealthCheck'>,
    signal: Signal,
    probes: boolean,
  ) {
    this.#link = link
    this.#caller = caller
    this.#signal = signal
    this.#probes = probes
  }

  /** Only an era: start another process and speak that with it. */
  async run(era: Era | undefined): Promise<Opened | Era> {
    if (this.#signal.reason) throw new UpstreamFailure(this.#link.name, DISCONNECTED)
    const pipe = await this.#link.start()
    this.#pipe = pipe
    if (era === 'modern') return { era, pipe }
    const release = this.#signal.onAbort(() => this.#fail(DISCONNECTED))
    try {
      return await new Promise<Opened | Era>((resolve, reject) => {
        this.#settle = resolve
        this.#fail = loss => reject(new UpstreamFailure(this.#link.name, loss))
        if (this.#signal.reason) return this.#fail(DISCONNECTED)
        if (this.#probes) this.#probe()
        else this.#initialize()
        pipe.readBy(this)
      })
    } catch (error) {
      pipe.readBy(NOBODY) // until it is gone it may say a lot, and nobody would ever read it
      void pipe.child.stop()
      throw error
    } finally {
      release()
      clearTimeout(this.#timer)
    }
  }

  message(message: Message): void {
    if (message.kind !== 'response' && message.kind !== 'error') return
    if (this.#probes && !this.#isProbed && isAnswerTo(message, PROBE, !this.#isAsked)) return this.#probed(message)
    if (this.#isAsked && isAnswerTo(message, this.#refusal ? INITIALIZE_AGAIN : INITIALIZE, false))
      this.#greeted(message)
  }

  gone(exit: ProcessExit): void {
    // Some servers quit when they are asked anything before `initialize`.
    if (this.#probes && !exit.isLineTooLong) return this.#settle('legacy')
    const { child } = this.#pipe as Pipe
    this.#fail(this.#link.lossOf(child, exit, 'upstream_unreachable'))
  }

  #probe(): void {
    this.#pipe?.send(requestPieces(PROBE, 'server/discover', introduction(this.#link.identity)))
    this.#timer = setTimeout(() => this.#initialize(), this.#link.probeMs)
  }

  #probed(message: Extract<Message, { kind: 'response' | 'error' }>): void {
    this.#isProbed = true
    const verdict = classifyProbe(
      message.kind === 'response'
        ? { kind: 'response', status: 0, headers: {}, result: message.result }
        : { kind: 'error', ...message.error, data: message.error.data },
    )
    if (verdict.kind === 'none') this.#fail(verdict.failure)
    else if (verdict.kind === 'modern') this.#modern(this.#pipe as Pipe)
    else if (!this.#isAsked) this.#initialize()
  }

  #modern(pipe: Pipe): void {
    pipe.readBy(this.#isAsked ? NOBODY : undefined)
    if (!this.#isAsked) return this.#settle({ era: 'modern', pipe })
    // It answers late, and a server of both eras took our `initialize` for a choice.
    void pipe.child.stop()
    this.#settle('modern')
  }

  #initialize(capabilities = this.#link.offers.offer(this.#caller.capabilities)): void {
    this.#isAsked = true
    const params = Json.of({
      protocolVersion: NEWEST_LEGACY,
      capabilities,
      clientInfo: this.#caller.info ?? this.#link.identity,
    })
    this.#pipe?.send(requestPieces(this.#refusal ? INITIALIZE_AGAIN : INITIALIZE, 'initialize', params))
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#giveUp(), this.#link.startMs)
  }

  #giveUp(): void {
    const { child } = this.#pipe as Pipe
    const text = `did not answer initialize within ${this.#link.startMs / 1000} s`
    this.#fail({ reason: 'upstream_timeout', text, stderr: this.#link.tailOf(child) })
  }

  #greeted(message: Extract<Message, { kind: 'response' | 'error' }>): void {
    // A refusal while the probe has no answer yet may be that of a modern server.
    if (message.kind === 'error' && this.#probes && !this.#isProbed) return
    if (message.kind === 'error') return this.#refused(message.error)
    const version = message.result.get('protocolVersion')?.asString()
    if (!isRevision(version) || isModern(version)) {
      const text = `answered initialize with protocol version ${version ?? '(none)'}, which this gateway does not know`
      return this.#fail({ reason: 'upstream_protocol', text })
    }
    this.#link.offers.taken(version, this.#refusal && withQuote(this.#refusal).text)
    const pipe = this.#pipe as Pipe
    pipe.readBy(undefined) // what it says from here on is for whoever takes it over
    pipe.send(notificationPieces('notifications/initialized', Json.empty))
    this.#settle({ era: 'legacy', pipe, greeting: { revision: version, result: message.result.compact() } })
  }

  /** A server may have choked on a capability it does not know: it is asked once more with fewer. */
  #refused({ code, message }: RpcError): void {
    const refusal = failureOfHandshake(message)
    const mayTakeLess = !this.#refusal && mayBlameCapabilities(code)
    const less = mayTakeLess ? this.#link.offers.offerLess(this.#caller.capabilities) : undefined
    const last = this.#refusal ?? refusal
    this.#refusal = last
    if (less) return this.#initialize(less)
    if (mayBlameCapabilities(code)) this.#link.offers.refused(withQuote(last).text)
    this.#fail(this.#caller.isHealthCheck ? withQuote(last) : last)
  }
}

/** The params of a modern request of our own. */
export const introduction = (identity: Json): Json =>
  Json.of({
    _meta: { [META.protocolVersion]: MODERN, [META.clientInfo]: identity, [META.clientCapabilities]: {} },
  })

/** An error without an id answers whatever was asked alone. */
const isAnswerTo = (
  { kind, id }: Extract<Message, { kind: 'response' | 'error' }>,
  wanted: string | number,
  isAlone: boolean,
): boolean => (id === undefined ? kind === 'error' && isAlone : id.toValue() === wanted)
