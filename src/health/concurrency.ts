import { deliver } from '../protocol/deliver.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange, Question } from '../protocol/exchange.ts'
import { Json } from '../wire/json/json.ts'
import type { Waiter, WaitQueue } from './wait-queue.ts'

/** Sends each call when its turn has come; its place is free again when it is over, however it ends. */
export const takeTurns =
  (server: string, queue: WaitQueue, send: Dispatch): Dispatch =>
  exchange => {
    const { signal, caller } = exchange
    if (signal.reason) return
    const place = createPlace(queue)
    const finish = (): void => {
      forget()
      place.leave()
    }
    const waiter: Waiter = {
      principal: caller.principal ?? caller.session ?? '',
      start: () => {
        place.enter()
        send(occupying(exchange, place, finish))
      },
      reject: error => {
        forget()
        void deliver(exchange.sink, { kind: 'failure', error })
      },
    }
    const forget = signal.onAbort(() => {
      queue.leave(waiter)
      queueMicrotask(place.leave) // the server hears first that this one is over
    })
    if (!queue.enter(waiter)) waiter.reject(tooMany(server, queue.waiting))
  }

interface Place {
  enter(): void
  /** For as long as a person is being asked; the returned function ends that. */
  rest(): () => void
  leave(): void
}

/** One place in the queue's room, given back exactly once. */
const createPlace = (queue: WaitQueue): Place => {
  let isIn = false
  let isOver = false
  let resting = 0

  const wake = (): void => {
    if (--resting > 0 || isOver) return
    isIn = true
    queue.resume()
  }

  const goOut = (): void => {
    if (!isIn) return
    isIn = false
    queue.release()
  }

  return {
    enter: () => {
      isIn = true
    },
    rest: () => {
      let isResting = true
      resting++
      goOut()
      return () => {
        if (!isResting) return
        isResting = false
        wake()
      }
    },
    leave: () => {
      isOver = true
      goOut()
    },
  }
}

/** Whoever is asked may need this very server to find the answer, so a call that asks holds nobody up. */
const occupying = (exchange: Exchange, place: Place, finish: () => void): Exchange => ({
  ...exchange,
  sink: frame => {
    if (frame.kind === 'question') return exchange.sink(resting(frame, place))
    if (frame.kind === 'result' || frame.kind === 'failure') finish()
    return exchange.sink(frame)
  },
})

const resting = (question: Question, place: Place): Question => {
  const wake = place.rest()
  question.withdrawn.onAbort(wake)
  return {
    ...question,
    answer: reply => {
      if (reply.kind !== 'progress') wake()
      question.answer(reply)
    },
  }
}

const tooMany = (server: string, waiting: number): RpcError =>
  rpcError(
    'internal',
    `Server "${server}" has ${waiting} calls waiting for it already: try again later`,
    Json.of({ reason: 'upstream_busy', upstream: server }),
  )
