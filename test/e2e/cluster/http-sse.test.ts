import { afterEach, beforeEach, expect, test } from 'vitest'
import { openRawChannel, type RawChannel } from '../../support/channel.ts'
import { rpcInitialize, rpcRequest } from '../../support/front.ts'
import { send } from '../../support/raw.ts'
import { createReplicaServer } from '../../support/replica-server.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'

let cluster: Awaited<ReturnType<typeof startReplicas>>
let home: TestReplica
let entry: TestReplica
let third: TestReplica

beforeEach(async () => {
  cluster = await startReplicas({ size: 3, server: at => createReplicaServer(at) })
  ;[home, entry, third] = cluster.replicas as [TestReplica, TestReplica, TestReplica]
})
afterEach(() => cluster.close())

const call = (id: number) => rpcRequest(id, 'tools/call', { name: 'where', arguments: {} })
const originOf = ({ gateway }: TestReplica): string => gateway.origin

/** Opens a channel and initializes it through another replica. */
const open = async (at: TestReplica, path = '/sse'): Promise<{ channel: RawChannel; endpoint: string }> => {
  const channel = await openRawChannel(`${originOf(at)}${path}`)
  const endpoint = (await channel.nextOf('endpoint')).data
  expect((await send(`${originOf(entry)}${endpoint}`, { body: rpcInitialize('2024-11-05') })).status).toBe(202)
  expect(JSON.parse((await channel.nextOf('message')).data)).toMatchObject({ id: 0, result: {} })
  return { channel, endpoint }
}

test('messages are posted at any replica, and answered on the channel', async () => {
  const { channel, endpoint } = await open(home)
  for (const [at, replica] of [home, entry, third].entries()) {
    expect((await send(`${originOf(replica)}${endpoint}`, { body: call(at) })).status).toBe(202)
    const answer = JSON.parse((await channel.nextOf('message')).data)
    expect(answer).toMatchObject({ id: at, result: { content: [{ text: 'replica 0' }] } })
  }
  channel.close()
})

test('/message repeats the response in its body, through a forward too', async () => {
  const { channel, endpoint } = await open(home)
  const url = `${originOf(third)}${endpoint.replace('/messages/', '/message')}`
  const { status, json } = await send(url, { body: call(4) })
  expect([status, json]).toMatchObject([200, { id: 4, result: { content: [{ text: 'replica 0' }] } }])
  channel.close()
})

test('a channel of /mcp is named by a header', async () => {
  const channel = await openRawChannel(`${originOf(home)}/mcp`)
  const headers = { 'mcp-session-id': String(channel.headers['mcp-session-id']) }
  expect((await send(entry.url, { headers, body: rpcInitialize('2024-11-05') })).status).toBe(202)
  expect(JSON.parse((await channel.nextOf('response')).data)).toMatchObject({ id: 0 })
  expect((await send(third.url, { headers, body: call(1) })).status).toBe(202)
  expect(JSON.parse((await channel.nextOf('response')).data)).toMatchObject({ id: 1 })
  expect((await send(third.url, { method: 'DELETE', headers })).status).toBe(200)
  await channel.rest()
})

test('a message without an id goes to the only channel of its caller, wherever that is', async () => {
  const channel = await openRawChannel(`${originOf(home)}/mcp`)
  await channel.nextOf('endpoint')
  await expect.poll(async () => (await send(entry.url, { body: call(1) })).status).toBe(202)
  expect((await send(third.url, { body: call(2) })).status).toBe(202)
  const ids = [await channel.nextOf('response'), await channel.nextOf('response')].map(
    ({ data }) => JSON.parse(data).id,
  )
  expect(ids).toEqual([1, 2])
  const second = await openRawChannel(`${originOf(third)}/mcp`) // now there are two
  await expect.poll(async () => (await send(entry.url, { body: call(3) })).status).toBe(400)
  second.close()
  await expect.poll(async () => (await send(entry.url, { body: call(4) })).status).toBe(202)
  channel.close()
  await expect.poll(async () => (await send(entry.url, { body: call(5) })).status).toBe(400)
})

test('home killed: the channel has ended, and its messages are rejected', async () => {
  const { channel, endpoint } = await open(home)
  await home.kill()
  const { status, json } = await send(`${originOf(entry)}${endpoint}`, { body: call(1) })
  expect([status, json.error?.message]).toEqual([404, expect.stringContaining('open a new one')])
  channel.close()
})

test('a replica that lost its lease ends its channels, and opens new ones under its new name', async () => {
  const { channel } = await open(home)
  cluster.shared.lapse(home.store.members.self)
  await channel.rest()
  const again = await open(home)
  expect((await send(`${originOf(third)}${again.endpoint}`, { body: call(1) })).status).toBe(202)
  again.channel.close()
})

test('forged and foreign channel ids are rejected, and session ids are no channel ids', async () => {
  const { channel, endpoint } = await open(home)
  const session = String((await send(home.url, { body: rpcInitialize('2025-11-25') })).headers['mcp-session-id'])
  const id = endpoint.split('=').at(-1) ?? ''
  const forged = [`${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`, id.slice(2), 'x', session]
  for (const bad of forged) {
    const { status } = await send(`${originOf(entry)}/messages/?session_id=${bad}`, { body: call(1) })
    expect([bad, status]).toEqual([bad, 404])
  }
  channel.close()
})
