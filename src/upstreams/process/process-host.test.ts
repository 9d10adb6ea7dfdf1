import { afterEach, expect, it, vi } from 'vitest'
import { StartLimit } from './process-host.ts'

afterEach(() => vi.useRealTimers())

it('limits concurrent starts, admits the others in order, and frees a slot once', async () => {
  const starts = new StartLimit(2)
  const order: string[] = []
  const enter = (name: string) =>
    starts.acquire().then(leave => {
      order.push(name)
      return leave
    })
  const [a, b] = [await enter('a'), await enter('b')]
  const c = enter('c')
  const d = enter('d')
  await new Promise(setImmediate)
  expect(order).toEqual(['a', 'b'])
  a()
  a()
  const leaveC = await c
  await new Promise(setImmediate)
  expect(order).toEqual(['a', 'b', 'c'])
  b()
  const leaveD = await d
  leaveC()
  leaveD()
  await Promise.all([enter('e'), enter('f')])
  expect(order).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
})

it.each([
  [4, 2500],
  [8, 5000],
  [12, 7500],
])('%i starts that do not end delay the next one by %i ms, four at a time', async (count, ms) => {
  vi.useFakeTimers()
  const starts = new StartLimit(4)
  for (let i = 0; i < count; i++) void starts.acquire()
  let hasEntered = false
  void starts.acquire().then(() => {
    hasEntered = true
  })
  await vi.advanceTimersByTimeAsync(ms - 1)
  expect(hasEntered).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(hasEntered).toBe(true)
})

it('a start that ends after its slot was freed frees no slot of the others', async () => {
  vi.useFakeTimers()
  const starts = new StartLimit(1)
  const leaveSlow = await starts.acquire()
  const second = starts.acquire()
  await vi.advanceTimersByTimeAsync(2500)
  const leaveSecond = await second
  leaveSlow()
  let hasEntered = false
  void starts.acquire().then(() => {
    hasEntered = true
  })
  await vi.advanceTimersByTimeAsync(0)
  expect(hasEntered).toBe(false)
  leaveSecond()
  await vi.advanceTimersByTimeAsync(0)
  expect(hasEntered).toBe(true)
})
