import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { META } from '../../../src/protocol/meta.ts'
import { startGatewayBefore, startTestGateway } from '../../support/gateway.ts'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'
import { modern as modernScript, result, scriptedServer, sendJson } from '../../support/scripted-server.ts'
import { type Members, modernClient, WITH_TASKS } from '../../support/task-client.ts'
import { startTaskServer } from '../../support/task-server.ts'

const JOB = { name: 'job', arguments: {} }
let server: Awaited<ReturnType<typeof startTaskServer>>
let gateway: Awaited<ReturnType<typeof startTestGateway>>
beforeEach(async () => {
  server = await startTaskServer()
  gateway = await startTestGateway(server.url)
})
afterEach(async () => {
  await gateway.close()
  await server.close()
})

/** A modern client that listens; `until` collects notifications up to the one with that status. */
const listen = async (url: string, notifications: Members, capabilities: object = WITH_TASKS) => {
  const stream = await openStream(url, modern('l1', 'subscriptions/listen', { notifications }, { capabilities }))
  onTestFinished(() => stream.close())
  const first = stream.status === 200 ? (await stream.next())?.json : undefined
  const until = async (status: string): Promise<Members[]> => {
    const heard: Members[] = []
    for (;;) {
      const json = (await stream.next())?.json
      if (!json) throw new Error('the stream ended')
      if (json.method === 'notifications/tasks') heard.push(json.params ?? {})
      if (json.params?.status === status) return heard
    }
  }
  return { ...stream, acknowledged: (first?.params?.notifications ?? {}) as Members, first, until }
}

const setStatus = async (status: string): Promise<void> => {
  await server.arrived('tasks/get')
  const task = server.tasks.get('t1')
  if (task) task.status = status
}

test('a listener hears the whole task after each change, with the id of its subscription', async () => {
  const { taskId } = await modernClient(gateway.url).ask('tools/call', JOB)
  const { acknowledged, until } = await listen(gateway.url, { taskIds: [taskId, 'forged', taskId] })
  expect(acknowledged).toEqual({ taskIds: [taskId] })
  await setStatus('input_required')
  const asked = (await until('input_required')).at(-1)
  expect(asked).toMatchObject({
    taskId,
    status: 'input_required',
    inputRequests: { q1: { method: 'elicitation/create' } },
  })
  expect(asked?._meta).toMatchObject({ [META.subscriptionId]: 'l1' })
  const inputResponses = { q1: { action: 'accept', content: { go: true } } }
  await modernClient(gateway.url).ask('tasks/update', { taskId, inputResponses })
  const done = (await until('completed')).at(-1)
  expect(done).toMatchObject({ taskId, status: 'completed', result: { content: [{ text: 'done' }] } })
})

test('the other flags of the listen work beside the tasks', async () => {
  const demo = await startTestGateway()
  onTestFinished(() => demo.close())
  const { acknowledged } = await listen(demo.url, { toolsListChanged: true, taskIds: [] })
  expect(acknowledged).toMatchObject({ toolsListChanged: true, taskIds: [] })
})

test('without the extension, or with ids that are none, the listen is refused', async () => {
  const refused = async (notifications: Members, capabilities: object) => {
    const reply = await send(gateway.url, modern(1, 'subscriptions/listen', { notifications }, { capabilities }))
    return [reply.status, reply.json.error?.code]
  }
  expect(await refused({ taskIds: ['x'] }, {})).toEqual([400, -32021])
  expect(await refused({ taskIds: 'x' }, WITH_TASKS)).toEqual([200, -32602])
  expect(await refused({ taskIds: [1] }, WITH_TASKS)).toEqual([200, -32602])
})

test('tasks of a modern server are polled while a client listens, alone and among several servers', async () => {
  const demo = (name: string) => ({ name, disabled: false, kind: 'builtin', builtin: 'demo' }) as const
  for (const names of [['one'], ['one', 'two']]) {
    const several = await startGatewayBefore(names.map(demo))
    onTestFinished(() => several.close())
    const name = names.length > 1 ? 'two__slow_compute' : 'slow_compute'
    const { taskId } = await modernClient(several.url).ask('tools/call', { name, arguments: { seconds: 2 } })
    const { acknowledged, until } = await listen(several.url, { taskIds: [taskId] })
    expect(acknowledged).toMatchObject({ taskIds: [taskId] })
    const heard = await until('completed')
    expect(heard[0]).toMatchObject({ taskId, status: 'working' })
    expect(heard.at(-1)).toMatchObject({ taskId, result: { content: [{ type: 'text' }] } })
  }
})

