import { afterEach, beforeEach, expect, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { legacyClient, type Members, modernClient, textIn } from '../../support/task-client.ts'
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

/** Ends the server until the gateway rejects calls without trying, and starts it again. */
const restart = async (): Promise<void> => {
  await server.close()
  const calls = Array.from({ length: 6 }, () => modernClient(gateway.url).ask('tools/list', {}))
  const errors = await Promise.all(calls.map(call => call.catch(({ message }: Error) => message)))
  expect(errors.join()).toContain('It has been down since')
  await new Promise(done => setTimeout(done, 1500)) // the task is asked for meanwhile
  await server.reopen()
}

test('a task outlives a restart of its server: the gateway asks again once the server is back', async () => {
  const { ask, over } = modernClient(gateway.url)
  const { taskId } = await ask('tools/call', JOB)
  await server.arrived('tasks/get')
  await restart()
  expect(await ask('tasks/get', { taskId })).toMatchObject({ status: 'working' })
  for (const task of server.tasks.values()) task.status = 'completed'
  const done = await over(taskId)
  expect([done.status, textIn(done.result)]).toEqual(['completed', 'done'])
  expect(server.of('tools/call')).toHaveLength(1)
})

test('the same for a client of 2025-06-18 that waits for the result', async () => {
  const client = await legacyClient(gateway.url, {}, '2025-06-18')
  const result: Promise<Members> = client.ask('tools/call', JOB)
  result.catch(() => {}) // seen below
  await server.arrived('tasks/get')
  await restart()
  for (const task of server.tasks.values()) task.status = 'completed'
  expect(textIn(await result)).toBe('done')
  expect(server.of('tools/call')).toHaveLength(1)
})
