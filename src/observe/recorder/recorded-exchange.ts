import type { AbortReason } from '../../protocol/cancellation.ts'
import type { Exchange, Frame, RequestRecord } from '../../protocol/exchange.ts'
import type { MessageTap, TappedContent, TappedServer } from '../../protocol/message-tap.ts'
import type { RecordedKind, RecordingOutcome } from '../../protocol/recording.ts'
import type { RequestFollower } from '../../telemetry/metrics.ts'
import { auditText, outcomeOf, type RequestOutcome, requestTarget } from '../request-facts.ts'
import type { BlockAddress } from './block-store.ts'
import { clientHeaders, replyText, serverHeaders } from './mcp-headers.ts'
import { PendingMessage } from './pending-message.ts'

/** The recorder, as one exchange sees it. */
export interface RecorderContext {
  readonly isOn: boolean
  readonly maxMessageBytes: number
  /** Writes the pending messages of an exchange to a block. */
  flush(exchange: RecordedExchange): void
  opened(exchange: RecordedExchange): void
  /** The exchange has got a message after it was written. */
  reopened(exchange: RecordedExchange): void
  ended(exchange: RecordedExchange): void
  /** The exchange has ended, and its last message was sent: it is written now, while it is in the caches of the processor. */
  settle(exchange: RecordedExchange): void
  /** The exchange has ended with questions; the request that answers them carries this state. */
  asked(exchange: RecordedExchange, state: string): void
}

/** What is kept of one exchange. */
const MOST_MESSAGES = 1000
const MOST_BYTES = 2 * 1024 * 1024
const MOST_PENDING = 16 // messages that wait for a block
const MOST_PENDING_BYTES = 64 * 1024
const ROW_BYTES = 64 // of a message, besides its text and headers
const LONGEST_ERROR = 300 // characters
const LONGEST_METHOD = 64

const UNKNOWN_NUMBER = -1 // of messages that were not kept

/** Whether an exchange was recorded when it ended, by the number of messages that were not kept. */
export const isRecordedLate = (dropped: number): boolean => dropped === UNKNOWN_NUMBER

const REST = 'rest'
const CLIENT = -1
const INITIALIZE = 'initialize'

/**
 * One exchange while it is recorded. It keeps references to messages for a moment; then they are copied to a block, and this
 * object goes with the exchange.
 */
export class RecordedExchange implements MessageTap, RequestRecord, RequestFollower<Frame> {
  readonly tap = this
  readonly trace = undefined
  readonly at: number // when its order was given
  readonly started: number
  readonly order: number
  readonly dialect: string
  subject: string | undefined
  readonly client: string | undefined
  readonly continues: number // the order of the exchange that it answers; 0: none
  readonly method: string
  readonly workspace: string
  readonly principal: string | undefined
  readonly revision: string
  servers: (TappedServer | string)[] = []
  outcome: RecordingOutcome = 'running'
  error: string | undefined
  durationMs = -1 // while it runs
  messages = 0
  bytes = 0 // of all messages, also those that were not kept
  keptBytes = 0
  dropped = 0
  pending: PendingMessage[] = []
  pendingBytes = 0
  block: BlockAddress = -1 // the latest one, which knows the one before
  isForgotten = false
  slot = -1 // in the list of exchanges that are not written completely; -1: it is
  isDirty = true // its latest block does not say all
  isChanged = false // since it was published
  context: RecorderContext
  next: MessageTap | undefined
  #isDenied = false

  constructor(
    context: RecorderContext,
    exchange: Exchange,
    order: number,
    dialect: string,
    subject: string | undefined,
    client: string | undefined,
    continues: number,
    lateMs?: number, // since it began: it is recorded after its messages with servers
  ) {
    const { kind, method, caller, origin } = exchange
    this.at = Date.now()
    this.started = performance.now() - (lateMs ?? 0)
    if (lateMs !== undefined) this.dropped = UNKNOWN_NUMBER
    this.context = context
    this.order = order
    this.dialect = dialect
    this.subject = subject
    this.client = client
    this.continues = continues
    const initialize = origin?.initialize
    this.method = initialize ? INITIALIZE : method.length > LONGEST_METHOD ? auditText(method) : method
    this.workspace = caller.workspace
    this.principal = caller.principal
    this.revision = caller.revision
    const params = initialize ?? exchange.params
    const content: TappedContent =
      kind === 'request' && origin?.id
        ? { kind: 'request', id: origin.id, method: this.method, params }
        : { kind: 'notification', method: this.method, params }
    const headers = origin?.headers && clientHeaders(origin.headers, caller.headers, this)
    context.opened(this)
    this.#add(this.started, CLIENT, 'in', kind, this.method, content, headers)
    if (origin && dialect !== REST) origin.tap = this
  }

  clientMessage(
    direction: 'in' | 'out',
    kind: RecordedKind,
    method: string | undefined,
    content: TappedContent,
    reply?: readonly string[],
  ): void {
    const hasEnded = this.durationMs >= 0 && (kind === 'result' || kind === 'error') // then it is sent at once
    const at = hasEnded ? this.started + this.durationMs : performance.now()
    this.#add(at, CLIENT, direction, kind, method, content, reply && replyText(reply))
  }

