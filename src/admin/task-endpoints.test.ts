import { expect, test } from 'vitest'
import type { TaskInfo } from '../protocol/task-info.ts'
import { Json } from '../wire/json/json.ts'
import type { AdminCall } from './endpoints.ts'
import { createTaskEndpoints } from './task-endpoints.ts'

const task = (id: string, principal: string | undefined, status: TaskInfo['status']): TaskInfo => ({
  ...{ id, server: 'demo', tool: 'slow', workspace: 'default', principal, status },
  ...{ createdAt: 1, updatedAt: 2, expires: 3 },
})
const TASKS = [task('1', 'ann', 'working'), task('2', 'ben', 'completed'), task('3', undefined, 'working')]
const cancelled: string[] = []
const endpoints = createTaskEndpoints({
  list: async () => TASKS,
  read: async id => {
    const info = TASKS.find(each => each.id === id)
    return info && { info, rest: { result: Json.of({ content: [] }) } }
  },
  cancel: async id => TASKS.some(each => each.id === id) && cancelled.push(id) > 0,
  start: async () => 'new',
})

const run = async (
  method: string,
  path: string,
  role: 'owner' | 'viewer',
  principal?: string,
  id = '',
): Promise<unknown> => {
  const endpoint = endpoints.find(each => each.method === method && each.path === path)
  const result = await endpoint?.run({ params: { id }, role, principal } as unknown as AdminCall)
  return result instanceof Json ? result.toValue() : result
}

test('owners see every task, viewers their own, and an anonymous viewer none', async () => {
  const idsFor = async (role: 'owner' | 'viewer', principal?: string): Promise<unknown> =>
    ((await run('GET', '/admin/tasks', role, principal)) as { tasks: TaskInfo[] }).tasks.map(({ id }) => id)
  expect(await idsFor('owner', 'ann')).toEqual(['1', '2', '3'])
  expect(await idsFor('viewer', 'ann')).toEqual(['1'])
  expect(await idsFor('viewer')).toEqual([])
  expect(await run('GET', '/admin/tasks', 'owner')).toMatchObject({ running: 2 })
})

test('the task of another user is unknown to a viewer', async () => {
  const show = (role: 'owner' | 'viewer', principal: string, id: string) =>
    run('GET', '/admin/tasks/{id}', role, principal, id)
  expect(await show('viewer', 'ben', '2')).toMatchObject({ id: '2', status: 'completed', result: { content: [] } })
  await expect(show('viewer', 'ann', '2')).rejects.toMatchObject({ status: 404 })
  await expect(show('owner', 'ann', 'x')).rejects.toMatchObject({ status: 404 })
})

test('only owners may start and cancel', async () => {
  expect(endpoints.filter(({ method }) => method !== 'GET').map(({ access }) => access)).toEqual(['owner', 'owner'])
  await run('POST', '/admin/tasks/{id}/cancel', 'owner', undefined, '1')
  expect(cancelled).toEqual(['1'])
  await expect(run('POST', '/admin/tasks/{id}/cancel', 'owner', undefined, 'x')).rejects.toMatchObject({ status: 404 })
})
