import type { TappedServer } from '../../protocol/message-tap.ts'
import type { RecordedKind, RecordingOutcome } from '../../protocol/recording.ts'
import type { BlockAddress } from './block-store.ts'

// A block: what is known of an exchange, then its messages, as numbers and bytes. Texts that repeat are numbers of a table, and a
// message that the gateway made from another one refers to it: both are cheaper than texts. Numbers are aligned to their size,
// so that they are written through typed arrays.

/** What a block says about its exchange. */
export interface StoredExchange {
  readonly order: number
  readonly at: number // when its order was given: when it began, or when one of a burst failed
  readonly dialect: string
  readonly revision: string
  readonly workspace: string
  readonly principal: string | undefined
  readonly client: string | undefined
  readonly method: string
  readonly subject: string | undefined
  readonly servers: readonly (TappedServer | string)[]
  readonly outcome: RecordingOutcome
  readonly error: string | undefined
  readonly durationMs: number | undefined
  readonly messages: number
  readonly bytes: number
  readonly dropped: number
  readonly continues: number | undefined
}

/** One message in a block. */
export interface StoredMessage {
  readonly atMs: number
  readonly server: string | undefined // undefined: it was exchanged with the client
  readonly direction: 'in' | 'out'
  readonly kind: RecordedKind
  readonly method: string | undefined
  readonly headers: readonly (readonly [string, string])[]
  readonly bytes: number
  readonly text: string // as far as it is kept
  readonly isCut: boolean
}

/** A block that was read. */
export interface ReadBlock {
  readonly exchange: StoredExchange
  readonly messages: readonly StoredMessage[]
  readonly before: BlockAddress // -1: it is the first of its exchange
}

export const KINDS: readonly RecordedKind[] = ['request', 'notification', 'result', 'error', 'question', 'answer']
export const OUTCOMES: readonly RecordingOutcome[] = [
  ...(['running', 'ok', 'tool_error', 'error', 'denied', 'cancelled', 'input_required'] as const),
]

/** How the body of a message is kept. */
export const FORM = {
  bytes: 0, // as it travelled; nothing else is known of it
  whole: 1, // as it travelled, with its params or result
  call: 2, // its id and its params; the envelope is written again when it is shown
  result: 3, // its id and its result
  error: 4, // its id and its error
} as const

/** How the id of a message is kept. */
export const ID = {
  none: 0,
  same: 1, // that of the request of the client
  number: 2, // a number of the gateway's own
  text: 3, // its length and its bytes
} as const

/** The method of a message. */
export const METHOD = { none: 0, same: 1, other: 2 } as const // `same`: that of the exchange

/** The headers of a message: none, a text, or from there on one digit. */
export const HEADERS = { none: 0, text: 1, digit: 2 } as const

/**
 * Bits of the number that says what a message is: from the right, direction, kind, method, headers, and what its time in
 * microseconds has above 32 bits. That is enough for nine years.
 */
export const SHIFT = { kind: 1, method: 4, headers: 6, time: 16 } as const

/** Bits of the number that says how the body is kept: from the right, whether it is cut, form, id, the message that has the same. */
export const BODY_SHIFT = { form: 1, id: 4, same: 6 } as const

/** The offset from there on that a number of so many bytes may be at. */
export const alignUp = (at: number, size: 4 | 8): number => (at + size - 1) & -size
