import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { send } from '../../support/raw.ts'
import { startReplicas } from '../../support/replicas.ts'
import { createToken, newDataDirectory } from '../auth/guarded.ts'

type Task = Record<string, unknown> & { status: string; taskId: string }
const JSON_TYPE = { accept: '*/*', 'content-type': 'application/json' }
let cluster: Awaited<ReturnType<typeof startReplicas>>
let data: string
let origin: string
let ann: Record<string, string>
let ben: Record<string, string>
beforeAll(async () => {
  data = await newDataDirectory()
  ann = (await createToken(data)).headers
  ben = (await createToken(data)).headers
  cluster = await startReplicas({ size: 2, data })
  origin = new URL(cluster.url).origin // any replica answers
})
afterAll(async () => {
  await cluster.close()
  await rm(data, { recursive: true, force: true })
})

const start = async (tool: string, args: object, headers = ann) => {
  const prefer = { prefer: 'wait=5, respond-async' }
  const reply = await send(`${origin}/actions/${tool}`, {
    headers: { ...JSON_TYPE, ...headers, ...prefer },
    body: args,
  })
  return { ...reply, url: `${origin}${reply.headers.location}`, task: reply.json as unknown as Task }
}
const read = async (url: string, headers = ann): Promise<Task> =>
  (await send(url, { method: 'GET', headers })).json as unknown as Task
const until = async (url: string, status: string): Promise<Task> => {
  await expect.poll(async () => (await read(url)).status, { timeout: 10_000 }).toBe(status)
  return read(url)
}

test('Prefer: respond-async starts a task, whose URL gives the state and then the result', async () => {
  const { status, headers, url, task } = await start('slow_compute', { seconds: 1, label: 'pi' })
  expect(status).toBe(202)
  expect(headers.location).toBe(`/actions/tasks/${task.taskId}`)
  expect(headers['preference-applied']).toBe('respond-async')
  expect(task).toMatchObject({ status: 'working' })
  expect(await until(url, 'completed')).toMatchObject({
    taskId: task.taskId,
    result: { content: [{ type: 'text', text: 'Computed pi in 1 seconds' }] },
  })
})

test('the path of another workspace names it, and a tool that only runs as a task works', async () => {
  const { headers, url } = await start('other/failing_job', {})
  expect(headers.location).toMatch(/^\/actions\/other\/tasks\//)
  expect(await until(url, 'completed')).toMatchObject({ result: { isError: true } })
})

test('a question is shown, and answered with PATCH', async () => {
  const { url } = await start('confirm_delete', { filename: 'a.txt' })
  const { inputRequests } = await until(url, 'input_required')
  const [key = '', request] = Object.entries(inputRequests as Record<string, unknown>)[0] ?? []
  expect(request).toMatchObject({ method: 'elicitation/create', params: { message: 'Delete a.txt?' } })
  const answer = { action: 'accept', content: { confirm: true } }
  const patched = await send(url, { method: 'PATCH', headers: { ...JSON_TYPE, ...ann }, body: { [key]: answer } })
  expect(patched.status).toBe(204)
  expect(await until(url, 'completed')).toMatchObject({ result: { content: [{ text: 'Deleted a.txt' }] } })
})

test('DELETE cancels, once or twice; another user, and a forged id, get 404', async () => {
  const { url } = await start('slow_compute', { seconds: 60 })
  expect((await send(url, { method: 'GET', headers: ben })).status).toBe(404)
  expect((await send(url, { method: 'DELETE', headers: ben })).status).toBe(404)
  expect((await send(`${url}x`, { method: 'GET', headers: ann })).status).toBe(404)
  expect((await send(url, { method: 'GET' })).status).toBe(401)
  for (const _ of [1, 2]) expect((await send(url, { method: 'DELETE', headers: ann })).status).toBe(204)
  expect(await until(url, 'cancelled')).toMatchObject({ status: 'cancelled' })
})

test('an unknown tool ends as a failed task or with 404, and without the header nothing changes', async () => {
  const { status, url } = await start('no-such-tool', {})
  expect([202, 404]).toContain(status)
  if (status === 202) expect(await until(url, 'failed')).toMatchObject({ error: { code: -32602 } })
  const plain = await send(`${origin}/actions/greet`, { headers: { ...JSON_TYPE, ...ann }, body: { name: 'Ann' } })
  expect([plain.status, plain.headers.location]).toEqual([200, undefined])
})
