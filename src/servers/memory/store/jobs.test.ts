import { describe, expect, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import { START, tell } from '../../../../test/support/memory/sqlite-store.ts'

describe.each(ENGINES)('$name', ({ temporaryStore }) => {
  const MINUTE = 60_000
  const KINDS = ['extract', 'embed'] as const
  const extract = [{ kind: 'extract' }] as const

  const clocked = async () => {
    const clock = { now: START }
    return { clock, store: await temporaryStore(() => clock.now) }
  }

  test('work is handed out in order within a group, and groups do not wait for each other', async () => {
    const { store } = await clocked()
    for (const [group, text] of [
      ['a', 'Ann: 1'],
      ['a', 'Ann: 2'],
      ['b', 'Ann: 3'],
    ] as const)
      await tell(store, text, { group, jobs: extract })
    const first = await store.lease('w1', KINDS, MINUTE)
    const second = await store.lease('w2', KINDS, MINUTE)
    expect([first?.group, second?.group]).toEqual(['a', 'b'])
    expect(await store.lease('w3', KINDS, MINUTE)).toBeUndefined()
    expect(await store.finish({ job: first?.id ?? 0, owner: 'w1' })).toBe(true)
    expect((await store.lease('w3', KINDS, MINUTE))?.group).toBe('a')
  })

  test('an episode is pending until its work is done', async () => {
    const { store } = await clocked()
    const { episode } = await tell(store, 'Ann: 1', { jobs: extract })
    expect(episode.state).toBe('pending')
    const job = await store.lease('w', KINDS, MINUTE)
    await store.enrich(episode.uuid, { entities: [{ name: 'Zoe' }], facts: [] }, { job: job?.id ?? 0, owner: 'w' })
    expect((await store.episode(episode.uuid))?.state).toBe('ready')
    expect((await store.episodeGraph([episode.uuid])).entities.map(entity => entity.name)).toContain('Zoe')
  })

  test('a lost lease cannot finish, fail, renew or write', async () => {
    const { clock, store } = await clocked()
    const { episode } = await tell(store, 'Ann: 1', { jobs: extract })
    const job = (await store.lease('slow', KINDS, MINUTE))?.id ?? 0
    clock.now += 2 * MINUTE
    expect((await store.lease('quick', KINDS, MINUTE))?.attempts).toBe(2)
    const slow = { job, owner: 'slow' }
    expect([await store.finish(slow), await store.fail(slow, 'x'), await store.renew(slow, MINUTE)]).toEqual([
      false,
      false,
      false,
    ])
    await expect(store.enrich(episode.uuid, { entities: [{ name: 'Zoe' }], facts: [] }, slow)).rejects.toThrow(/lease/)
    expect((await store.entities('all', 9)).map(entity => entity.name)).not.toContain('Zoe')
  })

  test('failed work waits for its time, is given up visibly and can be tried again', async () => {
    const { clock, store } = await clocked()
    const { episode } = await tell(store, 'Ann: 1', { jobs: extract })
    const job = (await store.lease('w', KINDS, MINUTE))?.id ?? 0
    await store.fail({ job, owner: 'w' }, 'no answer', clock.now + 5 * MINUTE)
    expect(await store.lease('w', KINDS, MINUTE)).toBeUndefined()
    expect(await store.nextDue(KINDS)).toBe(START + 5 * MINUTE)
    clock.now += 5 * MINUTE
    expect((await store.lease('w', KINDS, MINUTE))?.error).toBe('no answer')
    await store.fail({ job, owner: 'w' }, 'gave up')
    expect(await store.episode(episode.uuid)).toMatchObject({ state: 'failed', error: 'gave up' })
    expect((await store.stats()).jobs).toEqual({ waiting: 0, leased: 0, failed: 1 })
    expect(await store.retry(job)).toBe(true)
    expect((await store.lease('w', KINDS, MINUTE))?.attempts).toBe(1)
  })

  test('work that was given up does not hold up the rest of its group', async () => {
    const { store } = await clocked()
    for (const text of ['Ann: 1', 'Ann: 2']) await tell(store, text, { jobs: extract })
    const job = await store.lease('w', KINDS, MINUTE)
    await store.fail({ job: job?.id ?? 0, owner: 'w' }, 'broken')
    expect((await store.lease('w', KINDS, MINUTE))?.id).toBe((job?.id ?? 0) + 1)
  })

  test('a clock that was set back neither hides waiting work nor keeps dead leases alive', async () => {
    const { clock, store } = await clocked()
    await tell(store, 'Ann: 1', { jobs: extract })
    await store.lease('dead', KINDS, MINUTE)
    clock.now -= 400 * 24 * 60 * MINUTE
    expect(await store.lease('w', KINDS, MINUTE)).toBeDefined()
  })

  test('work goes with its episode', async () => {
    const { store } = await clocked()
    const { episode } = await tell(store, 'Ann: 1', { jobs: extract })
    await store.deleteEpisode(episode.uuid)
    expect(await store.jobs({ groups: 'all', limit: 9 })).toEqual([])
  })

  test('a failure that does not count is no attempt, and the jobs behind it are not due before', async () => {
    const { clock, store } = await clocked()
    for (const text of ['Ann: 1', 'Ann: 2']) await tell(store, text, { jobs: extract })
    const job = await store.lease('w', KINDS, MINUTE)
    expect(job?.attempts).toBe(1)
    const until = clock.now + 5 * MINUTE
    expect(await store.fail({ job: job?.id ?? 0, owner: 'w' }, 'not yet', until, false)).toBe(true)
    const [first] = await store.jobs({ groups: 'all', limit: 9 })
    expect(first).toMatchObject({ state: 'waiting', attempts: 0, nextAt: until, error: 'not yet' })
    expect(await store.nextDue(KINDS)).toBe(until)
  })

  test('what is kept for background work is changed in one step', async () => {
    const { store } = await clocked()
    expect(await store.amend('count', known => known)).toBeUndefined()
    await Promise.all(Array.from({ length: 9 }, () => store.amend('count', known => Number(known ?? 0) + 1)))
    expect(await store.amend('count', known => known)).toBe(9)
  })

  test('work that is to wait for days is not taken for that of a clock set back', async () => {
    const { clock, store } = await clocked()
    await tell(store, 'Ann: 1', { jobs: extract })
    const job = (await store.lease('w', KINDS, MINUTE))?.id ?? 0
    await store.fail({ job, owner: 'w' }, 'come back in three days', clock.now + 3 * 24 * 60 * MINUTE, false)
    expect(await store.lease('w', KINDS, MINUTE)).toBeUndefined()
    expect(await store.nextDue(KINDS)).toBeGreaterThan(clock.now + 60 * MINUTE)
  })
})
