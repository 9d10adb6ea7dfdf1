import type { AbortReason } from '../../protocol/cancellation.ts'
import type { Exchange, Frame, RequestRecord } from '../../protocol/exchange.ts'
import type { MessageTap, TappedContent, TappedMessage, TappedServer } from '../../protocol/message-tap.ts'
import type { RecordedKind, RecordingOutcome } from '../../protocol/recording.ts'
import type { RequestFollower } from '../../telemetry/metrics.ts'
import type { Json } from '../../wire/json/json.ts'
import { encodeError, encodeNotification, encodeRequest, encodeResult, joinBuffers } from '../../wire/json-rpc.ts'
import { auditText, outcomeOf, type RequestOutcome, requestTarget } from '../request-facts.ts'
import type { BlockAddress } from './block-store.ts'
import { clientHeaders, replyText, serverHeaders } from './mcp-headers.ts'

/** One message that is not in a block yet. */
export interface PendingMessage {
  readonly at: number // milliseconds of the monotonic clock
  readonly server: TappedServer | undefined // undefined: it was exchanged with the client
  readonly direction: 'in' | 'out'
  readonly kind: RecordedKind
  readonly method: string | undefined
  readonly headers: string | undefined
  readonly content: TappedContent
  readonly bytes: number // 0: as many as the content has
  readonly isCut: boolean // the content is the start of a large message
}

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

/** What the recorder knows of an exchange that begins. */
type RecordedFacts = [
  order: number,
  dialect: string,
  subject: string | undefined,
  client: string | undefined,
  continues: number,
]

/** What is kept of one exchange. */
const MOST_MESSAGES = 1000
const MOST_BYTES = 2 * 1024 * 1024
const MOST_PENDING = 16 // messages that wait for a block
const MOST_PENDING_BYTES = 64 * 1024
const ROW_BYTES = 64 // of a message, besides its text and headers
const LARGE = 16 * 1024 // bytes of a message that is copied at once, so that it is not kept in memory as a whole
const LONGEST_ERROR = 300 // characters
const LONGEST_METHOD = 64

const REST = 'rest'
const NO_ID = 0
const INITIALIZE = 'initialize'

/**
 * One exchange while it is recorded. It keeps references to messages for a moment; then they are copied to a block, and this
 * object goes with the exchange.
 */
export class RecordedExchange implements MessageTap, RequestRecord, RequestFollower<Frame> {
  readonly tap = this
  readonly trace = undefined
  readonly at = Date.now()
  readonly started = performance.now()
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
    ...[order, dialect, subject, client, continues]: RecordedFacts
  ) {
    const { kind, method, params, caller, origin } = exchange
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
    const said = { method: this.method, params: initialize ?? params }
    const content: TappedContent =
      kind === 'request' && origin?.id ? { kind: 'request', id: origin.id, ...said } : { kind: 'notification', ...said }
    const headers = origin?.headers && clientHeaders(origin.headers, caller.headers, this)
    context.opened(this)
    this.add(undefined, 'in', kind, this.method, content, headers)
    if (origin && dialect !== REST) origin.tap = this
  }

  clientMessage(
    direction: 'in' | 'out',
    kind: RecordedKind,
    method: string | undefined,
    content: TappedContent,
    reply?: readonly string[],
  ): void {
    this.add(undefined, direction, kind, method, content, reply && replyText(reply))
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
    this.noteServer(server)
    const { subject } = this
    const isReply = direction === 'in'
    const shown =
      headers && (isReply ? replyText(headers) : serverHeaders(headers, { revision: server.revision, method, subject }))
    this.add(server, direction, kind, method, content, shown)
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

  noteServer(server: TappedServer): void {
    for (let at = 0; at < this.servers.length; at++) {
      const known = this.servers[at] as TappedServer | string
      if (serverNameOf(known) !== server.name) continue
      if (typeof known === 'string') this.servers[at] = server
      return
    }
    this.servers.push(server)
  }

  add(
    server: TappedServer | undefined,
    direction: 'in' | 'out',
    kind: RecordedKind,
    method: string | undefined,
    content: TappedContent,
    headers: string | undefined,
  ): void {
    const { context } = this
    const isLast = server === undefined && direction === 'out' && (kind === 'result' || kind === 'error')
    if (this.isForgotten || !context.isOn) return
    const size = sizeOf(content)
    this.bytes += size
    this.isDirty = true
    // How an exchange ended is always kept: the limits end notifications and questions.
    const isFull = this.messages >= MOST_MESSAGES || this.keptBytes >= MOST_BYTES
    if (isFull && kind !== 'result' && kind !== 'error') {
      this.dropped++
      return
    }
    const kept = Math.min(size, context.maxMessageBytes)
    const isLarge = size > LARGE || retainedBy(content) > 4 * LARGE
    const shown = method !== undefined && method.length > LONGEST_METHOD ? auditText(method) : method
    this.pending.push({
      at: performance.now(),
      server,
      direction,
      kind,
      method: shown,
      headers,
      content: isLarge ? copyStart(content, kept) : content,
      bytes: isLarge || kept < size ? size : 0,
      isCut: isLarge && kept < size,
    })
    this.messages++
    this.keptBytes += kept
    this.pendingBytes += ROW_BYTES + (isLarge ? kept : size) + (headers === undefined ? 0 : 2 * headers.length)
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

const ENVELOPE = 48 // bytes of a message besides its params, result or error

const sizeOf = (content: TappedContent): number => {
  if ('kind' in content) {
    const size = ENVELOPE + (bodyOf(content)?.size ?? 0)
    return content.kind === 'error' ? size + content.error.message.length : size
  }
  let size = 0
  for (const piece of content) size += piece.length
  return size
}

/** Bytes of memory that the content keeps alive. */
const retainedBy = (content: TappedContent): number => ('kind' in content ? (bodyOf(content)?.retained ?? 0) : 0)

/** The part of a message that may be large. */
export const bodyOf = (message: TappedMessage): Json | undefined => {
  if (message.kind === 'response') return message.result
  return message.kind === 'error' ? message.error.data : message.params
}

/** A copy of the start of a large message: the message itself must not stay in memory. */
const copyStart = (content: TappedContent, length: number): readonly Buffer[] => {
  const all = joinBuffers('kind' in content ? encodeTapped(content) : content)
  const copy = Buffer.allocUnsafeSlow(Math.min(length, all.length))
  all.copy(copy, 0, 0, copy.length)
  return [copy]
}

const encodeTapped = (message: TappedMessage): readonly Buffer[] => {
  switch (message.kind) {
    case 'request':
      return encodeRequest(message.id, message.method, message.params)
    case 'notification':
      return encodeNotification(message.method, message.params)
    case 'response':
      return encodeResult(message.id ?? NO_ID, message.result)
    case 'error':
      return encodeError(message.id, message.error)
  }
}

/** The name of a server, of which more may be known. */
export const serverNameOf = (server: TappedServer | string): string =>
  typeof server === 'string' ? server : server.name
