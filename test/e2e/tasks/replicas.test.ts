import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { DEFAULT_TIMEOUT_MS, type ServerConfig } from '../../../src/config/snapshot.ts'
import type { TaskInfo, TaskList } from '../../../src/protocol/task-info.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'
import { legacyClient, type Members, modernClient, textIn } from '../../support/task-client.ts'
import { startTaskServer } from '../../support/task-server.ts'

let server: Awaited<ReturnType<typeof startTaskServer>>
let cluster: Awaited<ReturnType<typeof startReplicas>>
let home: TestReplica
let other: TestReplica
beforeEach(async () => {
  server = await startTaskServer(100, 'session')
  const entry: ServerConfig = {
    ...{ name: 'tasks', disabled: false, kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'auto' },
    timeoutMs: DEFAULT_TIMEOUT_MS,
  }
  cluster = await startReplicas({ size: 2, entry: () => entry, isDirect: true, tasks: { afterMs: 300 } })
  ;[home, other] = cluster.replicas as [TestReplica, TestReplica]
})
afterEach(async () => {
  await cluster.close()
  await server.close()
})

const JOB = { name: 'job', arguments: {} }

/** Sets the status of the server's only task, once it has one. */
const set = async (status: string): Promise<void> => {
  await server.arrived('tasks/get')
  const task = server.tasks.get('t1')
  if (task) task.status = status
}

test('another replica tells the state of a task, and its result', async () => {
  const { taskId } = await modernClient(home.url).ask('tools/call', JOB)
  const elsewhere = modernClient(other.url)
  expect(await elsewhere.ask('tasks/get', { taskId })).toMatchObject({ taskId, status: 'working' })
  await set('completed')
  const done = await elsewhere.over(taskId)
  expect([done.status, textIn(done.result)]).toEqual(['completed', 'done'])
})

test('every replica lists the tasks of all, and no longer those of one that is gone', async () => {
  const listAt = async ({ gateway }: TestReplica): Promise<readonly TaskInfo[]> => {
    const response = await fetch(`${gateway.origin}/admin/tasks`, {
      headers: { authorization: `Bearer ${gateway.localSecret}` },
    })
    return ((await response.json()) as TaskList).tasks
  }
  await modernClient(home.url).ask('tools/call', JOB)
  await modernClient(other.url).ask('tools/call', JOB)
  for (const replica of [home, other]) await vi.waitFor(async () => expect(await listAt(replica)).toHaveLength(2), 5000)
  const [at, from] = [await listAt(home), await listAt(other)]
  expect(from.map(({ id }) => id)).toEqual(at.map(({ id }) => id))
  expect(from).toMatchObject([JOB, JOB].map(({ name }) => ({ server: 'tasks', tool: name, workspace: 'default' })))
  await set('completed')
  const states = async () => (await listAt(other)).map(({ status }) => status).sort()
  await vi.waitFor(async () => expect(await states()).toEqual(['completed', 'working']), 5000)
  await home.kill()
  await vi.waitFor(async () => expect(await listAt(other)).toHaveLength(2), 10_000) // it has taken them over
})

test('another replica takes answers', async () => {
  const { taskId } = await modernClient(home.url).ask('tools/call', JOB)
  await set('input_required')
  const elsewhere = modernClient(other.url)
  const { inputRequests } = (await elsewhere.until(taskId, ['input_required'])) as { inputRequests: Members }
  const answer = { action: 'accept', content: { go: true } }
  const inputResponses = { [Object.keys(inputRequests)[0] ?? '']: answer }
  expect(await elsewhere.ask('tasks/update', { taskId, inputResponses })).toEqual({ resultType: 'complete' })
  expect(await elsewhere.over(taskId)).toMatchObject({ status: 'completed' })
  expect(server.answers).toEqual([answer])
})

test('another replica asks the question to a client of 2025-11-25, with tasks/result', async () => {
  const client = await legacyClient(home.url)
  const { task } = (await client.ask('tools/call', { name: 'plain', arguments: {}, task: {} })) as { task: Members }
  const elsewhere = await legacyClient(other.url)
  const waiting = elsewhere.ask('tasks/result', { taskId: task.taskId })
  await server.called()
  server.finish()
  expect(textIn(await waiting)).toBe('done')
})

test('another replica cancels a task, also at its server', async () => {
  const { taskId } = await modernClient(home.url).ask('tools/call', JOB)
  await server.arrived('tasks/get')
  const elsewhere = modernClient(other.url)
  await elsewhere.ask('tasks/cancel', { taskId })
  expect(await elsewhere.over(taskId)).toMatchObject({ status: 'cancelled' })
  await server.arrived('tasks/cancel')
})

test('the tasks of a killed replica go on elsewhere within ten seconds', async () => {
  const client = modernClient(home.url)
  const { taskId } = await client.ask('tools/call', JOB)
  await server.arrived('tasks/get')
  const legacy = await legacyClient(home.url)
  const { task } = (await legacy.ask('tools/call', { name: 'plain', arguments: {}, task: {} })) as { task: Members }
  const killed = Date.now()
  await home.kill()
  await set('completed')
  const elsewhere = modernClient(other.url)
  expect(await elsewhere.over(taskId)).toMatchObject({ status: 'completed' })
  const lost = await (await legacyClient(other.url)).ask('tasks/get', { taskId: task.taskId })
  expect(lost).toMatchObject({ status: 'failed' })
  expect(Date.now() - killed).toBeLessThan(10_000)
  expect(server.of('tools/call')).toHaveLength(2)
})

test('a call through the replica that holds the session becomes one task, there, and outlives that replica', async () => {
  await Promise.all(cluster.replicas.map(({ gateway }) => gateway.ready))
  await modernClient(home.url).ask('tools/list', {}) // this replica has the session
  const creations = cluster.replicas.map(({ store }) => vi.spyOn(store, 'create'))
  const client = modernClient(other.url)
  const { taskId } = await client.ask('tools/call', { name: 'plain', arguments: {} })
  expect(await client.ask('tasks/get', { taskId })).toMatchObject({ taskId, status: 'working' })
  const tasks = creations.map(({ mock }) => mock.calls.filter(([kind]) => kind === 'task').length)
  expect(tasks).toEqual([1, 0])
  await home.kill()
  expect(await client.over(taskId)).toMatchObject({
    status: 'failed',
    error: { data: { reason: 'gateway_restarted' } },
  })
  expect(server.of('tasks/get')).toEqual([])
})

test('an answer that was sent while no replica ran the task reaches the one that takes it over', async () => {
  const { taskId } = await modernClient(home.url).ask('tools/call', JOB)
  await server.arrived('tasks/get')
  const found = other.store.inbox.put.bind(other.store.inbox)
  let put: Parameters<typeof found> | undefined
  other.store.inbox.put = async (...given) => {
    put = given
  }
  await modernClient(other.url).ask('tasks/cancel', { taskId })
  if (put) await found(...put)
  await home.kill()
  expect(await modernClient(other.url).over(taskId)).toMatchObject({ status: 'cancelled' })
})

test('a replica that lost its lease stops its tasks: the one that took them over writes them', async () => {
  const { taskId } = await modernClient(home.url).ask('tools/call', JOB)
  await server.arrived('tasks/get')
  cluster.shared.lapse(home.store.members.self)
  await sleep(200)
  await set('completed')
  expect(await modernClient(other.url).over(taskId)).toMatchObject({ status: 'completed' })
  const before = server.of('tasks/get').length
  await sleep(500)
  expect(server.of('tasks/get').length).toBe(before)
  expect(server.of('tasks/cancel')).toEqual([])
})