test('a server is asked while a client listens, at the interval that it wants, and not afterwards', async () => {
  const task = { taskId: 'its own', status: 'working', ttlMs: 60_000, pollIntervalMs: 1000 }
  const times = { createdAt: new Date(0).toISOString(), lastUpdatedAt: new Date(0).toISOString() }
  const answers: Record<string, unknown> = {
    'tools/call': { resultType: 'task', ...task, ...times },
    'tasks/get': { resultType: 'complete', ...task, ...times },
  }
  const modernServer = await scriptedServer(
    modernScript(({ body }, response) => sendJson(response, result(body.id, answers[String(body.method)] ?? {}))),
  )
  const before = await startTestGateway(modernServer.url)
  onTestFinished(async () => {
    await before.close()
    await modernServer.close()
  })
  const { taskId } = await modernClient(before.url).ask('tools/call', { name: 'any', arguments: {} })
  const { close } = await listen(before.url, { taskIds: [taskId] })
  await modernServer.arrived('tasks/get', 2)
  expect(modernServer.of('tasks/get')[0]?.body.params).toMatchObject({ taskId: 'its own' })
  close()
  await sleep(200)
  const asked = modernServer.of('tasks/get').length
  await sleep(1500)
  expect(modernServer.of('tasks/get')).toHaveLength(asked)
})

test('10,000 ids: at most 1,000 of the caller are accepted, and the stream goes on', async () => {
  const { ask } = modernClient(gateway.url)
  const { taskId } = await ask('tools/call', JOB)
  const ids = Array.from({ length: 10_000 }, (_, at) => `${at}`)
  const { acknowledged, until } = await listen(gateway.url, { taskIds: [...ids, taskId] })
  expect(acknowledged).toEqual({ taskIds: [taskId] })
  await ask('tasks/cancel', { taskId })
  expect((await until('cancelled')).at(-1)).toMatchObject({ taskId })
})

test('a listener at another replica hears of changes', async () => {
  const entry = { name: 'tasks', disabled: false, kind: 'remote', url: server.url, type: 'auto', headers: {} } as const
  const cluster = await startReplicas({ size: 2, entry: () => ({ ...entry, era: 'auto', timeoutMs: 30_000 }) })
  onTestFinished(() => cluster.close())
  const [home, other] = cluster.replicas as [TestReplica, TestReplica]
  const { taskId } = await modernClient(home.url).ask('tools/call', JOB)
  const { until } = await listen(other.url, { taskIds: [taskId] })
  await setStatus('completed')
  expect((await until('completed')).at(-1)).toMatchObject({ taskId, result: { content: [{ text: 'done' }] } })
})

test('a listener at a replica that has lost the task hears of changes from the one that has it now', async () => {
  const entry = { name: 'tasks', disabled: false, kind: 'remote', url: server.url, type: 'auto', headers: {} } as const
  const cluster = await startReplicas({ size: 2, entry: () => ({ ...entry, era: 'auto', timeoutMs: 30_000 }) })
  onTestFinished(() => cluster.close())
  const [home] = cluster.replicas as [TestReplica, TestReplica]
  const { taskId } = await modernClient(home.url).ask('tools/call', JOB)
  const { until } = await listen(home.url, { taskIds: [taskId] })
  await server.arrived('tasks/get')
  cluster.shared.lapse(home.store.members.self)
  await setStatus('completed')
  expect((await until('completed')).at(-1)).toMatchObject({ taskId, result: { content: [{ text: 'done' }] } })
})

test('a session of 2025-11-25 is told the status of tasks that the gateway runs for it', async () => {
  const { headers } = await openSession(gateway.url)
  const stream = await openStream(gateway.url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } })
  onTestFinished(() => stream.close())
  const call = { name: 'plain', arguments: {}, task: { ttl: 60_000 } }
  const { json } = await send(gateway.url, {
    headers,
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
  })
  const { taskId } = (json.result as { task: Members }).task
  await server.called()
  server.finish()
  const { json: heard } = (await stream.next()) ?? {}
  expect(heard).toMatchObject({
    method: 'notifications/tasks/status',
    params: { taskId, status: 'completed', ttl: 60_000 },
  })
})
