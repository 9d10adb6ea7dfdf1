import { fileURLToPath } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startReplicas } from '../../support/replicas.ts'
import { type CounterOptions, startCounter } from '../../support/servers/counter.mjs'

type Replicas = Awaited<ReturnType<typeof startReplicas>>
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const PROGRAM = fileURLToPath(new URL('../../support/servers/counter.mjs', import.meta.url))
const process_: ServerConfig = {
  ...{ name: 'counter', disabled: false, kind: 'process', command: process.execPath, args: [PROGRAM] },
  ...{ env: {}, cwd: undefined, era: 'auto', timeoutMs: 20_000 },
}
const remote = (url: string): ServerConfig => ({
  ...{
    name: 'counter',
    disabled: false,
    kind: 'remote',
    url,
    type: 'http',
    headers: {},
    era: 'auto',
    timeoutMs: 20_000,
  },
})

const open = async (entry: ServerConfig, size = 3): Promise<Replicas> => {
  const replicas = await startReplicas({ size, entry: () => entry })
  closing.push(replicas.close)
  await Promise.all(replicas.replicas.map(({ gateway }) => gateway.ready))
  return replicas
}
const startServer = async (options: CounterOptions = {}) => {
  const server = await startCounter(options)
  closing.push(server.close)
  return server
}
const connect = async (url: string) => {
  const client = await connectV2('SDK v2 modern', { url })
  closing.push(client.close)
  return client
}
const counts = (results: readonly unknown[]): string[] => results.map(result => textOf(result as never)).sort()

test('a modern client finds the state of its session at a legacy server, whichever replica it reaches', async () => {
  const server = await startServer()
  const { url } = await open(remote(server.url))
  const client = await connect(url)
  expect(await client.toolNames()).toContain('count')
  const texts: string[] = []
  for (let i = 0; i < 9; i++) texts.push(textOf(await client.call('count')))
  const [name] = (texts[0] ?? '').split(' ')
  expect(texts).toEqual(Array.from({ length: 9 }, (_, i) => `${name} ${i + 1}`))
})

test('a process of one user exists once among the replicas, and counts the calls of all of them', async () => {
  const { url } = await open(process_)
  const [one, two] = [await connect(url), await connect(url)]
  const texts = counts(await Promise.all(Array.from({ length: 12 }, (_, i) => (i % 2 ? one : two).call('count'))))
  const [name] = (texts[0] ?? '').split(' ')
  expect(texts).toEqual(counts(texts.map((_, i) => ({ content: [{ text: `${name} ${i + 1}` }] }))))
})

test('questions of a session are answered although each retry reaches another replica', async () => {
  const server = await startServer()
  const { url } = await open(remote(server.url))
  const client = await connect(url)
  for (let i = 0; i < 6; i++) expect(textOf(await client.call('ask'))).toMatch(/accept Ada$/)
  expect(client.asked).toHaveLength(6)
})

test('H34: a question whose call was lost with its replica is answered with call_lost', async () => {
  const server = await startServer()
  const { url, replicas, balancer } = await open(remote(server.url))
  const killHome = async () => {
    const home = replicas.find(({ store }) => store.health().claims > 0)
    if (!home) throw new Error('no replica holds the session')
    balancer.leaveOut(home)
    await home.kill()
    return { action: 'accept', content: { name: 'Ada' } }
  }
  const client = await connectV2('SDK v2 modern', { url, answer: killHome })
  closing.push(client.close)
  await expect(client.call('ask')).rejects.toMatchObject({ code: -32602, data: { reason: 'call_lost' } })
  expect(textOf(await client.call('count'))).toMatch(/^s\d+ \d+$/)
})

test('when the home of a session is killed, another replica takes it over', async () => {
  const { url, replicas, balancer } = await open(process_)
  const client = await connect(url)
  const before = textOf(await client.call('count')).split(' ')[0]
  const home = replicas.find(({ store }) => store.health().claims > 0)
  expect(replicas.filter(({ store }) => store.health().claims > 0)).toEqual([home])
  if (!home) throw new Error('no replica holds the session')
  balancer.leaveOut(home)
  await home.kill()
  const texts: string[] = []
  for (let i = 0; i < 4; i++) texts.push(textOf(await client.call('count')))
  const after = (texts[0] ?? '').split(' ')[0]
  expect(after).not.toBe(before)
  expect(texts).toEqual([1, 2, 3, 4].map(count => `${after} ${count}`))
})

