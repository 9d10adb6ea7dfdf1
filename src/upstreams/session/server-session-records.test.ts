import { expect, onTestFinished, test, vi } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { Json } from '../../wire/json/json.ts'
import { readHandshake } from './handshake.ts'
import { ServerSessionRecords } from './server-session-records.ts'

const OWNER = { server: 'notes', url: 'u', workspace: 'w', principal: 'anna', session: 'c' }
const PLACE = { id: 'record', owner: OWNER, lifetimeMs: 60_000 }

const setUp = () => {
  const store = new MemoryCluster().join()
  const records = new ServerSessionRecords({ store, log: createTestLog().log, batchMs: 1 })
  onTestFinished(() => records.close())
  return { store, records, take: vi.spyOn(store, 'take') }
}

const stateOf = (sessionId: string) => {
  const handshake = readHandshake(Json.of({ protocolVersion: '2025-11-25', capabilities: {} }))
  if ('reason' in handshake) throw new Error(handshake.text)
  return { sessionId, handshake: { ...handshake, sessionId }, isReady: true, hasStream: false }
}

test('nothing is looked up for a session of a client that is being opened', async () => {
  const { store, records, take } = setUp()
  const record = await records.open({ ...PLACE, isNew: true })
  expect(take).not.toHaveBeenCalled()
  expect(record.stored).toBeUndefined()
  record.save(stateOf('s1'))
  await records.flush()
  expect(await store.read('server-session', PLACE.id)).toBeDefined()
})

test('a record that exists all the same is kept, and the new session is recorded beside it', async () => {
  const { store, records } = setUp()
  const former = await records.open(PLACE)
  former.save(stateOf('s1'))
  await records.flush()
  const before = await store.read('server-session', PLACE.id)
  const create = vi.spyOn(store, 'create')
  const others = new ServerSessionRecords({ store, log: createTestLog().log, batchMs: 1 })
  onTestFinished(() => others.close())
  const record = await others.open({ ...PLACE, isNew: true })
  record.save(stateOf('s2'))
  await others.flush()
  expect(create).toHaveBeenLastCalledWith(
    'transient-server-session',
    expect.anything(),
    expect.anything(),
    expect.anything(),
  )
  expect((await store.read('server-session', PLACE.id))?.body).toEqual(before?.body)
})
