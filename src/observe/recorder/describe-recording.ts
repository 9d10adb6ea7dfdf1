import type { TappedServer } from '../../protocol/message-tap.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { RecordedMessage, RecordedServer, Recording, RecordingSummary } from '../../protocol/recording.ts'
import type { StoredExchange, StoredMessage } from './block-format.ts'
import type { FlightRecorder } from './flight-recorder.ts'
import { isRecordedLate } from './recorded-exchange.ts'
import type { Redactor } from './redact.ts'

/** What is needed to show recordings. */
export interface RecordingView {
  readonly recorder: FlightRecorder
  readonly redactor: Redactor
  /** The id of the exchange with that number. */
  readonly idOf: (order: number) => string
}

const REPLICA = 'replica'

/** The row of an exchange. Secrets are removed here, not when it is recorded. */
export const summarize = (exchange: StoredExchange, { recorder, redactor, idOf }: RecordingView): RecordingSummary => {
  const { order, subject, client, continues, error, durationMs, principal, servers } = exchange
  const continuedBy = recorder.continuedBy(order)
  return {
    id: idOf(order),
    order,
    at: begunAt(exchange),
    workspace: exchange.workspace,
    ...(principal !== undefined && { principal }),
    dialect: exchange.dialect,
    revision: exchange.revision,
    ...(client !== undefined && { client: redactor.text(client) }),
    method: exchange.method,
    ...(subject !== undefined && { subject: redactor.text(subject) }),
    servers: servers.map(describeServer),
    outcome: exchange.outcome,
    ...(error !== undefined && { error: redactor.text(error) }),
    ...(durationMs !== undefined && { durationMs }),
    messages: exchange.messages,
    bytes: exchange.bytes,
    isTranslated: servers.some(server => isOtherRevision(server, exchange.revision)),
    ...(continues !== undefined && { continues: idOf(continues) }),
    ...(continuedBy !== undefined && { continuedBy: idOf(continuedBy) }),
  }
}

const begunAt = ({ at, dropped, durationMs = 0 }: StoredExchange): number =>
  isRecordedLate(dropped) ? at - durationMs : at

/** An exchange with its messages; messages whose memory was used for others count as dropped. */
export const describeRecording = (exchange: StoredExchange, view: RecordingView): Recording => {
  const keys = new MessageKeys()
  const stored = view.recorder.messagesOf(exchange.order)
  const { dropped, messages } = exchange
  return {
    ...summarize(exchange, view),
    all: stored.map(message => describeMessage(message, view.redactor, keys)),
    dropped: isRecordedLate(dropped) ? dropped : dropped + messages - stored.length,
  }
}

/** The text of a message without secrets. */
export const readMessageText = ({ text }: StoredMessage, redactor: Redactor): string => redactor.json(text)

const describeMessage = (message: StoredMessage, redactor: Redactor, keys: MessageKeys): RecordedMessage => {
  const { atMs, server, direction, kind, method, headers, bytes, isCut } = message
  const text = readMessageText(message, redactor)
  return {
    atMs,
    side: server === undefined ? 'client' : 'server',
    ...(server !== undefined && { server }),
    direction,
    kind,
    ...(method !== undefined && { method }),
    key: keys.of(message, text),
    ...(headers.length > 0 && {
      headers: headers.map(([name, value]) => [name, redactor.header(name, value)] as const),
    }),
    text,
    bytes,
    isCut,
  }
}

const describeServer = (server: TappedServer | string): RecordedServer =>
  typeof server === 'string'
    ? { name: server }
    : { name: server.name, dialect: server.dialect, revision: server.revision }

/** Another replica hears what this one says in the dialect of replicas: the translation is done there. */
const isOtherRevision = (server: TappedServer | string, revision: string): boolean =>
  typeof server !== 'string' && server.dialect !== REPLICA && server.revision !== revision

const ASKS = /"resultType"\s*:\s*"input_required"/
const ANSWERS = /"inputResponses"\s*:/
const PROGRESS = /"progress"\s*:\s*(-?[\d.eE+-]+)/

/**
 * Names messages so that those of both sides that mean the same have the same key: a legacy server asks with a request where
 * a modern one sends a result, and answers come as a response or in another request.
 */
class MessageKeys {
  readonly #counts = new Map<string, number>()

  of({ server, kind, method = '' }: StoredMessage, text: string): string {
    const side = server ?? ''
    switch (kind) {
      case 'question':
        return this.#next(side, 'question')
      case 'answer':
        return this.#next(side, 'answer')
      case 'request':
        return ANSWERS.test(text) ? this.#next(side, 'answer') : 'request'
      case 'result':
        return ASKS.test(text) ? this.#next(side, 'question') : 'result'
      case 'error':
        return 'result'
      case 'notification': {
        const progress = method === NOTIFICATIONS.progress ? PROGRESS.exec(text)?.[1] : undefined
        return progress === undefined ? this.#next(side, method) : `${method} ${progress}`
      }
    }
  }

  #next(side: string, name: string): string {
    const counted = `${side}\n${name}`
    const count = (this.#counts.get(counted) ?? 0) + 1
    this.#counts.set(counted, count)
    return `${name} ${count}`
  }
}
