import { rm } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { MemoryCluster } from '../../../src/stores/state/memory-state.ts'
import { randomKeys } from '../../../src/stores/state/secret.ts'
import { StateError, type StateStore } from '../../../src/stores/state/state-store.ts'
import { startGatewayBefore, startTestGateway } from '../../support/gateway.ts'
import { startReplicas } from '../../support/replicas.ts'
import { legacyClient, type Members, modernClient, textIn } from '../../support/task-client.ts'
import { startTaskServer } from '../../support/task-server.ts'
import { createToken, newDataDirectory } from '../auth/guarded.ts'

const JOB = { name: 'job', arguments: {} }
const PLAIN = { name: 'plain', arguments: {} }

describe('a server of 2025-11-25 that misbehaves', () => {
  let server: Awaited<ReturnType<typeof startTaskServer>>
  let gateway: Awaited<ReturnType<typeof startTestGateway>>
  let store: StateStore
  beforeEach(async () => {
    server = await startTaskServer()
    store = new MemoryCluster().join()
    gateway = await startTestGateway(server.url, { store, keys: randomKeys() })
  })
  afterEach(async () => {
    await gateway.close()
    await server.close()
  })

  /** Starts the job as a task, and waits until the gateway has asked the server for it once. */
  const start = async () => {
    const client = modernClient(gateway.url)
    const { taskId } = await client.ask('tools/call', JOB)
    await server.arrived('tasks/get')
    const task = server.tasks.get('t1')
    if (!task) throw new Error('the server has no task')
    return { ...client, taskId, task }
  }
  const startPlain = async () => {
    const client = await legacyClient(gateway.url)
    const { task } = (await client.ask('tools/call', { ...PLAIN, task: {} })) as { task: Members }
    await server.called()
    return { ...client, taskId: task.taskId }
  }

  test('forgets a task: it fails, and says so', async () => {
    const { over, taskId } = await start()
    server.tasks.clear()
    expect(await over(taskId)).toMatchObject({
      status: 'failed',
      error: { code: -32603, data: { reason: 'task_forgotten' } },
    })
  })

  test('changes the status of a task backwards: what the client has seen as final stays', async () => {
    const { ask, over, taskId, task } = await start()
    task.status = 'completed'
    expect(await over(taskId)).toMatchObject({ status: 'completed' })
    task.status = 'working'
    expect(await ask('tasks/get', { taskId })).toMatchObject({ status: 'completed' })
  })

  test('answers tasks/get with something else: the task fails', async () => {
    const { over, taskId, task } = await start()
    task.status = 'exploded'
    expect(await over(taskId)).toMatchObject({ status: 'failed', error: { data: { reason: 'invalid_task' } } })
  })

  test('never ends a task: it is cancelled when its time is over, at the server too', async () => {
    const client = await legacyClient(gateway.url)
    const { task } = (await client.ask('tools/call', { ...PLAIN, task: { ttl: 1 } })) as { task: Members }
    expect(task).toMatchObject({ ttl: 1000 })
    await server.arrived('notifications/cancelled')
    await expect(client.ask('tasks/get', { taskId: task.taskId })).rejects.toMatchObject({
      code: -32602,
      data: { reason: 'unknown_task' },
    })
  })

  test('has completed a task in time: the result is there until the task expires, and then the task is unknown', async () => {
    const client = await legacyClient(gateway.url)
    const { task } = (await client.ask('tools/call', { ...PLAIN, task: { ttl: 2000 } })) as { task: Members }
    const { taskId } = task
    await server.called()
    server.finish({ content: [{ type: 'text', text: 'in time' }] })
    expect(await client.ask('tasks/result', { taskId })).toMatchObject({ content: [{ text: 'in time' }] })
    expect(await client.ask('tasks/result', { taskId })).toMatchObject({ content: [{ text: 'in time' }] })
    const reasonOf = (method: string) =>
      client.ask(method, { taskId }).then(
        () => 'known',
        (error: { data?: { reason?: string } }) => error.data?.reason,
      )
    await expect.poll(() => reasonOf('tasks/get'), { timeout: 10_000 }).toBe('unknown_task')
    for (const method of ['tasks/result', 'tasks/cancel']) expect(await reasonOf(method)).toBe('unknown_task')
  })

  test('returns 20 MiB: the task fails, and says what to do', async () => {
    const { ask, taskId } = await startPlain()
    server.finish({ content: [{ type: 'text', text: 'x'.repeat(20 * 1024 * 1024) }] })
    await expect(ask('tasks/result', { taskId })).rejects.toMatchObject({ data: { reason: 'result_too_large' } })
    expect(await ask('tasks/get', { taskId })).toMatchObject({ status: 'failed' })
  })

  test('returns almost 16 MiB: the result is stored, and fetched as often as the client wants', async () => {
    const { ask, taskId } = await startPlain()
    const text = 'x'.repeat(16 * 1024 * 1024 - 200)
    server.finish({ content: [{ type: 'text', text }] })
    for (const _ of [1, 2]) expect(textIn(await ask('tasks/result', { taskId }))).toHaveLength(text.length)
  })

  test('is told of a cancellation while it asks, and once only', async () => {
    const { ask, until, taskId, task } = await start()
    task.status = 'input_required'
    await until(taskId, ['input_required'])
    await ask('tasks/cancel', { taskId })
    const cancelled = await ask('tasks/get', { taskId })
    expect(cancelled).toMatchObject({ status: 'cancelled' })
    expect(cancelled.inputRequests).toBeUndefined()
    await server.arrived('tasks/cancel')
    expect(await ask('tasks/cancel', { taskId })).toMatchObject({ resultType: 'complete' })
    expect(server.of('tasks/cancel')).toHaveLength(1)
    expect(server.answers).toEqual([])
  })

  test('without the store no task is started; the same call without one works', async () => {
    const create = store.create.bind(store)
    store.create = async (kind, ...rest) => {
      if (kind === 'task') throw new StateError('away', 'The store is away.')
      return create(kind, ...rest)
    }
    const client = modernClient(gateway.url)
    await expect(client.ask('tools/call', JOB)).rejects.toMatchObject({ code: -32603, data: { reason: 'store_away' } })
    expect(server.of('tools/call')).toEqual([])
    const waiting = modernClient(gateway.url, {}).ask('tools/call', PLAIN)
    await server.called()
    server.finish()
    expect(textIn(await waiting)).toBe('done')
  })

  test('without the store, the state of a task that runs here is still told, and others fail clearly', async () => {
    const { ask, taskId } = await start()
    const { taskId: second } = await ask('tools/call', JOB)
    await ask('tasks/cancel', { taskId: second })
    store.read = async () => {
      throw new StateError('away', 'The store is away.')
    }
    expect(await ask('tasks/get', { taskId })).toMatchObject({ status: 'working' })
    await expect(ask('tasks/get', { taskId: second })).rejects.toMatchObject({ data: { reason: 'store_away' } })
  })
})

