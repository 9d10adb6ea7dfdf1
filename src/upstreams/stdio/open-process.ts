import type { Signal } from '../../protocol/cancellation.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification, encodeRequest, type Message } from '../../wire/json-rpc.ts'
import { DISCONNECTED, type FailureDetails, failureOfHandshake, UpstreamFailure, withQuote } from '../failures.ts'
import { classifyProbe, discoverParams, type Era } from '../probe.ts'
import type { ProcessExit } from '../process/child.ts'
import { mayBlameCapabilities } from '../session/capability-offer.ts'
import { answeredBy } from '../session/gateway-request.ts'
import { type Handshake, initializeParams, readHandshake } from '../session/handshake.ts'
import { DROP_ALL, type Pipe, type PipeReader } from './pipe.ts'
import type { StdioLink } from './stdio-link.ts'

/** A process that is ready for its first request, with the era it turned out to have. */
export type OpenedProcess =
  | { readonly era: 'modern'; readonly pipe: Pipe }
  | { readonly era: 'legacy'; readonly pipe: Pipe; readonly handshake: Handshake }

type Client = Pick<Caller, 'capabilities' | 'info' | 'isHealthCheck'> & Partial<Pick<Caller, 'revision'>>
type Answer = Extract<Message, { kind: 'response' | 'error' }>

const PROBE = 'dragoman-probe' // a string, so that no answer to it is taken for one to a call
const INITIALIZE = 0
const INITIALIZE_AGAIN = 'dragoman-initialize' // with fewer capabilities
const TRIAL_MS = 10_000 // for `initialize` where the modern era can serve

/**
 * Starts a process and, if no era is given, detects it; rejects with UpstreamFailure.
 * `isTrial`: the server need not have that era; a failure is no crash, and a long silence no reason to wait.
 */
