import { describe, expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { MODERN } from '../../src/protocol/revisions.ts'
import { modern } from '../support/raw.ts'
import { type Members, WITH_TASKS } from '../support/task-client.ts'
import { type Cell, clientOf, inCell, serverOf } from './cells.ts'
import type { MatrixClient } from './client.ts'
import { pipeServer } from './pipe-server.ts'
import type { MatrixServer } from './server.ts'
import { DONE, FORM, runLegacyTasks, runModernTasks } from './task-scripts.ts'

const LEGACY = '2025-11-25'
const LEGACY_SERVERS = [
  { ...serverOf(LEGACY), clients: ['stateless', 'stdio'] },
  { ...serverOf(LEGACY, 'http-sse'), clients: ['stateless'] },
  { name: `${LEGACY} stdio`, revision: LEGACY, start: () => pipeServer(LEGACY), clients: ['stateless', 'stdio'] },
] as const
const MODERN_SERVERS = [serverOf(MODERN), serverOf(MODERN, 'stdio')]
const JOB = { name: 'job', arguments: {} }
const RELATED = [META.relatedTask]

const paramsAt = (server: MatrixServer, method: string) => server.of(method).map(({ message }) => message.params ?? {})

/** The state of a task once it is over, as a client of the extension reads it. */
const over = async (client: MatrixClient, taskId: unknown): Promise<Members> => {
  const deadline = Date.now() + 10_000
  while (Date.now() < deadline) {
    const { result = {} } = await client.call('tasks/get', { taskId })
    if (result.status === 'completed') return result
    await new Promise(done => setTimeout(done, 20))
  }
  throw new Error('the task is never over')
}

/** Calls the job and leaves as soon as the server has been asked for its task: the request is given up, or cancelled. */
const leaveDuringJob = async ({ client, server, url }: Cell, kind: string): Promise<void> => {
  const asked = server.of('tasks/get').length
  const leave = new AbortController()
  if (kind === 'stdio') void client.call('tools/call', JOB)
  else {
    const { headers, body } = modern(9, 'tools/call', JOB)
    const request = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }
    void fetch(url, { ...request, body: JSON.stringify(body), signal: leave.signal }).catch(() => {})
  }
  await server.arrived('tasks/get', asked + 1)
  if (kind === 'stdio') await client.notify('notifications/cancelled', { requestId: 2 })
  leave.abort()
}

