import { afterEach, expect, test, vi } from 'vitest'
import { DueQueue, KeepAlive } from './keep-alive.ts'

afterEach(() => void vi.useRealTimers())

test('each item is due whenever its interval has passed', () => {
  const acted: string[] = []
  const queue = new DueQueue<string>(30, item => acted.push(item))
  const due = (now: number): string[] => {
    queue.run(now)
    return acted.splice(0)
  }
  queue.add('a', 0)
  queue.add('b', 10)
  expect(due(29)).toEqual([])
  expect(due(30)).toEqual(['a'])
  expect(due(30)).toEqual([])
  expect(due(45)).toEqual(['b'])
  expect(due(60)).toEqual(['a'])
  queue.delete('b')
  expect(due(1000)).toEqual(['a']) // once, however many intervals were missed
  expect(due(1029)).toEqual([])
})

test('an item may be deleted while it is acted on', () => {
  const acted: string[] = []
  const queue: DueQueue<string> = new DueQueue(10, item => {
    acted.push(item)
    queue.delete(item)
  })
  for (const item of ['a', 'b']) queue.add(item, 0)
  queue.run(10)
  queue.run(20)
  expect(acted).toEqual(['a', 'b'])
})

test('streams are kept alive also after the time of day was set back', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] })
  const keepAlive = new KeepAlive(1500)
  const stream = { keepAlive: vi.fn() }
  keepAlive.add(stream)
  vi.setSystemTime(Date.now() - 3_600_000)
  vi.advanceTimersByTime(1500)
  expect(stream.keepAlive).toHaveBeenCalledTimes(1)
  keepAlive.stop()
})

test.each([1, 25, 100, 15_000])('streams are kept alive about every %i ms', keepAliveMs => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const keepAlive = new KeepAlive(keepAliveMs)
  const stream = { keepAlive: vi.fn() }
  keepAlive.add(stream)
  vi.advanceTimersByTime(10 * Math.max(20, keepAliveMs))
  expect(stream.keepAlive.mock.calls.length).toBeGreaterThanOrEqual(9)
  expect(stream.keepAlive.mock.calls.length).toBeLessThanOrEqual(13)
  keepAlive.stop()
})

test('a stream that was removed is not kept alive, nor one that another stream of the same tick removes', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const keepAlive = new KeepAlive(1500)
  const [removing, removed, gone] = [vi.fn(), vi.fn(), vi.fn()]
  keepAlive.add({ keepAlive: removing })
  const kept = keepAlive.add({ keepAlive: removed, hasReader: true })
  removing.mockImplementation(() => keepAlive.delete(kept))
  keepAlive.delete(keepAlive.add({ keepAlive: gone, hasReader: true }))
  expect(keepAlive.streamCount).toBe(1)
  vi.advanceTimersByTime(3000)
  expect([removing.mock.calls.length, removed.mock.calls.length, gone.mock.calls.length]).toEqual([2, 0, 0])
  expect(keepAlive.streamCount).toBe(0)
  keepAlive.stop()
})
