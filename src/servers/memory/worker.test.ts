import { expect, onTestFinished, test, vi } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { temporaryFolder } from '../../../test/support/memory/sqlite-store.ts'
import type { Job } from './model.ts'
import { openSqliteStores } from './open-stores.ts'
import type { MemoryStores } from './store.ts'
import { createWorker, type JobHandler, PermanentFailure, RetryLater, retryDelayMs } from './worker.ts'

const start = async (handle: JobHandler) => {
  const stores = openSqliteStores({ folder: await temporaryFolder() })
  const worker = createWorker({ stores, handlers: { communities: handle }, log: createTestLog().log })
  onTestFinished(async () => {
    await worker.close()
    await stores.close()
  })
  const enqueue = (group: string) =>
    stores.with('t', store => store.enqueue(group, { kind: 'communities' })).then(() => worker.wake('t'))
  const jobs = () => stores.with('t', store => store.jobs({ groups: 'all', limit: 10 }))
  return { stores, worker, enqueue, jobs }
}

test('jobs run one after the other and are deleted when done', async () => {
  const done: string[] = []
  let running = 0
  const { enqueue, jobs } = await start(async (_store, { group }) => {
    expect(++running).toBe(1)
    await new Promise(setImmediate)
    running--
    done.push(group)
  })
  for (const group of ['a', 'b', 'c']) await enqueue(group)
  await vi.waitFor(async () => expect(await jobs()).toEqual([]))
  expect(done).toEqual(['a', 'b', 'c'])
})

test('a failed job is retried with backoff and records the error', async () => {
  const { enqueue, jobs } = await start(() => Promise.reject(new Error('the endpoint is down')))
  await enqueue('a')
  const failed = await vi.waitFor(async () => {
    const [job] = await jobs()
    expect(job).toMatchObject({ state: 'waiting', attempts: 1, error: 'the endpoint is down' })
    return job as Job
  })
  expect(failed.nextAt).toBeGreaterThan(failed.createdAt)
  expect(retryDelayMs(2, 0.5)).toBe(2 * retryDelayMs(1, 0.5))
  expect(retryDelayMs(50, 1)).toBe(40 * 60_000)
})

test('a PermanentFailure ends the job at once; it stays listed as failed', async () => {
  const { enqueue, jobs } = await start(() => Promise.reject(new PermanentFailure('the answer makes no sense')))
  await enqueue('a')
  await vi.waitFor(async () =>
    expect(await jobs()).toMatchObject([{ state: 'failed', error: 'the answer makes no sense' }]),
  )
})

test('resume does the jobs that an earlier process left', async () => {
  const done: string[] = []
  const { stores, worker } = await start(async (_store, { group }) => void done.push(group))
  await stores.with('t', store => store.enqueue('a', { kind: 'communities' }))
  await worker.resume()
  await vi.waitFor(() => expect(done).toEqual(['a']))
})

test('RetryLater postpones a job without counting an attempt', async () => {
  const until = Date.now() + 3_600_000
  const { enqueue, jobs } = await start(() => Promise.reject(new RetryLater('the budget is used up', until)))
  await enqueue('a')
  await vi.waitFor(async () =>
    expect(await jobs()).toMatchObject([
      { state: 'waiting', attempts: 0, nextAt: until, error: 'the budget is used up' },
    ]),
  )
})

test('a job is not due before an older job of its group', async () => {
  const until = Date.now() + 3_600_000
  const { enqueue, jobs, stores } = await start(() => Promise.reject(new RetryLater('not yet', until)))
  for (let at = 0; at < 3; at++) await enqueue('a')
  await vi.waitFor(async () => expect((await jobs())[0]?.error).toBe('not yet'))
  expect(await stores.with('t', store => store.nextDue(['communities']))).toBe(until)
})

test('prepare is called once per tenant, before its first job', async () => {
  const stores = openSqliteStores({ folder: await temporaryFolder() })
  const done: string[] = []
  const worker = createWorker({
    stores,
    handlers: { communities: async (_, { group }) => void done.push(group) },
    log: createTestLog().log,
    prepare: async store => {
      done.push('prepared')
      await store.enqueue('a', { kind: 'communities' })
    },
  })
  onTestFinished(async () => {
    await worker.close()
    await stores.close()
  })
  worker.wake('t')
  await vi.waitFor(() => expect(done).toEqual(['prepared', 'a']))
  await stores.with('t', store => store.enqueue('b', { kind: 'communities' }))
  worker.wake('t')
  await vi.waitFor(() => expect(done).toEqual(['prepared', 'a', 'b']))
})

test('work that stopped for a busy file is retried by a timer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const done: string[] = []
  const { stores, worker } = await start(async (_store, { group }) => void done.push(group))
  await stores.with('t', store => store.enqueue('a', { kind: 'communities' }))
  let failures = 1
  const flaky = {
    ...stores,
    with: ((tenant, use) =>
      failures-- > 0
        ? Promise.reject(new Error('the file is busy'))
        : stores.with(tenant, use)) as MemoryStores['with'],
  }
  const other = createWorker({
    stores: flaky,
    handlers: { communities: async (_store, { group }) => void done.push(group) },
    log: createTestLog().log,
  })
  onTestFinished(() => other.close())
  other.wake('t')
  await vi.waitFor(() => expect(failures).toBe(0))
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  await vi.advanceTimersByTimeAsync(60_000)
  await vi.waitFor(() => expect(done).toEqual(['a']))
  await worker.close()
})

test('closing aborts the running job, which stays enqueued without counting an attempt', async () => {
  const { stores, enqueue, jobs, worker } = await start(async (_store, _job, _lease, signal) => {
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('the call was cut'))))
  })
  await enqueue('a')
  await vi.waitFor(async () => expect(await jobs()).toMatchObject([{ state: 'leased', attempts: 1 }]))
  await worker.close()
  expect(await jobs()).toMatchObject([{ state: 'waiting', attempts: 0, error: expect.stringContaining('stopped') }])
  const due = await stores.with('t', store => store.nextDue(['communities']))
  expect(due).toBeLessThan(Date.now() + 60_000)
})

test('a PermanentFailure during closing still ends the job', async () => {
  const { enqueue, jobs, worker } = await start(async (_store, _job, _lease, signal) => {
    await new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(new PermanentFailure('no sense in it'))),
    )
  })
  await enqueue('a')
  await vi.waitFor(async () => expect(await jobs()).toMatchObject([{ state: 'leased' }]))
  await worker.close()
  expect(await jobs()).toMatchObject([{ state: 'failed', error: 'no sense in it' }])
})

test('closing waits for a job that ignores the signal, and starts no other', async () => {
  const begun: string[] = []
  let finish = (): void => {}
  const { enqueue, jobs, worker } = await start(async (_store, { group }) => {
    begun.push(group)
    await new Promise<void>(resolve => (finish = resolve))
  })
  await enqueue('a')
  await enqueue('b')
  await vi.waitFor(() => expect(begun).toEqual(['a']))
  const closing = worker.close()
  finish()
  await closing
  expect((await jobs()).map(({ group, state }) => [group, state])).toEqual([['b', 'waiting']])
  expect(begun).toEqual(['a'])
})
