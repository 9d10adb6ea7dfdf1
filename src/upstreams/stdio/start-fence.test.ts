import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { StartFence } from './start-fence.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const build = () => {
  const passed: string[] = []
  let pings = 0
  const fence = new StartFence(() => ++pings)
  return { fence, passed, pass: (name: string) => fence.pass(() => passed.push(name)), pings: () => pings }
}

it('lets calls through as soon as the ping is answered, if the server asks for nothing', () => {
  const { fence, passed, pass } = build()
  pass('call')
  expect(fence.answered(7)).toBe(false)
  expect(passed).toEqual([])
  expect(fence.answered(1)).toBe(true)
  pass('next')
  expect(passed).toEqual(['call', 'next'])
})

it.each(['before', 'after'])('waits for the roots, and for the server to read them, if they come %s the ping', when => {
  const { fence, passed, pass, pings } = build()
  pass('call')
  const settled = fence.asked()
  if (when === 'after') fence.answered(1)
  settled()
  if (when === 'before') fence.answered(1)
  expect([passed, pings()]).toEqual([[], 2])
  vi.advanceTimersByTime(1000)
  expect(passed).toEqual([])
  fence.answered(2)
  vi.advanceTimersByTime(50)
  expect(passed).toEqual(['call'])
})

it('holds nobody up for long: neither for a server that answers no ping nor for a client that tells no roots', () => {
  const mute = build()
  mute.pass('call')
  vi.advanceTimersByTime(2000)
  expect(mute.passed).toEqual(['call'])
  const secretive = build()
  secretive.pass('call')
  secretive.fence.asked()
  secretive.fence.answered(1)
  vi.advanceTimersByTime(5000)
  expect(secretive.passed).toEqual(['call'])
})
