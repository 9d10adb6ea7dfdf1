import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { GatewayStatus } from '../protocol/status.ts'
import { LogHistory } from '../telemetry/log-history.ts'
import type { AdminRole } from './api/session.ts'
import type { AdminCall } from './endpoints.ts'
import { EventFeed } from './event-feed.ts'

/** A response whose reader can stop. */
class TestResponse extends EventEmitter {
  text = ''
  writableNeedDrain = false
  destroyed = false
  isEnded = false
  writeHead = vi.fn()
  write(text: string): boolean {
    this.text += text
    return !this.writableNeedDrain
  }
  end(): void {
    this.isEnded = true
  }
  stall(): void {
    this.writableNeedDrain = true
  }
  drain(): void {
    this.writableNeedDrain = false
    this.emit('drain')
  }
  take(): { readonly kind: string; readonly data: unknown }[] {
    const events = [...this.text.matchAll(/^event: (\w+)\ndata: (.*)\n\n/gm)]
    this.text = ''
    return events.map(([, kind = '', data = '']) => ({ kind, data: JSON.parse(data) as unknown }))
  }
}

const setup = () => {
  let current = { memoryBytes: 100_000_000, sessions: 0 } as unknown as GatewayStatus
  const history = new LogHistory()
  const status = vi.fn(() => current)
  const feed = new EventFeed({ status, history })
  const attach = (role: AdminRole = 'owner', principal = 'ann') => {
    const response = new TestResponse()
    feed.attach({ caller: { role, principal }, response } as unknown as AdminCall)
    return response
  }
  const change = (next: Partial<GatewayStatus>): void => {
    current = { ...current, ...next }
  }
  return { feed, history, status, attach, change }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())
const pass = (ms: number) => vi.advanceTimersByTime(ms)
const kinds = (response: TestResponse) => response.take().map(({ kind }) => kind)

it('a reader gets the status at once, and then at most once a second, if it has changed', () => {
  const { attach, change } = setup()
  const reader = attach()
  pass(50)
  expect(reader.take()).toEqual([{ kind: 'status', data: { memoryBytes: 99_614_720, sessions: 0 } }])
  pass(10_000)
  expect(kinds(reader)).toEqual([])
  for (let at = 1; at <= 100; at++) {
    change({ sessions: at })
    pass(30)
  }
  expect(kinds(reader)).toEqual(['status', 'status', 'status'])
  change({ memoryBytes: 100_000_500 })
  pass(2000)
  expect(kinds(reader)).toHaveLength(1) // the last session; so little memory is no news
})

it('nothing is computed while there is no reader', () => {
  const { feed, attach, status } = setup()
  feed.publish('config', {})
  pass(5000)
  expect([status.mock.calls.length, feed.hasListeners, vi.getTimerCount()]).toEqual([0, false, 0])
  const reader = attach()
  expect([feed.hasListeners, vi.getTimerCount() > 0]).toEqual([true, true])
  reader.emit('close')
  const calls = status.mock.calls.length
  pass(5000)
  expect([status.mock.calls.length, feed.hasListeners, vi.getTimerCount()]).toEqual([calls, false, 0])
})

it('lines of the log are for owners', () => {
  const { history, attach } = setup()
  const [owner, viewer] = [attach('owner'), attach('viewer', 'ben')]
  pass(50)
  for (const reader of [owner, viewer]) reader.take()
  history.add({ time: 1, level: 'info', server: 'demo', text: 'hello' })
  pass(50)
  expect(owner.take()).toEqual([
    { kind: 'log', data: { line: { time: 1, level: 'info', server: 'demo', text: 'hello' } } },
  ])
  expect(viewer.take()).toEqual([])
  owner.emit('close')
  history.add({ time: 2, level: 'info', text: 'later' })
  pass(50)
  expect(viewer.take()).toEqual([])
})

it('a slow reader loses events, learns how many, and gets the latest status', () => {
  const { feed, attach, change, history } = setup()
  const [slow, quick] = [attach(), attach()]
  pass(50)
  slow.take()
  slow.stall()
  for (let at = 0; at < 5000; at++) history.add({ time: at, level: 'info', text: 'x'.repeat(200) })
  change({ sessions: 1 })
  pass(1100)
  change({ sessions: 2 })
  pass(1100)
  expect(slow.take()).toEqual([])
  slow.drain()
  pass(50)
  const events = slow.take()
  expect(events[0]).toMatchObject({ kind: 'status', data: { sessions: 2 } })
  const lines = events.filter(({ kind }) => kind === 'log').length
  expect(events.at(-1)).toEqual({ kind: 'dropped', data: { kind: 'log', count: 5000 - lines } })
  expect(lines).toBeLessThan(1500)
  feed.publish('tokens', {})
  pass(50)
  expect(kinds(slow)).toEqual(['tokens'])
  expect(quick.take().filter(({ kind }) => kind === 'status')).toHaveLength(3)
})

it('silence is broken by comments', () => {
  const reader = setup().attach()
  pass(50)
  reader.take()
  pass(31_000)
  expect(reader.text).toBe(':\n\n:\n\n')
})

it('the number of readers is bounded, for each principal and for all', () => {
  const { attach, feed } = setup()
  for (let at = 0; at < 16; at++) attach('viewer', 'ann')
  expect(() => attach('viewer', 'ann')).toThrow('close some tabs')
  for (let at = 0; at < 48; at++) attach('viewer', `user-${at}`)
  expect(() => attach('viewer', 'ben')).toThrow('Too many pages')
  feed.close()
  expect(feed.listenerCount).toBe(0)
  expect(attach().isEnded).toBe(false)
})

it('a gateway that stops ends the responses', () => {
  const { attach, feed } = setup()
  const reader = attach()
  feed.close()
  expect([reader.isEnded, vi.getTimerCount()]).toEqual([true, 0])
})
