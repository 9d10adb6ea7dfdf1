import type { RpcError } from '../protocol/errors.ts'

/** A call that waits for a slot. */
export interface Waiter {
  readonly principal: string // the queue serves principals in turn
  start(): void
  reject(error: RpcError): void
}

export type WaitQueue = ReturnType<typeof createWaitQueue>

/** A bounded queue before a bounded number of slots; free slots go to the waiting principals in turn. */
export const createWaitQueue = (slots: number, maxWaiting: number) => {
  // The first principal is served next. Its waiters are in no Set: that would keep those it had, as SlotList explains.
  const byPrincipal = new Map<string, Waiter[]>()
  let running = 0
  let waiting = 0
  let isStarting = false

  /** Not recursive: a call may have ended before its `start` returns. */
  const startNext = (): void => {
    if (isStarting) return
    isStarting = true
    try {
      for (let next = takeNext(); next; next = takeNext()) {
        running++
        next.start()
      }
    } finally {
      isStarting = false
    }
  }

  const takeNext = (): Waiter | undefined => {
    const [first] = running < slots ? byPrincipal : []
    if (!first) return undefined
    const [principal, waiters] = first
    const waiter = waiters.shift()
    if (!waiter) return undefined
    byPrincipal.delete(principal)
    if (waiters.length > 0) byPrincipal.set(principal, waiters) // behind the other principals
    waiting--
    return waiter
  }

  return {
    get running() {
      return running
    },
    get waiting() {
      return waiting
    },
    /** Starts the call now or later; false if the queue is full. */
    enter: (waiter: Waiter): boolean => {
      if (running < slots && waiting === 0) {
        running++
        waiter.start()
        return true
      }
      if (waiting >= maxWaiting) return false
      const waiters = byPrincipal.get(waiter.principal)
      if (waiters) waiters.push(waiter)
      else byPrincipal.set(waiter.principal, [waiter])
      waiting++
      return true
    },
    /** Removes a call that no longer wants to wait. */
    leave: (waiter: Waiter): void => {
      const waiters = byPrincipal.get(waiter.principal)
      const at = waiters?.indexOf(waiter) ?? -1
      if (!waiters || at < 0) return
      waiters.splice(at, 1)
      waiting--
      if (waiters.length === 0) byPrincipal.delete(waiter.principal)
    },
    /** A running call has ended or pauses. */
    release: (): void => {
      running--
      startNext()
    },
    /** A paused call goes on, even if that exceeds the slots. */
    resume: (): void => void running++,
    rejectAll: (error: RpcError): void => {
      const waiters = [...byPrincipal.values()].flat()
      byPrincipal.clear()
      waiting = 0
      for (const waiter of waiters) waiter.reject(error)
    },
  }
}
