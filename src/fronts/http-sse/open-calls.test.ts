import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { afterEach, expect, test } from 'vitest'
import { openRawChannel } from '../../../test/support/channel.ts'
import { answerEmpty, type Front, type Script, startFront } from '../../../test/support/front.ts'
import { sleep } from '../../std/time.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { randomKeys } from '../../stores/state/secret.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { OpenCalls } from './open-calls.ts'

const fronts: Front[] = []
const clients: Client[] = []
let cluster = new MemoryCluster()
const keys = randomKeys()

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
  for (const front of fronts.splice(0)) await front.close()
  cluster = new MemoryCluster()
})

const start = async (port = 0) => {
  const store = cluster.join()
  const front = await startFront(
    {
      'tools/call': exchange => {
        if (exchange.params.get('name')?.asString() === 'echo') void answerEmpty(exchange)
      },
    },
    { listen: { port }, state: { store, keys } },
  )
  fronts.push(front)
  return { ...front, replica: store.members.self }
}

const connect = async (front: Front): Promise<Client> => {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new SSEClientTransport(new URL(`${front.origin}/sse`)))
  clients.push(client)
  return client
}

test('a client that comes back after a crash learns which of its calls were lost', async () => {
  const first = await start()
  const client = await connect(first)
  const lost = client.callTool({ name: 'hang' }).then(
    () => 'answered',
    (error: unknown) => error,
  )
  await expect.poll(() => cluster.records.size).toBe(1)
  await client.callTool({ name: 'echo' })
  cluster.kill(first.replica)
  await first.kill()
  const second = await start(first.port)
  expect(await lost).toMatchObject({ code: -32603, data: { reason: 'gateway_restarted' } })
  expect(await client.callTool({ name: 'echo' })).toMatchObject({ content: [] })
  expect(second.channels.size).toBe(1)
}, 20_000)

test('a client that comes back gets the endpoint first, however long the store takes', async () => {
  const store = cluster.join()
  const changed: Script = {
    'subscriptions/listen': exchange =>
      exchange.sink({ kind: 'notice', method: 'notifications/tools/list_changed', params: Json.empty }),
  }
  const { take } = store
  store.take = (...args) => sleep(20).then(() => take.apply(store, args))
  const front = await startFront(changed, { state: { store, keys } })
  fronts.push(front)
  const headers = { accept: 'text/event-stream', 'mcp-protocol-version': '2025-06-18' }
  const channel = await openRawChannel(`${front.origin}/sse`, headers)
  expect((await channel.next())?.event).toBe('endpoint')
  expect((await channel.next())?.data).toContain('list_changed')
  channel.close()
})

test('nothing is left in the store of calls that have ended', async () => {
  const front = await start()
  const client = await connect(front)
  const abort = new AbortController()
  const call = client.callTool({ name: 'hang' }, undefined, { signal: abort.signal }).catch(() => {})
  await expect.poll(() => cluster.records.size).toBe(1)
  abort.abort()
  await call
  await expect.poll(() => cluster.records.size).toBe(0)
})

test('calls of another client, and of a replica that lives, are not lost', async () => {
  const [dead, alive, third] = [cluster.join(), cluster.join(), cluster.join()]
  const calls = [dead, alive].map(store => new OpenCalls(store, SILENT))
  const end = calls.map((each, at) => each.add('ada', Json.of(`call ${at}`)))
  await expect.poll(() => cluster.records.size).toBe(2)
  const asked = new OpenCalls(third, SILENT)
  expect(await asked.findLost('ada')).toEqual([])
  cluster.kill(dead.members.self)
  expect(await asked.findLost('eve')).toEqual([])
  expect((await asked.findLost('ada')).map(String)).toEqual(['"call 0"'])
  // Another client of the same caller comes back through another replica.
  expect((await new OpenCalls(cluster.join(), SILENT).findLost('ada')).map(String)).toEqual(['"call 0"'])
  for (const each of end) each()
})
