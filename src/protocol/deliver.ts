import { Json } from '../wire/json/json.ts'
import { ERRORS, type RpcError, RpcFailure } from './errors.ts'
import type { Answer, Exchange, Frame, Question, Sink } from './exchange.ts'

const DATA = Json.of({ reason: 'gateway_error' })

/** The failure of a call after an exception in the gateway. `cause` is logged and never sent: it may name files or hosts. */
export class GatewayError implements RpcError {
  readonly code = ERRORS.internal.code
  readonly message = 'The gateway could not handle a message of this call; its log has the cause'
  readonly data = DATA
  readonly cause: unknown

  constructor(cause: unknown) {
    this.cause = cause
  }
}

/** The error that a thrown value is reported as: its own RpcError, or a GatewayError. */
export const thrownError = (thrown: unknown): RpcError =>
  thrown instanceof RpcFailure ? thrown.error : new GatewayError(thrown)

/**
 * Hands a frame to a sink that no caller waits for. Never throws and never rejects: if the sink does, its exchange
 * ends with a failure, and `onThrow` is called. Code that is itself called by a sink may return the sink's value instead.
 */
export const deliver = (sink: Sink, frame: Frame, onThrow?: () => void): void | Promise<void> => {
  try {
    const waiting = sink(frame)
    if (waiting) return waiting.catch((thrown: unknown) => end(sink, thrown, onThrow))
  } catch (thrown) {
    end(sink, thrown, onThrow)
  }
}

/** Answers a question. If the handler of the answer throws, it gets an error as the answer. Never throws. */
export const answerQuestion = ({ answer }: Question, reply: Answer): void => {
  try {
    answer(reply)
  } catch (thrown) {
    try {
      answer({ kind: 'error', error: thrownError(thrown) })
    } catch (again) {
      rethrow(again)
    }
  }
}

/** Ends a request with the error of a thrown value. A notification has no answer. */
export const failWith = ({ kind, sink }: Exchange, thrown: unknown): void => {
  if (kind === 'request') end(sink, thrown)
}

const end = (sink: Sink, thrown: unknown, onThrow?: () => void): void => {
  onThrow?.()
  try {
    const waiting = sink({ kind: 'failure', error: thrownError(thrown) })
    if (waiting) waiting.catch(rethrow)
  } catch (again) {
    rethrow(again)
  }
}

/** A sink that throws even on a failure is a bug; the handler of uncaught exceptions logs it. */
const rethrow = (thrown: unknown): void =>
  queueMicrotask(() => {
    throw thrown
  })
