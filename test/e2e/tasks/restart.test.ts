import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openState } from '../../../src/stores/state/open-state.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { legacyClient, type Members, modernClient, textIn } from '../../support/task-client.ts'
import { startTaskServer } from '../../support/task-server.ts'

let server: Awaited<ReturnType<typeof startTaskServer>>
let data: string
beforeEach(async () => {
  server = await startTaskServer()
  data = await mkdtemp(join(tmpdir(), 'dragoman-tasks-'))
})
afterEach(async () => {
  await server.close()
  await rm(data, { recursive: true, force: true })
})

const JOB = { name: 'job', arguments: {} }

/** Sets the status of the server's only task, once it has one. */
const set = async (status: string): Promise<void> => {
  await server.arrived('tasks/get')
  const task = server.tasks.get('t1')
  if (task) task.status = status
}

/** A gateway on the SQLite file of the data directory. `crash` ends it like `kill -9`: it releases nothing. */
const start = async (upstream: string | undefined = server.url) => {
  const state = await openState({ kind: 'sqlite', data }, SILENT)
  const gateway = await startTestGateway(upstream, state)
  let isOpen = true
  const end = async (order: readonly (() => Promise<void>)[]): Promise<void> => {
    if (!isOpen) return
    isOpen = false
    for (const close of order) await close()
  }
  const [closeStore, closeGateway] = [() => state.store.close(), () => gateway.close()]
  onTestFinished(() => end([closeGateway, closeStore]))
  return {
    url: gateway.url,
    stop: () => end([closeGateway, closeStore]),
    crash: () => end([closeStore, closeGateway]),
  }
}

describe.each(['stop', 'crash'] as const)('after a restart (%s)', how => {
  test('the result of a task that was completed before is fetched', async () => {
    const first = await start()
    const { ask, over } = modernClient(first.url)
    const { taskId } = await ask('tools/call', JOB)
    await set('completed')
    expect(await over(taskId)).toMatchObject({ status: 'completed' })
    await first[how]()
    const second = modernClient((await start()).url)
    for (const _ of [1, 2]) {
      const found = await second.ask('tasks/get', { taskId })
      expect(found).toMatchObject({ taskId, status: 'completed' })
      expect(textIn(found.result)).toBe('done')
    }
    expect(await second.ask('tasks/cancel', { taskId })).toMatchObject({ resultType: 'complete' })
    expect(await second.ask('tasks/get', { taskId })).toMatchObject({ status: 'completed' })
  })

  test('a running task of a server with tasks goes on, and the tool is not called again', async () => {
    const first = await start()
    const { taskId } = await modernClient(first.url).ask('tools/call', JOB)
    await server.arrived('tasks/get')
    await first[how]()
    expect(server.of('tasks/cancel')).toEqual([])
    const { ask, over } = modernClient((await start()).url)
    expect(await ask('tasks/get', { taskId })).toMatchObject({ status: 'working' })
    await set('completed')
    const done = await over(taskId)
    expect([done.status, textIn(done.result)]).toEqual(['completed', 'done'])
    expect(server.of('tools/call')).toHaveLength(1)
  })

  test('the question of such a task is asked again, under another key, and its answer arrives', async () => {
    const first = await start()
    const before = modernClient(first.url)
    const { taskId } = await before.ask('tools/call', JOB)
    await set('input_required')
    const keys = async ({ until }: typeof before): Promise<string[]> =>
      Object.keys((await until(taskId, ['input_required'])).inputRequests as Members)
    const [former = ''] = await keys(before)
    await first[how]()
    const after = modernClient((await start()).url)
    const [key = ''] = await keys(after)
    expect(key).not.toBe(former)
    const answer = { action: 'accept', content: { go: true } }
    await after.ask('tasks/update', { taskId, inputResponses: { [former]: answer } })
    expect(await after.ask('tasks/get', { taskId })).toMatchObject({ status: 'input_required' })
    await after.ask('tasks/update', { taskId, inputResponses: { [key]: answer } })
    expect(await after.over(taskId)).toMatchObject({ status: 'completed' })
    expect(server.answers).toContainEqual(answer)
  })

  test('a task whose server had not answered the call yet has failed, and the tool is not called again', async () => {
    const first = await start()
    await modernClient(first.url).ask('tools/list', {}) // so that the gateway is connected
    server.holdCalls()
    const { taskId } = await modernClient(first.url).ask('tools/call', JOB)
    await server.arrived('tools/call')
    await first[how]()
    expect(await modernClient((await start()).url).over(taskId)).toMatchObject({
      status: 'failed',
      error: { code: -32603, data: { reason: 'gateway_restarted' } },
    })
    expect(server.of('tools/call')).toHaveLength(1)
  })

  test('a task that had failed before has failed with the same error', async () => {
    const first = await start()
    const { ask, over } = modernClient(first.url)
    const { taskId } = await ask('tools/call', JOB)
    await server.arrived('tasks/get')
    const task = server.tasks.get('t1')
    if (task) task.error = { code: -32001, message: 'broken' }
    await set('failed')
    const before = await over(taskId)
    expect(before).toMatchObject({ status: 'failed', error: { code: -32001, message: 'broken' } })
    await first[how]()
    expect(await modernClient((await start()).url).ask('tasks/get', { taskId })).toEqual(before)
  })

  test('a task of a server without tasks has failed, and says why', async () => {
    const first = await start()
    const client = await legacyClient(first.url)
    const { task } = (await client.ask('tools/call', { name: 'plain', arguments: {}, task: {} })) as { task: Members }
    await server.called()
    await first[how]()
    const next = await legacyClient((await start()).url)
    expect(await next.ask('tasks/get', { taskId: task.taskId })).toMatchObject({ status: 'failed' })
    await expect(next.ask('tasks/result', { taskId: task.taskId })).rejects.toMatchObject({
      code: -32603,
      data: { reason: 'gateway_restarted' },
    })
    expect(server.of('tools/call')).toHaveLength(1)
  })
})

test('a task that was cancelled just before the process ended stays cancelled', async () => {
  const first = await start()
  const { ask } = modernClient(first.url)
  const { taskId } = await ask('tools/call', JOB)
  await ask('tasks/cancel', { taskId })
  await first.crash()
  expect(await modernClient((await start()).url).ask('tasks/get', { taskId })).toMatchObject({ status: 'cancelled' })
})
