import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { RootsWait } from './roots-wait.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const build = () => {
  const passed: string[] = []
  let pings = 0
  const wait = new RootsWait(() => ++pings)
  return { wait, passed, pass: (name: string) => wait.run(() => passed.push(name)), pings: () => pings }
}

it('sends calls as soon as the ping is answered, if the server asks for nothing', () => {
  const { wait, passed, pass } = build()
  pass('call')
  expect(wait.answered(7)).toBe(false)
  expect(passed).toEqual([])
  expect(wait.answered(1)).toBe(true)
  pass('next')
  expect(passed).toEqual(['call', 'next'])
})

it.each(['before', 'after'])('waits for the roots, and for the server to read them, if they come %s the ping', when => {
  const { wait, passed, pass, pings } = build()
  pass('call')
  const settled = wait.asked()
  if (when === 'after') wait.answered(1)
  settled()
  if (when === 'before') wait.answered(1)
  expect([passed, pings()]).toEqual([[], 2])
  vi.advanceTimersByTime(1000)
  expect(passed).toEqual([])
  wait.answered(2)
  vi.advanceTimersByTime(50)
  expect(passed).toEqual(['call'])
})

it('ends after a timeout, if the server answers no ping or the client sends no roots', () => {
  const mute = build()
  mute.pass('call')
  vi.advanceTimersByTime(2000)
  expect(mute.passed).toEqual(['call'])
  const secretive = build()
  secretive.pass('call')
  secretive.wait.asked()
  secretive.wait.answered(1)
  vi.advanceTimersByTime(5000)
  expect(secretive.passed).toEqual(['call'])
})