  serverMessage(
    server: TappedServer,
    direction: 'in' | 'out',
    kind: RecordedKind,
    method: string | undefined,
    content: TappedContent,
    headers?: readonly string[],
  ): void {
    if (this.next) return this.next.serverMessage(server, direction, kind, method, content, headers)
    const { subject } = this
    const isReply = direction === 'in'
    const shown =
      headers && (isReply ? replyText(headers) : serverHeaders(headers, { revision: server.revision, method, subject }))
    this.#add(performance.now(), this.#noteServer(server), direction, kind, method, content, shown)
  }

  continueIn(next: MessageTap): void {
    if (next !== this) this.next = next
  }

  /** A server gets the request. Of a server without messages of its own, its name is all that is known. */
  sentTo(server: string): void {
    for (const known of this.servers) if (serverNameOf(known) === server) return
    this.servers.push(server)
  }

  /** Records what a REST caller gets as the message it would be; the fronts of other dialects do that themselves. */
  #passed(frame: Frame): void {
    if (frame.kind === 'question') return
    if (frame.kind === 'notice')
      this.clientMessage('out', 'notification', frame.method, { ...frame, kind: 'notification' })
    else if (frame.kind === 'result')
      this.clientMessage('out', 'result', undefined, { kind: 'response', id: undefined, result: frame.result })
    else this.clientMessage('out', 'error', undefined, { kind: 'error', id: undefined, error: frame.error })
  }

  pass(frame: Frame): Frame {
    if (this.dialect === REST) this.#passed(frame)
    return frame
  }

  calls(call: Exchange): void {
    this.subject = requestTarget(call)?.name
  }

  denied(): void {
    this.#isDenied = true
  }

  ended(frame: Frame, ms: number): void {
    this.end(outcomeOf(this.method, frame, this.#isDenied), ms, frame)
  }

  aborted({ kind }: Pick<AbortReason, 'kind'>, ms: number): void {
    this.end({ outcome: 'cancelled', reason: kind }, ms)
  }

  /** The exchange has ended that way; `frame` is the last one, unless it was cancelled. */
  end({ outcome, reason }: RequestOutcome, ms: number, frame?: Frame): void {
    const state =
      outcome === 'input_required' && frame?.kind === 'result' ? frame.result.get('requestState') : undefined
    if (state) this.context.asked(this, state.asString() ?? '')
    const error = outcome === 'cancelled' ? reason : frame && errorText(outcome, frame)
    this.outcome = outcome
    this.error = error === undefined || error.length <= LONGEST_ERROR ? error : error.slice(0, LONGEST_ERROR)
    this.durationMs = ms
    this.isDirty = true
    this.context.ended(this)
  }

  /** The place of a server in the list; it is added if it is not there. */
  #noteServer(server: TappedServer): number {
    for (let at = 0; at < this.servers.length; at++) {
      const known = this.servers[at] as TappedServer | string
      if (known === server) return at
      if (serverNameOf(known) !== server.name) continue
      if (typeof known === 'string') this.servers[at] = server
      return at
    }
    return this.servers.push(server) - 1
  }

  #add(
    at: number,
    server: number,
    direction: 'in' | 'out',
    kind: RecordedKind,
    method: string | undefined,
    content: TappedContent,
    headers: string | undefined,
  ): void {
    const { context } = this
    const isLast = server === CLIENT && direction === 'out' && (kind === 'result' || kind === 'error')
    if (this.isForgotten || !context.isOn) return
    const shown = method !== undefined && method.length > LONGEST_METHOD ? auditText(method) : method
    const { maxMessageBytes } = context
    const message = new PendingMessage(at, server, direction, kind, shown, headers, content, maxMessageBytes)
    this.bytes += message.size
    this.isDirty = true
    // How an exchange ended is always kept: the limits end notifications and questions.
    const isFull = this.messages >= MOST_MESSAGES || this.keptBytes >= MOST_BYTES
    if (isFull && kind !== 'result' && kind !== 'error') {
      if (!isRecordedLate(this.dropped)) this.dropped++
      return
    }
    if (message.isLarge) message.copyStart(content)
    this.pending.push(message)
    this.messages++
    this.keptBytes += message.kept
    const waiting = message.isLarge ? message.kept : message.size
    this.pendingBytes += ROW_BYTES + waiting + (headers === undefined ? 0 : 2 * headers.length)
    if (this.slot < 0) context.reopened(this)
    else if (isLast && this.outcome !== 'running') context.settle(this)
    else if (this.pendingBytes >= MOST_PENDING_BYTES || this.pending.length >= MOST_PENDING) context.flush(this)
  }
}

/** Why a request failed, in the words of the server or of the gateway. */
const errorText = (outcome: RequestOutcome['outcome'], frame: Frame): string | undefined => {
  if (frame.kind === 'failure') return frame.error.message
  if (outcome !== 'tool_error' || frame.kind !== 'result') return undefined
  return frame.result.get('content')?.elements()[0]?.get('text')?.asString()
}

/** The name of a server, of which more may be known. */
export const serverNameOf = (server: TappedServer | string): string =>
  typeof server === 'string' ? server : server.name
