import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rpcError } from '../protocol/errors.ts'
import { createWaitQueue, type Waiter } from './wait-queue.ts'

const ERROR = rpcError('internal', 'no')

/** A queue that records starts and rejections in order. */
const createQueue = (slots: number, maxWaiting = 1000) => {
  const queue = createWaitQueue(slots, maxWaiting)
  const started: string[] = []
  const rejected: string[] = []
  const enter = (principal: string, name: string): Waiter | undefined => {
    const waiter = { principal, start: () => void started.push(name), reject: () => void rejected.push(name) }
    return queue.enter(waiter) ? waiter : undefined
  }
  return { queue, started, rejected, enter }
}

describe('a queue of calls', () => {
  test('runs as many calls as it has slots, and the next when one is released', () => {
    const { queue, started, enter } = createQueue(2)
    for (const name of ['a', 'b', 'c', 'd']) enter('me', name)
    expect([started, queue.running, queue.waiting]).toEqual([['a', 'b'], 2, 2])
    queue.release()
    expect([started, queue.running, queue.waiting]).toEqual([['a', 'b', 'c'], 2, 1])
    for (let i = 0; i < 3; i++) queue.release()
    expect([started, queue.running, queue.waiting]).toEqual([['a', 'b', 'c', 'd'], 0, 0])
  })

  test('serves principals in turn, so that one with many calls does not starve the others', () => {
    const { queue, started, enter } = createQueue(1)
    enter('loud', 'first')
    for (let i = 0; i < 5; i++) enter('loud', `loud ${i}`)
    for (const who of ['quiet', 'shy']) enter(who, who)
    for (let i = 0; i < 8; i++) queue.release()
    expect(started).toEqual(['first', 'loud 0', 'quiet', 'shy', 'loud 1', 'loud 2', 'loud 3', 'loud 4'])
  })

  test('a new call waits behind the waiting ones, even if a slot is free for a moment', () => {
    const { queue, started, enter } = createQueue(1)
    enter('a', 'a1')
    const again: Waiter = { principal: 'a', start: () => void started.push('a3'), reject: () => {} }
    const impatient: Waiter = {
      principal: 'b',
      start: () => {
        started.push('b1')
        queue.enter(again)
      },
      reject: () => {},
    }
    queue.enter(impatient)
    enter('c', 'c1')
    for (let i = 0; i < 3; i++) queue.release()
    expect(started).toEqual(['a1', 'b1', 'c1', 'a3'])
  })

  test('has a maximum length, and can be left', () => {
    const { queue, started, enter } = createQueue(1, 2)
    enter('a', 'runs')
    const leaver = enter('a', 'leaves')
    enter('b', 'waits')
    expect(enter('c', 'too many')).toBeUndefined()
    queue.leave(leaver as Waiter)
    queue.leave(leaver as Waiter)
    expect(queue.waiting).toBe(1)
    expect(enter('c', 'fits')).toBeDefined()
    for (let i = 0; i < 3; i++) queue.release()
    expect(started).toEqual(['runs', 'waits', 'fits'])
  })

  test('a paused call frees its slot, and resumes however many run by then', () => {
    const { queue, started, enter } = createQueue(1)
    enter('a', 'asks')
    enter('b', 'waits')
    queue.release()
    queue.resume()
    expect([started, queue.running]).toEqual([['asks', 'waits'], 2])
    enter('c', 'later')
    queue.release()
    expect(started).toEqual(['asks', 'waits'])
    queue.release()
    expect(started).toEqual(['asks', 'waits', 'later'])
  })

  test('all waiting calls can be rejected at once', () => {
    const { queue, rejected, enter } = createQueue(1)
    for (const name of ['runs', 'x', 'y']) enter(name, name)
    queue.rejectAll(ERROR)
    expect([rejected, queue.running, queue.waiting]).toEqual([['x', 'y'], 1, 0])
  })

  test('a thousand calls that end before their start returns do not overflow the stack', () => {
    const queue = createWaitQueue(1, 10_000)
    let count = 0
    const over = (): void => {
      count++
      queue.release()
    }
    queue.enter({ principal: '', start: () => {}, reject: () => {} })
    for (let i = 0; i < 10_000; i++) queue.enter({ principal: String(i % 7), start: over, reject: () => {} })
    queue.release()
    expect([count, queue.running, queue.waiting]).toEqual([10_000, 0, 0])
  })

  test('no call is lost or started twice, whatever the order', () => {
    const action = fc.oneof(
      fc.record({ kind: fc.constant('enter' as const), who: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ kind: fc.constantFrom('done' as const, 'leave' as const), who: fc.constant('') }),
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(action, { maxLength: 60 }), (most, actions) => {
        const queue = createWaitQueue(most, 5)
        const waiting = new Set<Waiter>()
        let [joined, started, left] = [0, 0, 0]
        for (const { kind, who } of actions) {
          if (kind === 'done' && queue.running > 0) queue.release()
          else if (kind === 'leave') {
            for (const waiter of waiting) {
              queue.leave(waiter)
              waiting.delete(waiter)
              left++
              break
            }
          } else if (kind === 'enter') {
            const waiter: Waiter = {
              principal: who,
              start: () => {
                started++
                waiting.delete(waiter)
              },
              reject: () => {},
            }
            waiting.add(waiter)
            if (queue.enter(waiter)) joined++
            else waiting.delete(waiter)
          }
          expect(queue.running).toBeLessThanOrEqual(most)
          expect(queue.waiting).toBe(joined - started - left)
          expect(queue.waiting).toBe(waiting.size)
          if (queue.waiting > 0) expect(queue.running).toBe(most)
        }
      }),
    )
  })
})
