import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { META } from '../../../src/protocol/meta.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { modern, send } from '../../support/raw.ts'
import { startServerEverything } from '../../support/server-everything.ts'
import { legacyClient, type Members, modernClient, textIn } from '../../support/task-client.ts'

describe('a server of 2025-11-25 with a tool that only runs as a task', () => {
  let everything: Awaited<ReturnType<typeof startServerEverything>>
  let gateway: Awaited<ReturnType<typeof startTestGateway>>
  beforeAll(async () => {
    everything = await startServerEverything('streamableHttp')
    gateway = await startTestGateway(everything.url)
  })
  afterAll(async () => {
    await gateway.close()
    await everything.close()
  })
  const CALL = { name: 'simulate-research-query', arguments: { topic: 'tasks', ambiguous: false } }

  test('E1: a modern client with the extension gets a task, polls it and gets the result in it', async () => {
    const { ask, over } = modernClient(gateway.url)
    const created = await ask('tools/call', CALL)
    expect(created).toMatchObject({
      resultType: 'task',
      taskId: expect.any(String),
      status: 'working',
      ttlMs: expect.any(Number),
      pollIntervalMs: expect.any(Number),
    })
    expect(await ask('tasks/get', { taskId: created.taskId })).toMatchObject({
      taskId: created.taskId,
      status: 'working',
    })
    const done = await over(created.taskId)
    expect(done).toMatchObject({ status: 'completed', taskId: created.taskId })
    expect(textIn(done.result)).toContain('tasks')
    expect((done.result as Members)._meta ?? {}).not.toHaveProperty([META.relatedTask])
  })

  test('E2: a modern client without the extension gets one plain result', async () => {
    const result = await modernClient(gateway.url, {}).ask('tools/call', CALL)
    expect(result).toMatchObject({ resultType: 'complete' })
    expect(textIn(result)).toContain('tasks')
  })

  test('a client of 2025-06-18 gets one plain result, and sees nothing of tasks', async () => {
    const { ask } = await legacyClient(gateway.url, {}, '2025-06-18')
    expect(textIn(await ask('tools/call', CALL))).toContain('tasks')
    const { tools } = (await ask('tools/list', {})) as { tools: readonly Members[] }
    expect(tools.filter(tool => 'execution' in tool)).toEqual([])
  })

  test('a client of 2025-11-25 uses the task of the server itself, under a name of its own', async () => {
    const { ask } = await legacyClient(gateway.url)
    const { task } = (await ask('tools/call', { ...CALL, task: { ttl: 60_000 } })) as { task: Members }
    expect(task).toMatchObject({ status: 'working' })
    const got = await ask('tasks/get', { taskId: task.taskId })
    expect(got).toMatchObject({ taskId: task.taskId })
    const result = await ask('tasks/result', { taskId: task.taskId })
    expect(textIn(result)).toContain('tasks')
    expect((result._meta as Members)[META.relatedTask]).toEqual({ taskId: task.taskId })
  })

  test('a question of the task is answered with tasks/update', async () => {
    const { ask, until, over } = modernClient(gateway.url)
    const created = await ask('tools/call', { ...CALL, arguments: { topic: 'python', ambiguous: true } })
    const { inputRequests } = (await until(created.taskId, ['input_required'])) as { inputRequests: Members }
    const [key, request] = Object.entries(inputRequests)[0] ?? []
    expect(request).toMatchObject({ method: 'elicitation/create' })
    const content = { interpretation: 'technical' }
    const answer = { taskId: created.taskId, inputResponses: { [String(key)]: { action: 'accept', content } } }
    expect(await ask('tasks/update', answer)).toEqual({ resultType: 'complete' })
    expect(await over(created.taskId)).toMatchObject({ status: 'completed' })
  })
})

