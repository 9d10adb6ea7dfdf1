import { expect, onTestFinished, test, vi } from 'vitest'
import { EventLog, type StreamReader } from './event-log.ts'
import { StreamRetention } from './stream-retention.ts'

const BOUNDS = { streamLogBytes: 1000, streamLogEvents: 10 }

/** A reader that takes as much as it is told to. */
const reader = (room = Number.POSITIVE_INFINITY) => {
  const state = { taken: [] as string[], isEnded: false, isDestroyed: false, room }
  const self: StreamReader = {
    write: pieces => {
      state.taken.push(/data: (.*)/.exec(Buffer.concat([...pieces]).toString())?.[1] ?? '')
      return --state.room > 0
    },
    end: () => {
      state.isEnded = true
    },
    destroy: () => {
      state.isDestroyed = true
    },
  }
  return { self, state }
}

const make = (
  key: string | undefined = 's',
  bounds = BOUNDS,
  retention = new StreamRetention({ total: 1e6, perOwner: 1e6 }),
) => ({
  log: new EventLog(key, { limits: bounds, retention }, 'me'),
  retention,
})
const say = (log: EventLog, text: string, merge?: string) => log.append([Buffer.from(text)], merge)

test('a reader gets the events from before it was attached, then new ones', () => {
  const { log } = make()
  void say(log, 'a')
  const { self, state } = reader()
  log.attach(self)
  void say(log, 'b')
  expect(state.taken).toEqual(['a', 'b'])
})

test('a full reader continues when it has drained, and append waits for it', async () => {
  const { log } = make()
  const { self, state } = reader(1)
  log.attach(self)
  const pending = say(log, 'a')
  void say(log, 'b')
  expect(state.taken).toEqual(['a'])
  state.room = 10
  log.drained(self)
  await pending
  expect(state.taken).toEqual(['a', 'b'])
})

test('a newer event replaces a waiting one of the same name, in its place', () => {
  const { log } = make()
  void say(log, 'p1', 'progress')
  void say(log, 'x')
  void say(log, 'p2', 'progress')
  const { self, state } = reader()
  log.attach(self)
  void say(log, 'p3', 'progress')
  expect(state.taken).toEqual(['p2', 'x', 'p3'])
})

test('a reader that reconnects starts after the last event it saw', () => {
  const { log } = make()
  const first = reader()
  log.attach(first.self)
  for (const text of ['a', 'b', 'c']) void say(log, text)
  log.detach(first.self)
  const second = reader()
  log.attach(second.self, 2)
  expect(second.state.taken).toEqual(['c'])
})

test('the log is bounded: old events are dropped', () => {
  const { log } = make()
  for (let i = 0; i < 25; i++) void say(log, String(i))
  expect([log.holds(5), log.holds(14), log.holds(24), log.holds(25)]).toEqual([false, true, true, false])
})

test('bytes are bounded too, and counted by the retention', () => {
  const { log, retention } = make()
  for (let i = 0; i < 9; i++) void say(log, 'x'.repeat(300))
  expect(retention.bytes).toBeLessThanOrEqual(1000)
  log.clear()
  expect(retention.bytes).toBe(0)
})

test('one event larger than the log reaches its reader', () => {
  const { log } = make()
  const { self, state } = reader()
  log.attach(self)
  void say(log, 'x'.repeat(5000))
  expect(state.taken[0]?.length).toBe(5000)
})

test('a reader with more than a whole log waiting is destroyed', () => {
  const { log } = make()
  const { self, state } = reader(1)
  log.attach(self)
  for (let i = 0; i < 20; i++) void say(log, String(i))
  expect(state.isDestroyed).toBe(true)
  expect(log.hasReader).toBe(false)
})

test('a finished log ends its reader once it has taken everything', () => {
  const { log } = make()
  const { self, state } = reader(1)
  log.attach(self)
  void say(log, 'a')
  void say(log, 'b')
  log.finish()
  expect(state.isEnded).toBe(false)
  state.room = 10
  log.drained(self)
  expect([state.taken, state.isEnded]).toEqual([['a', 'b'], true])
})

test('without a key events are dropped once taken', () => {
  const { log, retention } = make('')
  const plain = new EventLog(undefined, { limits: BOUNDS, retention }, 'me')
  const { self } = reader()
  plain.attach(self)
  void say(plain, 'a')
  expect(retention.bytes).toBe(0)
  expect(log.next).toBe(0)
})

test('above the total limit the oldest finished logs are dropped first', () => {
  const retention = new StreamRetention({ total: 1000, perOwner: 1000 })
  const gone: string[] = []
  const logs = ['a', 'b', 'c'].map(key => {
    const { log } = make(key, BOUNDS, retention)
    for (const half of [1, 2]) void say(log, `${half}`.repeat(175))
    log.finish()
    retention.retain(log, 1000, () => gone.push(key))
    return log
  })
  expect(gone).toEqual(['a'])
  expect(logs[0]?.holds(0)).toBe(false)
  expect(logs[1]?.holds(0)).toBe(true)
})

