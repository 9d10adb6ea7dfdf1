import { deliver } from '../protocol/deliver.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange, Question } from '../protocol/exchange.ts'
import { Json } from '../wire/json/json.ts'
import type { Waiter, WaitQueue } from './wait-queue.ts'

/** Sends each call when the queue has a slot for it; the slot is released when the call ends in any way. */
export const limitConcurrency =
  (server: string, queue: WaitQueue, send: Dispatch): Dispatch =>
  exchange => {
    const { signal, caller } = exchange
    if (signal.reason) return
    const slot = createSlot(queue)
    const finish = (): void => {
      stopListening()
      slot.close()
    }
    const waiter: Waiter = {
      principal: caller.principal ?? caller.session ?? '',
      start: () => {
        slot.occupy()
        send(withSlot(exchange, slot, finish))
      },
      reject: error => {
        stopListening()
        void deliver(exchange.sink, { kind: 'failure', error })
      },
    }
    const stopListening = signal.onAbort(() => {
      queue.leave(waiter)
      queueMicrotask(slot.close) // the server receives the cancellation before the next call
    })
    if (!queue.enter(waiter)) waiter.reject(busyError(server, queue.waiting))
  }

/** One slot of the queue, released exactly once. */
interface Slot {
  occupy(): void
  /** Releases the slot while a person is asked; the returned function takes it again. */
  pause(): () => void
  close(): void
}

const createSlot = (queue: WaitQueue): Slot => {
  let isOccupied = false
  let isClosed = false
  let pauses = 0

  const release = (): void => {
    if (!isOccupied) return
    isOccupied = false
    queue.release()
  }

  const resume = (): void => {
    if (--pauses > 0 || isClosed) return
    isOccupied = true
    queue.resume()
  }

  return {
    occupy: () => {
      isOccupied = true
    },
    pause: () => {
      let isPaused = true
      pauses++
      release()
      return () => {
        if (!isPaused) return
        isPaused = false
        resume()
      }
    },
    close: () => {
      isClosed = true
      release()
    },
  }
}

/** To answer a question, the client may have to call this very server: a call that asks must not block that. */
const withSlot = (exchange: Exchange, slot: Slot, finish: () => void): Exchange => ({
  ...exchange,
  sink: frame => {
    if (frame.kind === 'question') return exchange.sink(pausing(frame, slot))
    if (frame.kind === 'result' || frame.kind === 'failure') finish()
    return exchange.sink(frame)
  },
})

const pausing = (question: Question, slot: Slot): Question => {
  const resume = slot.pause()
  question.withdrawn.onAbort(resume)
  return {
    ...question,
    answer: reply => {
      if (reply.kind !== 'progress') resume()
      question.answer(reply)
    },
  }
}

const busyError = (server: string, waiting: number): RpcError =>
  rpcError(
    'internal',
    `Server "${server}" is busy: ${waiting} calls wait for it already. Try again later`,
    Json.of({ reason: 'upstream_busy', upstream: server }),
  )