describe('a modern server', () => {
  let gateway: Awaited<ReturnType<typeof startTestGateway>>
  beforeAll(async () => {
    gateway = await startTestGateway()
  })
  afterAll(() => gateway.close())

  test('E3: a client of 2025-11-25 gets a task of a tool that answers at once, and then its result', async () => {
    const { ask } = await legacyClient(gateway.url)
    const { task } = (await ask('tools/call', {
      name: 'greet',
      arguments: { name: 'Ann' },
      task: { ttl: 60_000 },
    })) as {
      task: Members
    }
    expect(task).toMatchObject({ status: 'working', ttl: 60_000 })
    const result = await ask('tasks/result', { taskId: task.taskId })
    expect(textIn(result)).toBe('Hello, Ann!')
    expect((result._meta as Members)[META.relatedTask]).toEqual({ taskId: task.taskId })
    expect(await ask('tasks/get', { taskId: task.taskId })).toMatchObject({ status: 'completed' })
  })

  test('E4: its question reaches a client of 2025-11-25 with tasks/result, and the answer goes back', async () => {
    const { ask, converse } = await legacyClient(gateway.url)
    const call = { name: 'confirm_delete', arguments: { filename: 'a.txt' }, task: {} }
    const { task } = (await ask('tools/call', call)) as { task: Members }
    const asked: Members[] = []
    const result = await converse('tasks/result', { taskId: task.taskId }, params => {
      asked.push(params)
      return { action: 'accept', content: { confirm: true } }
    })
    expect(asked).toHaveLength(1)
    expect(asked[0]?._meta).toMatchObject({ [META.relatedTask]: { taskId: task.taskId } })
    expect(textIn(result)).toBe('Deleted a.txt')
  })

  test('a tool that needs the extension works for clients without tasks', async () => {
    const { ask } = await legacyClient(gateway.url, {}, '2025-06-18')
    expect(await ask('tools/call', { name: 'failing_job', arguments: {} })).toMatchObject({ isError: true })
  })

  test('E5: tasks/get without the extension is refused, and the handle of another user or a forged one is unknown', async () => {
    const { ask } = modernClient(gateway.url)
    const { taskId } = await ask('tools/call', { name: 'slow_compute', arguments: { seconds: 60 } })
    const without = await send(gateway.url, modern(1, 'tasks/get', { taskId }, { capabilities: {} }))
    expect([without.status, without.json.error?.code]).toEqual([400, -32021])
    const forged = `${String(taskId).slice(0, -2)}AA`
    for (const id of [forged, 'x', '', 'a'.repeat(10_000)])
      await expect(ask('tasks/get', { taskId: id })).rejects.toMatchObject({ code: -32602 })
    expect(await ask('tasks/cancel', { taskId })).toMatchObject({ resultType: 'complete' })
    expect(await ask('tasks/cancel', { taskId })).toMatchObject({ resultType: 'complete' })
    expect(await ask('tasks/get', { taskId })).toMatchObject({ status: 'cancelled' })
  })

  test('cancelling a task after its end changes nothing: acknowledged for a modern client, refused for one of 2025-11-25', async () => {
    const legacy = await legacyClient(gateway.url)
    const call = { name: 'greet', arguments: { name: 'Ann' } }
    const { task } = (await legacy.ask('tools/call', { ...call, task: {} })) as { task: Members }
    const { taskId } = task
    for (const _ of [1, 2, 3]) expect(textIn(await legacy.ask('tasks/result', { taskId }))).toBe('Hello, Ann!')
    await expect(legacy.ask('tasks/cancel', { taskId })).rejects.toMatchObject({ code: -32602 })
    const modernOne = modernClient(gateway.url)
    const { taskId: own } = await modernOne.ask('tools/call', { name: 'slow_compute', arguments: { seconds: 1 } })
    for (const id of [taskId, own]) {
      expect(await modernOne.over(id)).toMatchObject({ status: 'completed' })
      expect(await modernOne.ask('tasks/cancel', { taskId: id })).toMatchObject({ resultType: 'complete' })
      expect(await modernOne.ask('tasks/get', { taskId: id })).toMatchObject({ status: 'completed' })
    }
  })

  test('cancelling a task of 2025-11-25 twice is refused the second time', async () => {
    const { ask } = await legacyClient(gateway.url)
    const call = { name: 'slow_compute', arguments: { seconds: 60 }, task: {} }
    const { task } = (await ask('tools/call', call)) as { task: Members }
    expect(await ask('tasks/cancel', { taskId: task.taskId })).toMatchObject({ status: 'cancelled' })
    await expect(ask('tasks/cancel', { taskId: task.taskId })).rejects.toMatchObject({ code: -32602 })
    await expect(ask('tasks/result', { taskId: task.taskId })).rejects.toMatchObject({ code: -32603 })
  })
})
