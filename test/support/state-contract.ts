import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { inboxTopic, type ReplicaAbout, type StateStore } from '../../src/stores/state/state-store.ts'

/** Replicas on one store, of any engine. */
export interface StateCluster {
  join(about?: ReplicaAbout): Promise<StateStore>
  /** Ends a replica as a crash does. */
  kill(replica: string): Promise<void>
  /** Lets the lease of a replica run out while it still runs. */
  lapse(replica: string): Promise<void>
  close(): Promise<void>
}

const NEVER = { expires: Number.POSITIVE_INFINITY }
const bytes = (text: string): Buffer => Buffer.from(text)
const textsOf = (data: readonly Buffer[]): string[] => data.map(String)
const soon = { timeout: 10_000, interval: 5 }

/** What every engine of the state store must do. */
export const describeStateStore = (engine: string, open: () => Promise<StateCluster>): void => {
  const cluster = async (): Promise<StateCluster> => {
    const opened = await open()
    onTestFinished(() => opened.close())
    return opened
  }
  const pair = async () => {
    const shared = await cluster()
    return { shared, one: await shared.join(), other: await shared.join() }
  }
  /** Kills `one` and waits until `other` has noticed. */
  const kill = async (shared: StateCluster, one: StateStore, ...others: readonly StateStore[]): Promise<void> => {
    const { self } = one.members
    await shared.kill(self)
    for (const { members } of others) await vi.waitFor(() => expect(members.at(self)).toBeUndefined(), soon)
  }

  describe(`records (${engine})`, () => {
    test('a record is read by every replica as it was written, and removed for all', async () => {
      const { one, other } = await pair()
      const claim = await one.create('session', 'a', Buffer.from([0, 255, 10]), NEVER)
      expect(claim).toEqual({ kind: 'session', id: 'a', epoch: 1 })
      expect(await other.read('session', 'a')).toEqual({ ...claim, body: Buffer.from([0, 255, 10]) })
      expect(await one.write(claim, bytes('next'), NEVER)).toBe(true)
      expect((await other.read('session', 'a'))?.body.toString()).toBe('next')
      expect(await other.read('task', 'a')).toBeUndefined()
      await one.remove(claim)
      expect(await other.read('session', 'a')).toBeUndefined()
      expect(await other.take('session', 'a')).toEqual({ kind: 'none' })
      expect(await one.write(claim, bytes('late'), NEVER)).toBe(false)
    })

    test('an id in use is rejected, also when two replicas create it at once', async () => {
      const { one, other } = await pair()
      const both = [one, other].map(store => store.create('pool', 'key', bytes('x'), NEVER))
      const outcomes = await Promise.allSettled(both)
      expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      const failed = outcomes.find(({ status }) => status === 'rejected')
      expect(failed).toMatchObject({ reason: { name: 'StateError', reason: 'exists' } })
    })

    test('a body beyond the limit is rejected', async () => {
      const { one } = await pair()
      const tooLarge = one.create('session', 'a', Buffer.alloc(64 * 1024 + 1), NEVER)
      await expect(tooLarge).rejects.toMatchObject({ reason: 'limit' })
      const claim = await one.create('session', 'a', Buffer.alloc(64 * 1024), NEVER)
      await expect(one.write(claim, Buffer.alloc(64 * 1024 + 1), NEVER)).rejects.toMatchObject({ reason: 'limit' })
      await one.create('task', 'large', Buffer.alloc(1024 * 1024), NEVER)
    })

    test('a live home keeps its record; after its end one replica takes it, and the former home cannot write', async () => {
      const { shared, one, other } = await pair()
      const third = await shared.join()
      const claim = await one.create('session', 'a', bytes('x'), NEVER)
      expect(await one.take('session', 'a')).toEqual({ kind: 'mine', held: { ...claim, body: bytes('x') } })
      expect(await other.take('session', 'a')).toEqual({ kind: 'other', home: one.members.self })
      await kill(shared, one, other, third)
      const taken = await Promise.all([other, third].map(store => store.take('session', 'a')))
      expect(taken.map(({ kind }) => kind).toSorted()).toEqual(['mine', 'other'])
      const held = taken.flatMap(result => (result.kind === 'mine' ? [result.held] : []))
      expect(held).toEqual([{ ...claim, epoch: 2, body: bytes('x') }])
      expect(await one.write(claim, bytes('late'), NEVER)).toBe(false)
      await one.remove(claim)
      expect((await other.read('session', 'a'))?.body.toString()).toBe('x')
    })

    test('a record without a live end is taken by any replica, and of two takers the later one writes', async () => {
      const { one, other } = await pair()
      const first = await one.create('grant', 'g', bytes('x'), NEVER)
      expect(await one.write(first, bytes('y'), NEVER)).toBe(true)
      const taken = await other.take('grant', 'g')
      expect(taken).toMatchObject({ kind: 'mine', held: { epoch: 2, body: bytes('y') } })
      expect(await one.write(first, bytes('late'), NEVER)).toBe(false)
      if (taken.kind === 'mine') await other.remove(taken.held)
      expect(await one.read('grant', 'g')).toBeUndefined()
    })

    test('records of a kind are listed wherever they were created, up to a limit', async () => {
      const { one, other } = await pair()
      for (const id of ['a', 'b', 'c']) await one.create('token', id, bytes(id), NEVER)
      await one.create('token', 'old', bytes('old'), { expires: Date.now() - 1 })
      await one.create('grant', 'g', bytes('g'), NEVER)
      const listed = await other.list('token', 10)
      expect(listed.map(({ id, body }) => `${id}:${body}`).toSorted()).toEqual(['a:a', 'b:b', 'c:c'])
      expect(await other.list('token', 2)).toHaveLength(2)
      expect(await other.list('oauth-client', 10)).toEqual([])
    })

    test('records of a replica that stops as planned can be taken at once', async () => {
      const { one, other } = await pair()
      const claim = await one.create('session', 'a', bytes('x'), NEVER)
      await one.releaseAll()
      expect(await other.take('session', 'a')).toMatchObject({ kind: 'mine', held: { epoch: 2 } })
      expect(await one.write(claim, bytes('late'), NEVER)).toBe(false)
    })

    test('an expired record is not found, and is swept by its home', async () => {
      const { one, other } = await pair()
      await one.create('server-session', 'old', bytes('old'), { expires: Date.now() - 1 })
      await one.create('server-session', 'new', bytes('new'), { expires: Date.now() + 60_000 })
      expect(await other.read('server-session', 'old')).toBeUndefined()
      expect(await other.take('server-session', 'old')).toEqual({ kind: 'none' })
      expect(await other.takeAbandoned('server-session', 'expired', 10)).toEqual([])
      const [swept, none] = await one.takeAbandoned('server-session', 'expired', 10)
      expect([swept?.body.toString(), none]).toEqual(['old', undefined])
      if (swept) await one.remove(swept)
      expect(await one.takeAbandoned('server-session', 'expired', 10)).toEqual([])
      expect(await one.read('server-session', 'new')).toBeDefined()
    })

    test('expired records of an ended replica are swept by one other', async () => {
      const { shared, one, other } = await pair()
      const third = await shared.join()
      await one.create('server-session', 'old', bytes('old'), { expires: Date.now() - 1 })
      await kill(shared, one, other, third)
      const swept = await Promise.all([other, third].map(store => store.takeAbandoned('server-session', 'expired', 9)))
      expect(swept.flat()).toHaveLength(1)
      expect(await other.takeAbandoned('server-session', 'orphaned', 9)).toEqual([])
    })

    test('an id whose record has expired can be used again, with a higher epoch', async () => {
      const { one } = await pair()
      await one.create('pool', 'key', bytes('old'), { expires: Date.now() - 1 })
      expect((await one.create('pool', 'key', bytes('new'), NEVER)).epoch).toBeGreaterThan(1)
    })

    test('orphaned records are those of ended replicas, up to a limit', async () => {
      const { shared, one, other } = await pair()
      for (const id of ['a', 'b', 'c']) await one.create('task', id, bytes(id), NEVER)
      await one.create('session', 'no-task', bytes('x'), NEVER)
      expect(await other.takeAbandoned('task', 'orphaned', 10)).toEqual([])
      await kill(shared, one, other)
      const first = await other.takeAbandoned('task', 'orphaned', 2)
      expect(first.map(({ epoch }) => epoch)).toEqual([2, 2])
      const rest = await other.takeAbandoned('task', 'orphaned', 10)
      expect(textsOf([...first, ...rest].map(({ body }) => body)).toSorted()).toEqual(['a', 'b', 'c'])
    })
  })

  describe(`journal (${engine})`, () => {
    const read = async (store: StateStore, claim: Parameters<StateStore['remove']>[0], after = 0, limit = 100) =>
      (await store.journal.read(claim, 's', after, limit)).map(({ seq, data }) => `${seq}:${data}`)

    test('events are read in order, also those appended just now, and by the next home', async () => {
      const { shared, one, other } = await pair()
      const claim = await one.create('session', 'a', bytes('x'), NEVER)
      one.journal.append(claim, 's', 1, [bytes('o'), bytes('ne')])
      one.journal.append(claim, 's', 2, [bytes('two')])
      one.journal.append(claim, 's', 3, [bytes('three')])
      one.journal.append(claim, 'another', 1, [bytes('else')])
      expect(await read(one, claim)).toEqual(['1:one', '2:two', '3:three'])
      expect(await read(one, claim, 1, 1)).toEqual(['2:two'])
      expect(await read(one, claim, 3)).toEqual([])
      await kill(shared, one, other)
      const taken = await other.take('session', 'a')
      expect(taken.kind === 'mine' && (await read(other, taken.held, 2))).toEqual(['3:three'])
    })

    test('an event with the number of a stored or queued one replaces it; an empty event is one, too', async () => {
      const { one } = await pair()
      const claim = await one.create('session', 'a', bytes('x'), NEVER)
      for (const [seq, text] of ['', 'one', 'two', 'three'].entries())
        one.journal.append(claim, 's', seq, text === '' ? [] : [bytes(text)])
      one.journal.append(claim, 's', 2, [bytes('queued')])
      expect(await read(one, claim, -1)).toEqual(['0:', '1:one', '2:queued', '3:three'])
      one.journal.append(claim, 's', 3, [bytes('stored')])
      one.journal.append(claim, 's', 4, [bytes('four')])
      expect(await read(one, claim, 0)).toEqual(['1:one', '2:queued', '3:stored', '4:four'])
      one.journal.append(claim, 's', 1, [bytes('first')])
      one.journal.append(claim, 's', 4, [bytes('last')])
      one.journal.append(claim, 's', 5, [bytes('five')])
      expect(await read(one, claim, -1)).toEqual(['0:', '1:first', '2:queued', '3:stored', '4:last', '5:five'])
      expect([await read(one, claim, 1, 1), await read(one, claim, 3)]).toEqual([['2:queued'], ['4:last', '5:five']])
    })

    test('a former home appends nothing', async () => {
      const { one, other } = await pair()
      const claim = await one.create('session', 'a', bytes('x'), NEVER)
      await one.releaseAll()
      const taken = await other.take('session', 'a')
      one.journal.append(claim, 's', 1, [bytes('late')])
      expect(await read(one, claim)).toEqual([])
      expect(taken.kind === 'mine' && (await read(other, taken.held))).toEqual([])
    })

    test('dropped streams and removed records leave no events', async () => {
      const { one } = await pair()
      const claim = await one.create('session', 'a', bytes('x'), NEVER)
      one.journal.append(claim, 's', 1, [bytes('one')])
      one.journal.append(claim, 'kept', 1, [bytes('kept')])
      one.journal.drop(claim, 's')
      expect(await read(one, claim)).toEqual([])
      expect(await one.journal.read(claim, 'kept', 0, 10)).toHaveLength(1)
      await one.remove(claim)
      const again = await one.create('session', 'a', bytes('x'), NEVER)
      expect(await one.journal.read(again, 'kept', 0, 10)).toEqual([])
    })

    test('an event that is too large leaves a gap; a read returns about a mebibyte', async () => {
      const { one } = await pair()
      const claim = await one.create('session', 'a', bytes('x'), NEVER)
      const large = Buffer.alloc(700 * 1024)
      const events = [bytes('one'), Buffer.alloc(8 * 1024 * 1024 + 1), large, large, large]
      for (const [at, event] of events.entries()) await one.journal.append(claim, 's', at + 1, [event])
      const seqs = async (after: number) => (await one.journal.read(claim, 's', after, 100)).map(({ seq }) => seq)
      expect([await seqs(0), await seqs(4)]).toEqual([[1, 3, 4], [5]])
    })
  })

  describe(`inbox, documents, counters (${engine})`, () => {
    test('messages reach the home in order, once, and wake it', async () => {
      const { one, other } = await pair()
      const claim = await one.create('task', 'a', bytes('x'), NEVER)
      const woken = vi.fn()
      one.shared.on(inboxTopic('task', 'a'), woken)
      await other.inbox.put('task', 'a', bytes('first'))
      await one.inbox.put('task', 'a', bytes('second'))
      await vi.waitFor(() => expect(woken).toHaveBeenCalled(), soon)
      expect(textsOf(await one.inbox.drain(claim))).toEqual(['first', 'second'])
      expect(await one.inbox.drain(claim)).toEqual([])
      await other.inbox.put('task', 'a', bytes('third'))
      expect(await one.inbox.drain({ ...claim, epoch: 2 })).toEqual([])
      expect(await one.inbox.drain(claim)).toHaveLength(1)
    })

    test('of two writers of a document one wins, and every replica is notified', async () => {
      const { one, other } = await pair()
      const changed = vi.fn()
      other.shared.on('tokens', changed)
      expect(await one.shared.document('tokens')).toBeUndefined()
      const first = await Promise.all([one, other].map(({ shared }) => shared.writeDocument('tokens', bytes('1'), 0)))
      expect(first.toSorted()).toEqual([false, true])
      expect(await other.shared.writeDocument('tokens', bytes('2'), 1)).toBe(true)
      expect(await one.shared.document('tokens')).toEqual({ version: 2, body: bytes('2') })
      await vi.waitFor(() => expect(changed).toHaveBeenCalled(), soon)
    })

    test('counters add up over replicas, for each window', async () => {
      const { one, other } = await pair()
      const window = Math.floor(Date.now() / 60_000) * 60_000
      await one.shared.count(window, new Map([['a', 2]]))
      const spent = new Map([
        ['a', 3],
        ['b', 1],
      ])
      const sums = await other.shared.count(window, spent)
      expect([...sums].toSorted()).toEqual([
        ['a', 5],
        ['b', 1],
      ])
      expect([...(await one.shared.count(window + 60_000, new Map([['a', 1]])))]).toEqual([['a', 1]])
    })

    test('a notification reaches every replica until the listener is removed', async () => {
      const { one, other } = await pair()
      const [here, there, removed] = [vi.fn(), vi.fn(), vi.fn()]
      one.shared.on('reload', here)
      other.shared.on('reload', there)
      other.shared.on('reload', removed)()
      one.shared.notify('reload')
      await vi.waitFor(() => expect([here, there].every(({ mock }) => mock.calls.length > 0)).toBe(true), soon)
      expect(removed).not.toHaveBeenCalled()
    })
  })

  describe(`members (${engine})`, () => {
    test('replicas see each other with address and labels, and that one has left', async () => {
      const shared = await cluster()
      const one = await shared.join({ address: 'http://a:1', labels: ['gpu'] })
      const other = await shared.join()
      const named = one.members.self
      await vi.waitFor(
        () => expect(other.members.at(named)).toMatchObject({ address: 'http://a:1', labels: ['gpu'] }),
        soon,
      )
      await one.members.announce({ address: 'http://a:2', labels: [] })
      await vi.waitFor(() => expect(other.members.at(named)).toMatchObject({ address: 'http://a:2', labels: [] }), soon)
      const names = other.members.all().map(({ replica }) => replica)
      expect(names.toSorted()).toEqual([named, other.members.self].toSorted())
      const left = vi.fn()
      other.members.onLeft(left)
      await kill(shared, one, other)
      expect(left.mock.calls).toEqual([[named]])
    })

    test('a replica that closes is gone for the others', async () => {
      const { one, other } = await pair()
      await vi.waitFor(() => expect(other.members.all()).toHaveLength(2), soon)
      await one.close()
      await vi.waitFor(() => expect(other.members.all()).toHaveLength(1), soon)
    })

    test('a reported replica loses its records, learns it, and joins again under a new name', async () => {
      const { one, other } = await pair()
      const former = one.members.self
      const claim = await one.create('session', 'a', bytes('x'), NEVER)
      const [lost, renamed] = [vi.fn(), vi.fn()]
      one.onLost(lost)
      one.members.onRenamed(renamed)
      await other.members.reportDead(former)
      expect(other.members.at(former)).toBeUndefined()
      expect(await other.take('session', 'a')).toMatchObject({ kind: 'mine' })
      await vi.waitFor(() => expect(renamed).toHaveBeenCalledWith(one.members.self), soon)
      expect(one.members.self).not.toBe(former)
      expect(lost).toHaveBeenCalledWith(claim)
      expect(await one.write(claim, bytes('late'), NEVER)).toBe(false)
    })

    test('one that has released everything because it stops does not join again when it is reported dead', async () => {
      const { one, other } = await pair()
      const renamed = vi.fn()
      one.members.onRenamed(renamed)
      const former = one.members.self
      await one.releaseAll()
      await other.members.reportDead(former)
      const late = await other.create('session', 'later', bytes('x'), NEVER)
      await vi.waitFor(() => expect(one.members.at(former)).toBeUndefined(), soon) // it has learnt that
      await other.members.announce({ address: 'http://other', labels: [] })
      await vi.waitFor(() => expect(one.members.at(other.members.self)?.address).toBe('http://other'), soon)
      expect(other.members.all().map(({ replica }) => replica)).toEqual([other.members.self])
      expect([renamed.mock.calls, late.epoch]).toEqual([[], 1])
    })

    test('a replica that misses its lease drops its claims before it goes on', async () => {
      const { shared, one } = await pair()
      const former = one.members.self
      const claim = await one.create('session', 'a', bytes('x'), NEVER)
      const events: unknown[] = []
      one.onLost(lost => events.push(lost))
      one.members.onRenamed(name => events.push(name))
      await shared.lapse(former)
      await vi.waitFor(() => expect(events).toEqual([claim, one.members.self]), soon)
      expect(await one.write(claim, bytes('late'), NEVER)).toBe(false)
      expect(await one.take('session', 'a')).toMatchObject({ kind: 'mine', held: { epoch: 2 } })
    })
  })
}
