import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { TASKS_EXTENSION } from '../../../src/protocol/meta.ts'
import { openState } from '../../../src/stores/state/open-state.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { startGatewayBefore, startTestGateway } from '../../support/gateway.ts'
import { modern } from '../../support/raw.ts'
import { modern as modernScript, result, scriptedServer, sendJson } from '../../support/scripted-server.ts'
import { legacyClient, type Members, modernClient, textIn, WITH_TASKS } from '../../support/task-client.ts'
import { startTaskServer } from '../../support/task-server.ts'

const AFTER = { afterMs: 500 }
const PLAIN = { name: 'plain', arguments: {} }
const ASKING = { name: 'asking', arguments: {} }
const { headers, body } = modern(1, 'tools/call', PLAIN, { capabilities: WITH_TASKS })
const REQUEST = {
  headers: { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  body,
}
const YES = { action: 'accept', content: { go: true } }
let server: Awaited<ReturnType<typeof startTaskServer>>
let gateway: Awaited<ReturnType<typeof startTestGateway>>
beforeEach(async () => {
  server = await startTaskServer()
  gateway = await startTestGateway(server.url, undefined, AFTER)
})
afterEach(async () => {
  await gateway.close()
  await server.close()
})

test('a call that takes longer than afterMs becomes a task, whose result is fetched later', async () => {
  const { ask, over } = modernClient(gateway.url)
  const created = await ask('tools/call', PLAIN)
  expect(created).toMatchObject({ resultType: 'task', status: 'working', taskId: expect.any(String) })
  server.finish()
  expect(textIn((await over(created.taskId)).result)).toBe('done')
  expect(server.of('tools/call')).toHaveLength(1)
})

test('a quick call, and a call of a client without the extension, stay calls', async () => {
  await modernClient(gateway.url).ask('tools/list', {}) // so that the gateway is connected
  const quick = modernClient(gateway.url).ask('tools/call', PLAIN)
  await server.called()
  server.finish()
  expect(await quick).toMatchObject({ resultType: 'complete' })
  const without = modernClient(gateway.url, {}).ask('tools/call', PLAIN)
  await server.called()
  await sleep(700)
  server.finish()
  expect(await without).toMatchObject({ resultType: 'complete' })
})

test('a client that disconnects before afterMs cancels the call; after it, the task goes on', async () => {
  const { ask, over } = modernClient(gateway.url)
  await ask('tools/list', {})
  const early = request(gateway.url, { method: 'POST', headers: REQUEST.headers }).on('error', () => {})
  early.end(JSON.stringify(REQUEST.body))
  await server.called()
  early.destroy()
  await server.arrived('notifications/cancelled')
  server.finish()
  const { taskId } = await ask('tools/call', PLAIN) // its connection has ended
  server.finish()
  expect(await over(taskId)).toMatchObject({ status: 'completed' })
})

test('a question of the server after afterMs is asked in the task', async () => {
  const { ask, until, over } = modernClient(gateway.url)
  const { taskId } = await ask('tools/call', ASKING)
  server.ask()
  const { inputRequests } = (await until(taskId, ['input_required'])) as { inputRequests: Members }
  await ask('tasks/update', { taskId, inputResponses: { [Object.keys(inputRequests)[0] ?? '']: YES } })
  await expect.poll(() => server.answers).toEqual([YES])
  server.finish()
  expect(textIn((await over(taskId)).result)).toBe('done')
})

test('a question before afterMs is asked in the call; its retry becomes a task if it takes long', async () => {
  const { ask, over } = modernClient(gateway.url)
  await ask('tools/list', {}) // so that the gateway is connected
  const first = ask('tools/call', ASKING)
  await server.called()
  server.ask()
  const { resultType, requestState, inputRequests } = await first
  expect(resultType).toBe('input_required')
  const inputResponses = { [Object.keys(inputRequests as Members)[0] ?? '']: YES }
  const created = await ask('tools/call', { ...ASKING, requestState, inputResponses })
  expect(created).toMatchObject({ resultType: 'task' })
  expect(server.answers).toEqual([YES])
  server.finish()
  expect(textIn((await over(created.taskId)).result)).toBe('done')
  expect(server.of('tools/call')).toHaveLength(1)
})

test('a cancelled task cancels the call at the server, also while it asks', async () => {
  const { ask, until } = modernClient(gateway.url)
  const { taskId } = await ask('tools/call', PLAIN)
  await ask('tasks/cancel', { taskId })
  await server.arrived('notifications/cancelled')
  const { taskId: second } = await ask('tools/call', ASKING)
  server.ask()
  await until(second, ['input_required'])
  await ask('tasks/cancel', { taskId: second })
  await server.arrived('notifications/cancelled', 2)
  expect(await ask('tasks/get', { taskId: second })).toMatchObject({ status: 'cancelled' })
})

test('a server that makes a task late completes the task of the gateway', async () => {
  const times = { createdAt: new Date(0).toISOString(), lastUpdatedAt: new Date(0).toISOString() }
  const task = { taskId: 'its own', ttlMs: 60_000, pollIntervalMs: 100, ...times }
  const content = [{ type: 'text', text: 'late' }]
  const late = await scriptedServer(
    modernScript(({ body }, response) => {
      const isCall = body.method === 'tools/call'
      const answer = isCall
        ? { resultType: 'task', status: 'working', ...task }
        : { resultType: 'complete', status: 'completed', ...task, result: { content } }
      setTimeout(() => sendJson(response, result(body.id, answer)), isCall ? 500 : 0)
    }),
  )
  const before = await startTestGateway(late.url, undefined, AFTER)
  onTestFinished(async () => {
    await before.close()
    await late.close()
  })
  const { ask, over } = modernClient(before.url)
  const { taskId } = await ask('tools/call', { name: 'any', arguments: {} })
  expect(textIn((await over(taskId)).result)).toBe('late')
  expect(late.of('tools/call')).toHaveLength(1)
})

test('the result of a long call survives a restart; a call that still ran is lost, and says so', async () => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-long-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const start = async () => {
    const state = await openState({ kind: 'sqlite', data }, SILENT)
    const { url, close } = await startTestGateway(server.url, state, AFTER)
    return { client: modernClient(url), stop: () => close().then(() => state.store.close()) }
  }
  const first = await start()
  const { taskId: done } = await first.client.ask('tools/call', PLAIN)
  server.finish()
  await first.client.over(done)
  const { taskId: running } = await first.client.ask('tools/call', PLAIN)
  await first.stop()
  const second = await start()
  onTestFinished(second.stop)
  expect(textIn((await second.client.ask('tasks/get', { taskId: done })).result)).toBe('done')
  expect(await second.client.ask('tasks/get', { taskId: running })).toMatchObject({
    status: 'failed',
    error: { data: { reason: 'gateway_restarted' } },
  })
})

test('server/discover offers the extension to modern clients where afterMs is set, also for several servers', async () => {
  const offered = async (url: string): Promise<unknown> => {
    const { capabilities } = (await modernClient(url).ask('server/discover', {})) as { capabilities: Members }
    return (capabilities.extensions as Members | undefined)?.[TASKS_EXTENSION]
  }
  const demo = (name: string) => ({ name, disabled: false, kind: 'builtin', builtin: 'files', root: '.' }) as const
  expect(await offered(gateway.url)).toEqual({})
  for (const tasks of [AFTER, undefined]) {
    const several = await startGatewayBefore([demo('one'), demo('two')], undefined, tasks)
    onTestFinished(() => several.close())
    expect(await offered(several.url)).toEqual(tasks && {})
  }
  const { ask } = await legacyClient(gateway.url)
  expect(await ask('ping', {})).toEqual({})
})