describe.each(LEGACY_SERVERS)('a server of $name', kind => {
  describe.each(kind.clients)('a modern client (%s)', dialect => {
    const inTasks = async (capabilities: object, body: (cell: Cell, finish: () => void) => Promise<void>) => {
      let tasks: ReturnType<typeof runLegacyTasks> | undefined
      const finish = (): void => {
        for (const task of tasks?.values() ?? []) task.status = 'completed'
      }
      const prepare = (server: MatrixServer): void => {
        tasks = runLegacyTasks(server)
      }
      await inCell(clientOf(MODERN, dialect), kind, { capabilities, prepare }, cell => body(cell, finish))
    }

    test('E1: gets a task, polls it, and gets the result without the server’s id; the server sees its own task', () =>
      inTasks(WITH_TASKS, async ({ client, server }, finish) => {
        const { result: created = {} } = await client.call('tools/call', JOB)
        expect(created).toMatchObject({
          ...{ resultType: 'task', status: 'working', ttlMs: expect.any(Number), pollIntervalMs: expect.any(Number) },
        })
        await server.arrived('tasks/get')
        const { result: working } = await client.call('tasks/get', { taskId: created.taskId })
        expect(working).toMatchObject({ resultType: 'complete', taskId: created.taskId, status: 'working' })
        finish()
        const { result } = (await over(client, created.taskId)) as { result: Members }
        expect(result).toMatchObject(DONE)
        expect(result._meta ?? {}).not.toHaveProperty(RELATED)
        expect(client.texts.join()).not.toContain('t-1')
        expect(paramsAt(server, 'tools/call')).toMatchObject([{ ...JOB, task: { ttl: expect.any(Number) } }])
        expect(new Set(paramsAt(server, 'tasks/get').map(({ taskId }) => taskId))).toEqual(new Set(['t-1']))
        expect(paramsAt(server, 'tasks/result')).toMatchObject([{ taskId: 't-1' }])
      }))

    test('E2: without the extension gets one plain result; if it leaves, the server’s task is cancelled', () =>
      inTasks({}, async (cell, finish) => {
        const { client, server } = cell
        const calling = client.call('tools/call', JOB)
        await server.arrived('tasks/get')
        finish()
        expect((await calling).result).toMatchObject({ resultType: 'complete', ...DONE })
        expect(paramsAt(server, 'tools/call')).toMatchObject([{ ...JOB, task: { ttl: expect.any(Number) } }])
        expect(paramsAt(server, 'tasks/result')).toMatchObject([{ taskId: 't-1' }])
        expect(server.of('tasks/cancel')).toEqual([])
        await leaveDuringJob(cell, dialect)
        expect((await server.arrived('tasks/cancel')).message.params).toMatchObject({ taskId: 't-2' })
      }))

    test('E5: without the extension, or with a forged id, learns nothing, and the server hears nothing', () =>
      inTasks(WITH_TASKS, async ({ client, another, server }) => {
        const { result: created = {} } = await client.call('tools/call', JOB)
        const taskId = String(created.taskId)
        await server.arrived('tasks/get')
        const others = await another({})
        const heard = server.of('tasks/cancel').length
        for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update'])
          expect((await others.call(method, { taskId, inputResponses: {} })).error).toMatchObject({ code: -32021 })
        for (const forged of [`${taskId.slice(0, -4)}AAAA`, 't-1', ''])
          expect((await client.call('tasks/cancel', { taskId: forged })).error).toMatchObject({
            code: -32602,
            data: { reason: 'unknown_task' },
          })
        expect(server.of('tasks/cancel')).toHaveLength(heard)
        expect((await client.call('tasks/get', { taskId })).result).toMatchObject({ status: 'working' })
      }))
  })
})

describe.each(MODERN_SERVERS)('a server of $name', kind => {
  describe.each(['streamable', 'stdio'])('a client of 2025-11-25 (%s)', dialect => {
    const inTasks = (body: (cell: Cell) => Promise<void>) =>
      inCell(clientOf(LEGACY, dialect), kind, { capabilities: { elicitation: {} }, prepare: runModernTasks }, body)

    test('E3: gets a task of a tool that answers at once, then its result; the server gets one plain call', () =>
      inTasks(async ({ client, server }) => {
        const { result = {} } = await client.call('tools/call', { ...JOB, name: 'quick', task: { ttl: 60_000 } })
        const { task } = result as { task: Members }
        expect(task).toMatchObject({ status: 'working', ttl: 60_000, pollInterval: expect.any(Number) })
        const { taskId } = task
        const { result: last } = await client.call('tasks/result', { taskId })
        expect(last).toMatchObject({ ...DONE, _meta: { [META.relatedTask]: { taskId } } })
        expect((await client.call('tasks/get', { taskId })).result).toMatchObject({ taskId, status: 'completed' })
        const [params, ...more] = paramsAt(server, 'tools/call')
        expect([params?.name, params?.task, more]).toEqual(['quick', undefined, []])
        expect(server.of('tasks/get')).toEqual([])
      }))

    test('E4: is asked with tasks/result, with the id of its task; the server gets the answer with tasks/update', () =>
      inTasks(async ({ client, server }) => {
        const { result = {} } = await client.call('tools/call', { ...JOB, task: {} })
        const { taskId } = (result as { task: Members }).task
        const content = { go: true }
        const { result: last, asked } = await client.call(
          'tasks/result',
          { taskId },
          { answer: () => ({ action: 'accept', content }) },
        )
        expect(asked).toMatchObject([
          { method: 'elicitation/create', params: { ...FORM, _meta: { [META.relatedTask]: { taskId } } } },
        ])
        expect(last).toMatchObject({ ...DONE, _meta: { [META.relatedTask]: { taskId } } })
        expect(paramsAt(server, 'tasks/update')).toMatchObject([
          { taskId: 't-1', inputResponses: { go: { action: 'accept', content } } },
        ])
        expect(client.texts.join()).not.toContain('"t-1"')
      }))
  })
})