export const openProcess = async (
  server: StdioLink,
  client: Client,
  era: Era | undefined,
  signal: Signal,
  isTrial = false,
): Promise<OpenedProcess> => {
  const link = isTrial ? { ...server, startMs: Math.min(server.startMs, TRIAL_MS) } : server
  await link.restarts.wait()
  const leave = await link.host.startLimit.acquire()
  const startedAt = Date.now()
  try {
    // Other starts may have failed while this one was queued.
    if (link.restarts.pausedMs > 0) await link.restarts.wait()
    const opened = await new ProcessOpening(link, client, signal, era === undefined).run(era)
    if (typeof opened !== 'string') return opened
    return (await new ProcessOpening(link, client, signal, false).run(opened)) as OpenedProcess
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

/** The first messages to and from a new process. */
class ProcessOpening implements PipeReader {
  readonly #link: StdioLink
  readonly #client: Client
  readonly #signal: Signal
  readonly #probes: boolean
  #pipe: Pipe | undefined
  #isInitializing = false // `initialize` was sent
  #isProbed = false // the probe was answered
  #refusal: FailureDetails | undefined // of the first `initialize`
  #timer: NodeJS.Timeout | undefined
  #settle: (opened: OpenedProcess | Era) => void = () => {}
  #fail: (failure: FailureDetails) => void = () => {}

  constructor(link: StdioLink, client: Client, signal: Signal, probes: boolean) {
    this.#link = link
    this.#client = client
    this.#signal = signal
    this.#probes = probes
  }

  /** Resolves with an era alone if another process must be started and used in that era. */
  async run(era: Era | undefined): Promise<OpenedProcess | Era> {
    if (this.#signal.reason) throw new UpstreamFailure(this.#link.name, DISCONNECTED)
    const pipe = await this.#link.start()
    this.#pipe = pipe
    if (era === 'modern') return { era, pipe }
    const stopListening = this.#signal.onAbort(() => this.#fail(DISCONNECTED))
    try {
      return await new Promise<OpenedProcess | Era>((resolve, reject) => {
        this.#settle = resolve
        this.#fail = failure => reject(new UpstreamFailure(this.#link.name, failure))
        if (this.#signal.reason) return this.#fail(DISCONNECTED)
        if (this.#probes) this.#probe()
        else this.#initialize()
        pipe.readBy(this)
      })
    } catch (error) {
      pipe.readBy(DROP_ALL) // until it exits it may write a lot, which would be kept
      void pipe.child.stop()
      throw error
    } finally {
      stopListening()
      clearTimeout(this.#timer)
    }
  }

  message(message: Message): void {
    if (message.kind !== 'response' && message.kind !== 'error') return
    if (this.#probes && !this.#isProbed && isAnswerTo(message, PROBE, !this.#isInitializing))
      return this.#probeAnswered(message)
    if (this.#isInitializing && isAnswerTo(message, this.#refusal ? INITIALIZE_AGAIN : INITIALIZE, false))
      this.#initializeAnswered(message)
  }

  gone(exit: ProcessExit): void {
    // Some servers exit when they are asked anything before `initialize`.
    if (this.#probes && !exit.isLineTooLong) return this.#settle('legacy')
    const { child } = this.#pipe as Pipe
    this.#fail(this.#link.failureOf(child, exit, 'upstream_unreachable'))
  }

  #probe(): void {
    this.#pipe?.send(encodeRequest(PROBE, 'server/discover', discoverParams(this.#link.identity)))
    this.#timer = setTimeout(() => this.#initialize(), this.#link.probeMs)
  }

  #probeAnswered(message: Answer): void {
    this.#isProbed = true
    const detected = classifyProbe(answeredBy(message))
    if (detected.kind === 'none') this.#fail(detected.failure)
    else if (detected.kind === 'modern') this.#isModern(this.#pipe as Pipe)
    else if (!this.#isInitializing) this.#initialize()
  }

  #isModern(pipe: Pipe): void {
    pipe.readBy(this.#isInitializing ? DROP_ALL : undefined)
    if (!this.#isInitializing) return this.#settle({ era: 'modern', pipe })
    // The answer came late: a server of both eras has taken `initialize` for the choice of the legacy one.
    void pipe.child.stop()
    this.#settle('modern')
  }

  #initialize(capabilities = this.#link.offers.offer(this.#client.capabilities)): void {
    this.#isInitializing = true
    const { info = this.#link.identity, revision } = this.#client
    const params = initializeParams(capabilities, info, this.#link.offersCallerRevision ? revision : undefined)
    this.#pipe?.send(encodeRequest(this.#refusal ? INITIALIZE_AGAIN : INITIALIZE, 'initialize', params))
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#timedOut(), this.#link.startMs)
  }

  #timedOut(): void {
    const { child } = this.#pipe as Pipe
    const text = `did not answer initialize within ${this.#link.startMs / 1000} s`
    this.#fail({ reason: 'upstream_timeout', text, stderr: this.#link.lastLinesOf(child) })
  }

  #initializeAnswered(message: Answer): void {
    // A refusal before the answer to the probe may be that of a modern server.
    if (message.kind === 'error' && this.#probes && !this.#isProbed) return
    if (message.kind === 'error') return this.#refused(message.error)
    const handshake = readHandshake(message.result)
    if ('reason' in handshake) return this.#fail(handshake)
    this.#link.offers.accepted(handshake.revision, this.#refusal && withQuote(this.#refusal).text)
    const pipe = this.#pipe as Pipe
    pipe.readBy(undefined) // from here on messages are kept for the session
    pipe.send(encodeNotification(NOTIFICATIONS.initialized, Json.empty))
    this.#settle({ era: 'legacy', pipe, handshake })
  }

  /** The server may have failed on a capability it does not know: it is asked once more with fewer. */
  #refused({ code, message }: RpcError): void {
    const refusal = failureOfHandshake(message)
    const mayAcceptLess = !this.#refusal && mayBlameCapabilities(code)
    const less = mayAcceptLess ? this.#link.offers.offerLess(this.#client.capabilities) : undefined
    const first = this.#refusal ?? refusal
    this.#refusal = first
    if (less) return this.#initialize(less)
    if (mayBlameCapabilities(code)) this.#link.offers.refused(withQuote(first).text)
    this.#fail(this.#client.isHealthCheck ? withQuote(first) : first)
  }
}

/** An error without an id answers a request that was sent alone. */
const isAnswerTo = ({ kind, id }: Answer, wanted: string | number, isAlone: boolean): boolean =>
  id === undefined ? kind === 'error' && isAlone : id.toValue() === wanted