test('retained logs are dropped when they expire, each after its own lifetime', () => {
  const retention = new StreamRetention({ total: 1e6, perOwner: 1e6 })
  const gone: string[] = []
  for (const [key, lifetime] of [
    ['long', 1000],
    ['short', 10],
  ] as const)
    retention.retain(make(key, BOUNDS, retention).log, lifetime, () => gone.push(key))
  retention.sweep(Date.now() + 500)
  expect(gone).toEqual(['short'])
  retention.sweep(Date.now() + 1500)
  expect(gone).toEqual(['short', 'long'])
})

test('an owner above its limit loses its own oldest finished logs, and others lose none', () => {
  const retention = new StreamRetention({ total: 1e6, perOwner: 1000 })
  const gone: string[] = []
  const shelved = (key: string, owner: string) => {
    const log = new EventLog(key, { limits: BOUNDS, retention }, owner)
    void say(log, 'x'.repeat(350))
    log.finish()
    retention.retain(log, 1000, () => gone.push(key))
  }
  shelved('other', 'ben')
  for (const key of ['a', 'b', 'c', 'd']) shelved(key, 'ana')
  expect(gone).toEqual(['a', 'b'])
})

test('open streams are trimmed too, those of the owner with the most bytes first', () => {
  const retention = new StreamRetention({ total: 1000, perOwner: 1000 })
  const hog = new EventLog('hog', { limits: BOUNDS, retention }, 'ana')
  for (let i = 0; i < 2; i++) void say(hog, 'x'.repeat(350))
  const small = new EventLog('small', { limits: BOUNDS, retention }, 'ben')
  void say(small, 'y'.repeat(350))
  expect(retention.bytes).toBeLessThanOrEqual(1000)
  expect([hog.holds(-1), small.holds(-1)]).toEqual([false, true])
})

test('no state is kept for an owner without logs', () => {
  const retention = new StreamRetention({ total: 1e6, perOwner: 1e6 })
  const log = new EventLog('k', { limits: BOUNDS, retention }, 'ana')
  void say(log, 'x')
  expect(retention.owners).toBe(1)
  log.clear()
  expect([retention.owners, retention.bytes]).toEqual([0, 0])
})

test('a journal gets each event, and one that replaces another under its number', async () => {
  const stored: [number, string][] = []
  const retention = new StreamRetention({ total: 1e6, perOwner: 1e6 })
  const log = new EventLog('s', { limits: BOUNDS, retention }, 'me', (sequence, data) => {
    stored.push([sequence, Buffer.concat([...data]).toString()])
    return undefined
  })
  for (const [text, merge] of [['a'], ['p1', 'p'], ['b'], ['p2', 'p']] as const) void say(log, text, merge)
  const { self, state } = reader()
  log.attach(self)
  void say(log, 'p3', 'p') // the one before was taken
  expect(stored).toEqual([
    [0, 'a'],
    [1, 'p1'],
    [2, 'b'],
    [1, 'p2'],
    [3, 'p3'],
  ])
  expect(state.taken).toEqual(['a', 'p2', 'b', 'p3'])
})

test('append waits for a journal that is behind, and for a reader that is full', async () => {
  let store = (): void => {}
  const storing = new Promise<void>(resolve => {
    store = resolve
  })
  const retention = new StreamRetention({ total: 1e6, perOwner: 1e6 })
  const log = new EventLog('s', { limits: BOUNDS, retention }, 'me', () => storing)
  const { self, state } = reader(1)
  log.attach(self)
  let isDone = false
  const appending = Promise.resolve(say(log, 'a')).then(() => {
    isDone = true
  })
  state.room = 10
  log.drained(self)
  await new Promise(setImmediate)
  expect(isDone).toBe(false)
  store()
  await appending
})

test('100,000 events leave no more than the bounds in memory, with a reader and without', () => {
  const retention = new StreamRetention({ total: 1e9, perOwner: 1e9 })
  const bounds = { streamLogBytes: 1e9, streamLogEvents: 100 }
  for (const hasReader of [true, false]) {
    const log = new EventLog('s', { limits: bounds, retention }, 'me', () => undefined)
    if (hasReader) log.attach(reader().self)
    for (let n = 0; n < 100_000; n++) void say(log, 'x'.repeat(20))
    expect(log.next).toBe(100_000)
    expect([log.holds(99_898), log.holds(99_899)]).toEqual([false, true])
    log.clear()
  }
  expect(retention.bytes).toBe(0)
})

test('a reader is sent away with a time only after it has taken an event, whose id it comes back with', () => {
  const { log } = make()
  const first = reader()
  log.attach(first.self)
  log.closeReader(5)
  expect(first.state.isEnded).toBe(false)
  void say(log, 'a')
  expect(first.state.isEnded).toBe(false) // what was said before the event is over
  log.closeReader(5)
  expect(first.state).toMatchObject({ isEnded: true, taken: ['a', ''] })
  void say(log, 'b')
  const second = reader()
  log.attach(second.self, 1)
  log.closeReader(5)
  expect(second.state).toMatchObject({ isEnded: true, taken: ['b', ''] })
})

test('a log knows for how long no client has read it', () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const { log } = make()
  expect(log.unreadMs).toBe(Number.POSITIVE_INFINITY)
  const { self } = reader()
  log.attach(self)
  vi.advanceTimersByTime(70)
  expect(log.unreadMs).toBe(0)
  log.detach(self)
  vi.advanceTimersByTime(30)
  expect(log.unreadMs).toBe(30)
})
