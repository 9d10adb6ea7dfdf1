import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startReplicas } from '../../support/replicas.ts'
import { modernClient } from '../../support/task-client.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const PROGRAM = fileURLToPath(new URL('../../support/servers/counter.mjs', import.meta.url))
const entry = (more: Partial<ServerConfig> = {}): ServerConfig =>
  ({
    ...{ name: 'counter', disabled: false, on: 'gpu', kind: 'process', command: process.execPath, args: [PROGRAM] },
    ...{ env: {}, cwd: undefined, era: 'auto', timeoutMs: 20_000, ...more },
  }) as ServerConfig

const open = async (labelled: readonly number[], server = entry()) => {
  const labels = (at: number): string[] => (labelled.includes(at) ? ['gpu'] : [])
  const replicas = await startReplicas({ size: 3, entry: () => server, labels })
  closing.push(replicas.close)
  await Promise.all(replicas.replicas.map(({ gateway }) => gateway.ready))
  return replicas
}

const CLIENTS = {
  'SDK v2, modern': (url: string) => connectV2('SDK v2 modern', { url }),
  'SDK v1': (url: string) => connectV1({ url }),
}

test.each(Object.entries(CLIENTS))('%s uses a process that runs on one labelled replica', async (_, connect) => {
  const { url, replicas } = await open([1])
  const clients = [await connect(url), await connect(url)]
  closing.push(async () => void (await Promise.all(clients.map(client => client.close()))))
  const texts: string[] = []
  for (let i = 0; i < 6; i++) texts.push(textOf(await (clients[i % 2] as (typeof clients)[0]).call('count')))
  const [name] = (texts[0] ?? '').split(' ')
  expect(texts).toEqual([1, 2, 3, 4, 5, 6].map(count => `${name} ${count}`))
  expect(textOf(await (clients[0] as (typeof clients)[0]).call('ask'))).toMatch(/accept Ada$/)
  expect(replicas.map(({ gateway }) => gateway.status()[0]?.servers[0]?.state)).toEqual(['ready', 'ready', 'ready'])
})

test('without a replica with the label, calls fail with an error that names it', async () => {
  const { url, replicas, balancer } = await open([2])
  const client = await connectV2('SDK v2 modern', { url })
  closing.push(client.close)
  expect(textOf(await client.call('count'))).toMatch(/ 1$/)
  const [, , gpu] = replicas
  if (!gpu) throw new Error('three replicas')
  balancer.leaveOut(gpu)
  await gpu.kill()
  for (let i = 0; i < 2; i++)
    await expect(client.call('count')).rejects.toMatchObject({
      code: -32603,
      message: expect.stringContaining('"counter" runs only on replicas with the label "gpu"'),
      data: { reason: 'no_replica', upstream: 'counter' },
    })
})

test('the sessions of legacy clients have a process each with "share": "session"', async () => {
  const { url } = await open([0], entry({ share: 'session' } as Partial<ServerConfig>))
  const [one, two] = [await connectV1({ url }), await connectV1({ url })]
  closing.push(one.close, two.close)
  const texts = [await one.call('count'), await two.call('count'), await one.call('count')].map(textOf)
  expect(texts.map(text => text.split(' ')[1])).toEqual(['1', '1', '2'])
})

test('a task of a server that runs on one replica is known at all', async () => {
  const demo: ServerConfig = { name: 'demo', disabled: false, on: 'gpu', kind: 'builtin', builtin: 'demo' }
  const { replicas } = await open([0], demo)
  const clients = replicas.map(({ url }) => modernClient(url))
  for (const client of clients) {
    const { taskId } = await client.ask('tools/call', { name: 'slow_compute', arguments: { seconds: 0 } })
    expect(typeof taskId).toBe('string')
    for (const other of clients) expect(await other.over(taskId)).toMatchObject({ taskId, status: 'completed' })
  }
})
