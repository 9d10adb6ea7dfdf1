import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { StateError, type StateStore } from '../../stores/state/state-store.ts'
import { type Log, SILENT } from '../../telemetry/log.ts'
import { StoredSession } from './stored-session.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const create = (store: StateStore, log: Log = SILENT) => {
  const state = { text: 'a', isLost: false }
  const read = () => ({ body: Buffer.from(state.text), expires: Date.now() + 60_000 })
  const onLost = () => {
    state.isLost = true
  }
  return { state, stored: new StoredSession({ id: 's', store, read, onLost, log }) }
}

const bodyIn = async (store: StateStore) => (await store.read('session', 's'))?.body.toString()
const isSettled = async (promise: Promise<void>): Promise<boolean> => {
  const pending = {}
  await vi.advanceTimersByTimeAsync(0)
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending
}

test('a session is stored as it is when the write begins, and again if it changed meanwhile', async () => {
  const store = new MemoryCluster().join()
  const { state, stored } = create(store)
  const first = stored.save()
  state.text = 'b'
  const second = stored.save()
  await Promise.all([first, second])
  expect(await bodyIn(store)).toBe('b')
})

test('with the store away a client waits two seconds, and the session is written later', async () => {
  const store = new MemoryCluster().join()
  let isBack = (): void => {}
  const back = new Promise<void>(resolve => {
    isBack = resolve
  })
  const { create: createRecord } = store
  store.create = async (...args) => {
    await back
    return createRecord.apply(store, args)
  }
  const { state, stored } = create(store)
  const saving = stored.save()
  await vi.advanceTimersByTimeAsync(1999)
  expect(await isSettled(saving)).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await isSettled(saving)).toBe(true)
  expect(await bodyIn(store)).toBeUndefined()
  state.text = 'later'
  void stored.save()
  isBack()
  await vi.advanceTimersByTimeAsync(0)
  expect(await bodyIn(store)).toBe('later')
})

test('a failed write is due again; one that arrived all the same is taken over', async () => {
  const store = new MemoryCluster().join()
  const { create: createRecord } = store
  store.create = async (...args) => {
    await createRecord.apply(store, args)
    throw new StateError('away', 'the connection broke')
  }
  const { state, stored } = create(store)
  await stored.save()
  expect(stored.savedAt).toBe(0)
  state.text = 'b'
  store.create = createRecord
  await stored.save()
  expect(stored.savedAt).toBe(Date.now())
  expect(await bodyIn(store)).toBe('b')
})

test('a store that has lost its data gets the session again', async () => {
  const cluster = new MemoryCluster()
  const store = cluster.join()
  const { stored } = create(store)
  await stored.save()
  cluster.records.clear()
  await stored.save()
  expect(await bodyIn(store)).toBe('a')
})

test('a session that another replica has taken is lost, and not written any more', async () => {
  const cluster = new MemoryCluster()
  const [store, other] = [cluster.join(), cluster.join()]
  const { state, stored } = create(store)
  await stored.save()
  await store.releaseAll()
  await other.take('session', 's')
  state.text = 'too late'
  await stored.save()
  expect(state.isLost).toBe(true)
  expect(await bodyIn(other)).toBe('a')
  await stored.remove()
  expect(await bodyIn(other)).toBe('a')
})

test('a session that is removed while it is being written is gone', async () => {
  const store = new MemoryCluster().join()
  const { stored } = create(store)
  void stored.save()
  await stored.remove()
  expect(await bodyIn(store)).toBeUndefined()
})

test('one that is too large is reported once', async () => {
  const warnings: string[] = []
  const log = { ...SILENT, warn: (_: object, text: string) => void warnings.push(text) }
  const { state, stored } = create(new MemoryCluster().join(), log)
  state.text = 'x'.repeat(65 * 1024)
  await stored.save()
  await stored.save()
  expect(warnings).toEqual(['session not stored: it would not survive a restart'])
})

test.each(Array.from({ length: 12 }, (_, at) => at))(
  'a change just as a write ends is stored, too (%i)',
  async turns => {
    const store = new MemoryCluster().join()
    let body = 'first'
    const read = () => ({ body: Buffer.from(body), expires: Number.POSITIVE_INFINITY })
    const stored = new StoredSession({ id: 'a', store, read, onLost: () => {}, log: SILENT })
    void stored.save()
    for (let turn = 0; turn < turns; turn++) await null
    body = 'second'
    await stored.save()
    expect((await store.read('session', 'a'))?.body.toString()).toBe('second')
  },
)
