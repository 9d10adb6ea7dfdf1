import { expect, onTestFinished, vi } from 'vitest'
import { createModels, type ModelOptions } from '../../../src/servers/memory/extract/models.ts'
import type { Job } from '../../../src/servers/memory/model.ts'
import { openSqliteStores } from '../../../src/servers/memory/open-stores.ts'
import { createRemember, type EpisodeInput } from '../../../src/servers/memory/remember.ts'
import type { MemoryStore } from '../../../src/servers/memory/store.ts'
import { createWorker } from '../../../src/servers/memory/worker.ts'
import { createTestLog } from '../log.ts'
import { temporaryFolder } from './sqlite-store.ts'

/** A clock that is put forward by hand. */
export interface Clock {
  at: number
}

/** A memory that models work for, as the program sets it up; `folder` is that of one before it. */
export const startModels = async (
  options: Omit<ModelOptions, 'now'>,
  folder?: string,
  clock: Clock = { at: Date.now() },
) => {
  const now = (): number => clock.at
  const place = folder ?? (await temporaryFolder())
  const { log, lines } = createTestLog()
  const models = createModels({ ...options, now }, log)
  const stores = openSqliteStores({ folder: place, now })
  const handlers = {
    ...(models.extract && { extract: models.extract }),
    ...(models.embedJob && { embed: models.embedJob }),
  }
  const worker = createWorker({ stores, handlers, log, prepare: models.prepare, now })
  let isOver = false
  const stop = async (): Promise<void> => {
    if (isOver) return
    isOver = true
    await models.close()
    await worker.close()
    await stores.close()
  }
  onTestFinished(stop)

  const remember = createRemember({
    extracts: options.extraction !== undefined,
    embeds: options.embedding !== undefined,
    now,
  })
  const use = <T>(work: (store: MemoryStore) => Promise<T>): Promise<T> => stores.with('t', work)
  /** Stores an episode, a moment after whatever was before. */
  const addText = async (body: string, more: Partial<EpisodeInput> = {}) => {
    clock.at += 10
    const told = { group: 'main', name: 'note', body, source: 'text', sourceDescription: '', ...more } as const
    const { episode } = await use(store => remember(store, told))
    worker.wake('t')
    return episode
  }
  const jobs = (): Promise<readonly Job[]> => use(store => store.jobs({ groups: 'all', limit: 99 }))
  const settled = (jobsThen: readonly object[]): Promise<void> =>
    vi.waitFor(async () => expect(await jobs()).toMatchObject(jobsThen), { timeout: 20_000, interval: 10 })
  /** Waits until nothing is left to do. */
  const idle = (): Promise<void> =>
    vi.waitFor(async () => expect(await jobs()).toEqual([]), { timeout: 20_000, interval: 10 })
  /** Puts the clock forward and has the worker look again. */
  const pass = (ms: number): void => {
    clock.at += ms
    worker.wake('t')
  }
  return { ...models, use, addText, jobs, settled, idle, pass, stop, worker, lines, clock, folder: place }
}
