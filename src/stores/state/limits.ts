import { StateError } from './state-store.ts'

const KIB = 1024
const MIB = KIB * KIB

/** What a store keeps at most, in bytes. */
export const STATE_LIMITS = {
  record: 64 * KIB,
  task: 24 * MIB, // a task's record holds its result of at most 16 MiB, or its open questions
  event: 8 * MIB,
  stream: 64 * MIB,
  session: 128 * MIB,
  store: 1024 * MIB,
  message: 8 * MIB, // of an inbox
  messages: 1000, // of one inbox, a number
  document: 8 * MIB,
} as const

/** About how many bytes one read of a journal returns. */
export const READ_BYTES = MIB

const reject = (what: string, size: number, limit: number): void => {
  if (size > limit) throw new StateError('limit', `The ${what} has ${size} bytes; at most ${limit} are stored.`)
}

export const checkBody = (kind: string, body: Buffer): void =>
  reject(`record of kind "${kind}"`, body.length, kind === 'task' ? STATE_LIMITS.task : STATE_LIMITS.record)

export const checkMessage = (data: Buffer): void => reject('message', data.length, STATE_LIMITS.message)

export const checkDocument = (name: string, body: Buffer): void =>
  reject(`document "${name}"`, body.length, STATE_LIMITS.document)