describe('tasks of several users', () => {
  let cluster: Awaited<ReturnType<typeof startReplicas>>
  let data: string
  let ann: Awaited<ReturnType<typeof createToken>>
  let ben: Awaited<ReturnType<typeof createToken>>
  beforeAll(async () => {
    data = await newDataDirectory()
    ;[ann, ben] = [await createToken(data), await createToken(data)]
    cluster = await startReplicas({ size: 1, data })
  })
  afterAll(async () => {
    await cluster.close()
    await rm(data, { recursive: true, force: true })
  })
  const urlOf = (workspace?: string): string => cluster.replicas[0]?.gateway.url(workspace) ?? ''
  const client = (token: { headers: Record<string, string> }, workspace?: string) =>
    modernClient(urlOf(workspace), undefined, token.headers)

  test('E5: the handle of another user, of another workspace, or a changed one, is unknown; nothing tells which', async () => {
    const { taskId } = await client(ann).ask('tools/call', { name: 'slow_compute', arguments: { seconds: 60 } })
    const changed = `${String(taskId).slice(0, -1)}${String(taskId).endsWith('A') ? 'B' : 'A'}`
    const attempts: [ReturnType<typeof client>, unknown][] = [
      [client(ben), taskId],
      [client(ann, 'other'), taskId],
      [client(ann), changed],
    ]
    const errors: unknown[] = []
    for (const [who, id] of attempts)
      for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update'])
        await who
          .ask(method, { taskId: id, inputResponses: {} })
          .catch(({ code, message }: { code: number; message: string }) => errors.push({ code, message }))
    expect(errors).toHaveLength(9)
    expect(new Set(errors.map(error => JSON.stringify(error))).size).toBe(1)
    expect(errors[0]).toMatchObject({ code: -32602 })
    expect(await client(ann).ask('tasks/get', { taskId })).toMatchObject({ status: 'working' })
    await client(ann).ask('tasks/cancel', { taskId })
  })
})