test('calls while the lease of a killed home has not ended yet are sent to the next home', async () => {
  const server = await startServer()
  const { url, replicas, balancer } = await open(remote(server.url))
  const client = await connect(url)
  const [name] = textOf(await client.call('count')).split(' ')
  const home = replicas.find(({ store }) => store.health().claims > 0)
  if (!home) throw new Error('no replica holds the session')
  await expect.poll(() => home.store.health().claims).toBeGreaterThan(1)
  balancer.leaveOut(home)
  await home.relay.stop()
  const texts = counts(await Promise.all(Array.from({ length: 6 }, () => client.call('count'))))
  expect(texts).toEqual([2, 3, 4, 5, 6, 7].map(count => `${name} ${count}`))
})

test('a question whose home was killed within its lease is answered with call_lost', async () => {
  const server = await startServer()
  const { url, replicas, balancer } = await open(remote(server.url))
  const answer = async () => {
    const home = replicas.find(({ store }) => store.health().claims > 0)
    if (!home) throw new Error('no replica holds the session')
    balancer.leaveOut(home)
    await home.relay.stop()
    return { action: 'accept', content: { name: 'Ada' } }
  }
  const client = await connectV2('SDK v2 modern', { url, answer })
  closing.push(client.close)
  await expect(client.call('ask')).rejects.toMatchObject({ code: -32602, data: { reason: 'call_lost' } })
})

test('a session at a remote server goes on where it was when its home is killed', async () => {
  const server = await startServer()
  const { url, replicas, balancer } = await open(remote(server.url))
  const client = await connect(url)
  const [name] = textOf(await client.call('count')).split(' ')
  const hasPool = ({ store }: Replicas['replicas'][number]) => store.health().claims > 0
  const home = replicas.find(hasPool)
  if (!home) throw new Error('no replica holds the session')
  await expect.poll(() => home.store.health().claims).toBeGreaterThan(1) // the session with the server is recorded, too
  balancer.leaveOut(home)
  await home.kill()
  expect(textOf(await client.call('count'))).toBe(`${name} 2`)
  expect(textOf(await client.call('count'))).toBe(`${name} 3`)
})

test('a client that listens hears of changes through the home of its session, also after that has changed', async () => {
  const { replicas } = await open(process_, 2)
  const [entry, home] = replicas
  if (!entry || !home) throw new Error('two replicas')
  const atHome = await connect(home.url)
  await atHome.call('count')
  const client = await connect(entry.url)
  const { lost } = await client.watch('counter://none')
  const isLost = vi.fn()
  void lost.then(isLost)
  const heard = (): number => client.notices.pending('notifications/tools/list_changed').length
  await atHome.call('grow')
  await expect.poll(heard, { timeout: 5000 }).toBeGreaterThan(0)
  await home.kill()
  await expect.poll(() => entry.store.health().claims, { timeout: 10_000 }).toBeGreaterThan(0)
  const before = heard()
  await client.call('grow')
  await expect.poll(heard, { timeout: 10_000 }).toBeGreaterThan(before)
  expect(isLost).not.toHaveBeenCalled()
})

test('a call that was running at a killed home fails once, and says that it may have run', async () => {
  const { url, replicas, balancer } = await open(process_)
  const client = await connect(url)
  await client.call('count')
  const home = replicas.find(({ store }) => store.health().claims > 0)
  if (!home) throw new Error('no replica holds the session')
  balancer.leaveOut(home)
  const slow = client.call('slow')
  await expect.poll(() => home.gateway.load().calls).toBe(1)
  await home.kill()
  await expect(slow).rejects.toMatchObject({ code: -32603, data: { reason: 'replica_lost', upstream: 'counter' } })
  expect(textOf(await client.call('count'))).toMatch(/ 1$/)
})

test('a legacy server without session ids is used by each replica for itself', async () => {
  const server = await startServer({ isStateless: true })
  const { url, replicas } = await open(remote(server.url))
  const client = await connect(url)
  for (let i = 0; i < 6; i++) expect(textOf(await client.call('count'))).toBe('s1 1')
  expect(replicas.map(({ store }) => store.health().claims)).toEqual([0, 0, 0])
})

test('the sessions of legacy clients at a remote server go on where they were when their home is killed or stopped', async () => {
  const server = await startServer()
  const { url, replicas, balancer } = await open(remote(server.url))
  const client = await connectV1({ url })
  closing.push(client.close)
  const [name] = textOf(await client.call('count')).split(' ')
  for (const [at, how] of ['kill', 'close'].entries()) {
    const home = replicas.find(({ gateway }) => gateway.load().sessions > 0)
    if (!home) throw new Error('no replica holds the session')
    await expect.poll(() => home.store.health().claims).toBeGreaterThan(1)
    balancer.leaveOut(home)
    if (how === 'kill') await home.kill()
    await home.gateway.close()
    expect(textOf(await client.call('count'))).toBe(`${name} ${at + 2}`)
  }
})