test('1,000 tasks at once complete; one more is refused, for this user alone', { timeout: 180_000 }, async () => {
  const server = await startTaskServer(2000)
  const data = await newDataDirectory()
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const [ann, ben] = [await createToken(data), await createToken(data)]
  const cluster = await startReplicas({
    ...{ size: 1, data },
    entry: () => ({
      ...{ name: 'tasks', disabled: false, kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'auto' },
      timeoutMs: 60_000,
    }),
  })
  onTestFinished(async () => {
    await cluster.close()
    await server.close()
  })
  const url = cluster.replicas[0]?.url ?? ''
  const client = modernClient(url, undefined, ann.headers)
  const ids: unknown[] = []
  for (let batch = 0; batch < 20; batch++)
    ids.push(
      ...(await Promise.all(Array.from({ length: 50 }, async () => (await client.ask('tools/call', JOB)).taskId))),
    )
  expect(new Set(ids).size).toBe(1000)
  await expect(client.ask('tools/call', JOB)).rejects.toMatchObject({ data: { reason: 'too_many_tasks' } })
  const other = modernClient(url, undefined, ben.headers)
  expect(await other.ask('tools/call', JOB)).toMatchObject({ status: 'working' })
  await expect.poll(() => server.tasks.size, { timeout: 20_000 }).toBe(1001)
  for (const task of server.tasks.values()) task.status = 'completed'
  const statuses = new Map<unknown, number>()
  for (const taskId of ids) {
    const { status } = await client.over(taskId)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  expect([...statuses]).toEqual([['completed', 1000]])
  expect(server.of('tools/call')).toHaveLength(1001)
})

test('a task of a server that was removed from the configuration is unknown, alone and among several servers', async () => {
  const state = { store: new MemoryCluster().join(), keys: randomKeys() }
  const demo = (name: string) => ({ name, disabled: false, kind: 'builtin', builtin: 'demo' }) as const
  const before = await startGatewayBefore([demo('old')], state)
  const call = { name: 'slow_compute', arguments: { seconds: 60 } }
  const { taskId } = await modernClient(before.url).ask('tools/call', call)
  await before.close()
  for (const servers of [['new'], ['new', 'other']]) {
    const after = await startGatewayBefore(servers.map(demo), state)
    onTestFinished(() => after.close())
    await expect(modernClient(after.url).ask('tasks/get', { taskId })).rejects.toMatchObject({ code: -32602 })
  }
})

test('E5: tasks/list shows a user only tasks that this user has started, although the server lists all', async () => {
  const server = await startTaskServer()
  const data = await newDataDirectory()
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const [ann, ben] = [await createToken(data), await createToken(data)]
  const cluster = await startReplicas({
    ...{ size: 1, data },
    entry: () => ({
      ...{ name: 'tasks', disabled: false, kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'auto' },
      timeoutMs: 60_000,
    }),
  })
  onTestFinished(async () => {
    await cluster.close()
    await server.close()
  })
  const url = cluster.replicas[0]?.url ?? ''
  const clients = await Promise.all([ann, ben].map(({ headers }) => legacyClient(url, undefined, undefined, headers)))
  const [first, second] = clients as [(typeof clients)[0], (typeof clients)[0]]
  const start = async ({ ask }: typeof first): Promise<unknown> =>
    ((await ask('tools/call', { ...JOB, task: {} })) as { task: Members }).task.taskId
  const listed = async ({ ask }: typeof first): Promise<unknown[]> =>
    ((await ask('tasks/list', {})) as { tasks: Members[] }).tasks.map(({ taskId }) => taskId)
  const [one, two] = [await start(first), await start(second)]
  expect(server.tasks.size).toBe(2)
  expect(await listed(first)).toEqual([one])
  expect(await listed(second)).toEqual([two])
})

test('tasks/list knows what the user has started before a restart and at other replicas, and nothing of others', async () => {
  const server = await startTaskServer()
  const data = await newDataDirectory()
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const [ann, ben] = [await createToken(data), await createToken(data)]
  const cluster = await startReplicas({
    ...{ size: 2, data },
    entry: () => ({
      ...{ name: 'tasks', disabled: false, kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'auto' },
      timeoutMs: 60_000,
    }),
  })
  onTestFinished(async () => {
    await cluster.close()
    await server.close()
  })
  const join = ({ headers }: typeof ann, at: number) =>
    legacyClient(cluster.replicas[at]?.url ?? '', undefined, undefined, headers)
  type Client = Awaited<ReturnType<typeof join>>
  const start = async ({ ask }: Client): Promise<unknown> =>
    ((await ask('tools/call', { ...JOB, task: {} })) as { task: Members }).task.taskId
  const listed = async ({ ask }: Client): Promise<unknown[]> =>
    ((await ask('tasks/list', {})) as { tasks: Members[] }).tasks.map(({ taskId }) => taskId)
  const [here, there] = [await join(ann, 0), await join(ann, 1)]
  const first = await Promise.all([start(here), start(here), start(here)])
  const other = await start(there)
  const own = await start(await join(ben, 1))
  for (const client of [here, there])
    await expect.poll(async () => new Set(await listed(client))).toEqual(new Set([...first, other]))
  await cluster.start() // as a gateway that was restarted: it has seen none of these calls
  expect(new Set(await listed(await join(ann, 2)))).toEqual(new Set([...first, other]))
  expect(await listed(await join(ben, 2))).toEqual([own])
  for (const taskId of first) expect(await there.ask('tasks/get', { taskId })).toMatchObject({ status: 'working' })
})

test('tasks/list has the tasks that the gateway runs for the user, page by page, before those of the server', async () => {
  const server = await startTaskServer()
  const store = new MemoryCluster().join()
  const gateway = await startTestGateway(server.url, { store, keys: randomKeys() })
  onTestFinished(async () => {
    await gateway.close()
    await server.close()
  })
  const { ask } = await legacyClient(gateway.url)
  const start = async (call: Members): Promise<unknown> =>
    ((await ask('tools/call', { ...call, task: {} })) as { task: Members }).task.taskId
  const started: unknown[] = []
  for (let n = 0; n < 205; n++) started.push(await start(PLAIN))
  const own = await start(JOB)
  const pages: { tasks: Members[]; nextCursor?: string }[] = []
  do {
    const cursor = pages.at(-1)?.nextCursor
    pages.push((await ask('tasks/list', cursor === undefined ? {} : { cursor })) as (typeof pages)[0])
    if (pages.length === 1) await start(PLAIN) // a new task changes no page that follows
  } while (pages.at(-1)?.nextCursor !== undefined && pages.length < 10)
  expect(pages.map(({ tasks }) => tasks.length)).toEqual([100, 100, 6])
  const names = pages.flatMap(({ tasks }) => tasks.map(({ taskId }) => taskId))
  expect(new Set(names)).toEqual(new Set([...started, own]))
  expect(names.at(-1)).toBe(own)
  const { taskId, status, ttl } = pages[0]?.tasks[0] ?? {}
  expect(await ask('tasks/get', { taskId })).toMatchObject({ status, ttl })
})
