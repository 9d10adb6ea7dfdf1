import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, type Mocked, test, vi } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import type { Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import type { MessageTap } from '../../protocol/message-tap.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { MODERN } from '../../protocol/revisions.ts'
import type { Membership } from '../../stores/state/state-store.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { ReplicaClient, type ReplicaProtocol } from './replica-client.ts'

type Script = (request: IncomingMessage, response: ServerResponse, message: { id?: number; method: string }) => void

let script: Script
let address: string
let requests: IncomingMessage[]
let closeServer: () => Promise<unknown>
let left: (replica: string) => void
let members: Mocked<Pick<Membership, 'at' | 'reportDead' | 'onLeft'>>
let client: ReplicaClient

const protocol: ReplicaProtocol = {
  callerHeaders: (server, { principal = '' }, to, now) => ['x-caller', `${server} ${principal} ${to} ${now}`],
  targetHeaders: (pool, isHealthCheck, canPoll) => ['x-target', `${pool} ${isHealthCheck}${canPoll ? ' polls' : ''}`],
  pollDelayOf: message =>
    message.kind === 'notification' && message.method === 'x/close' ? message.params.get('ms')?.asNumber() : undefined,
  pathOf: server => `/servers/${server}`,
  replicaIn: headers => headers['x-replica'] as string | undefined,
  clockIn: headers => Number(headers['x-clock']) || undefined,
}
const OWN = { 'x-replica': 'home', 'content-type': 'application/json' }
const answer = (response: ServerResponse, id: number | undefined, result: object): void =>
  void response.writeHead(200, OWN).end(JSON.stringify({ jsonrpc: '2.0', id, result }))

beforeEach(async () => {
  requests = []
  const server = createServer(async (request, response) => {
    requests.push(request)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    script(request, response, JSON.parse(Buffer.concat(chunks).toString()))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  closeServer = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  members = {
    at: vi.fn(() => ({ replica: 'home', address, labels: [], version: 1 })),
    reportDead: vi.fn(async () => {}),
    onLeft: vi.fn((listener: (replica: string) => void) => {
      left = listener
      return () => {}
    }),
  }
  client = new ReplicaClient({ members, protocol, log: SILENT })
})
afterEach(async () => {
  await client.close()
  await closeServer()
})

const caller: Caller = {
  ...{ workspace: 'w', principal: 'ada', revision: MODERN, capabilities: Json.empty, headers: new Map() },
}
const call = (method = 'tools/call', over: Partial<Exchange> & { params?: Json } = {}) => {
  const frames: Frame[] = []
  const abort = new Abort()
  const gone = vi.fn()
  const target = { replica: 'home', server: 'far', pool: 'p1' }
  const ended = new Promise<void>(resolve => {
    const sink = (frame: Frame): void => {
      frames.push(frame)
      if (frame.kind === 'result' || frame.kind === 'failure') resolve()
    }
    gone.mockImplementation(resolve)
    const exchange = { kind: 'request', method, params: Json.of({ name: 'x' }), caller, signal: abort, sink } as const
    client.call(target, { ...exchange, ...over }, gone)
  })
  const last = async (): Promise<PlainObject> => {
    await ended
    const frame = frames.at(-1)
    if (frame?.kind === 'result') return frame.result.toValue() as PlainObject
    return frame?.kind === 'failure' ? { code: frame.error.code, ...(frame.error.data?.toValue() as object) } : {}
  }
  return { frames, abort, gone, ended, last }
}

test('a call is a modern request with the caller, the server and the session that must be there', async () => {
  script = (_, response, { id }) => answer(response, id, { ok: true })
  expect(await call().last()).toEqual({ ok: true })
  expect(requests[0]?.url).toBe('/servers/far')
  expect(requests[0]?.headers).toMatchObject({
    ...{ 'mcp-method': 'tools/call', 'mcp-name': 'x', 'mcp-protocol-version': MODERN },
    ...{ 'x-caller': expect.stringMatching(/^far ada home \d+$/), 'x-target': 'p1 false' },
  })
  expect(client.size).toBe(0)
})

test('notices pass before the result, with the token of the client', async () => {
  script = (_, response, { id }) => {
    response.writeHead(200, { ...OWN, 'content-type': 'text/event-stream' })
    const event = (message: object): boolean => response.write(`data: ${JSON.stringify(message)}\n\n`)
    event({ jsonrpc: '2.0', method: NOTIFICATIONS.progress, params: { progressToken: id, progress: 1 } })
    event({ jsonrpc: '2.0', id, result: {} })
    response.end()
  }
  const { frames, ended } = call('tools/call', { params: Json.of({ name: 'x', _meta: { progressToken: 'mine' } }) })
  await ended
  expect(frames.map(frame => frame.kind)).toEqual(['notice', 'result'])
  expect(frames[0]?.kind === 'notice' && frames[0].params.toValue()).toEqual({ progressToken: 'mine', progress: 1 })
})

test.each([
  ['closes the response of a client that can poll', true],
  ['passes other notices', false],
])('the replica of a server that wants to be polled %s', async (_, canPoll) => {
  script = (_request, response, { id }) => {
    response.writeHead(200, { ...OWN, 'content-type': 'text/event-stream' })
    const event = (message: object): boolean => response.write(`data: ${JSON.stringify(message)}\n\n`)
    event({ jsonrpc: '2.0', method: canPoll ? 'x/close' : 'x/other', params: { ms: 70 } })
    event({ jsonrpc: '2.0', id, result: {} })
    response.end()
  }
  const closed: number[] = []
  const recorded: (string | undefined)[] = []
  const tap: MessageTap = {
    clientMessage: () => {},
    serverMessage: (_server, direction, kind, method) => void recorded.push(`${direction} ${method ?? kind}`),
    continueIn: () => {},
  }
  const { frames, ended } = call('tools/call', {
    ...(canPoll && { closeStream: retryMs => void closed.push(retryMs) }),
    record: { tap, sentTo: () => {}, denied: () => {} },
  })
  await ended
  expect(recorded).toEqual(['out tools/call', ...(canPoll ? [] : ['in x/other']), 'in result'])
  expect(requests[0]?.headers['x-target']).toBe(canPoll ? 'p1 false polls' : 'p1 false')
  expect(closed).toEqual(canPoll ? [70] : [])
  expect(frames.map(frame => frame.kind)).toEqual(canPoll ? ['result'] : ['notice', 'result'])
})

test('a replica that refuses the connection is reported, and the request goes elsewhere', async () => {
  await closeServer()
  const { gone, frames, ended } = call()
  await ended
  expect([gone.mock.calls.length, frames]).toEqual([1, []])
  expect(members.reportDead).toHaveBeenCalledWith('home')
})

test('a refused call goes elsewhere although the lease of its replica ends while it is reported, and so do calls beside it', async () => {
  await closeServer()
  members.reportDead.mockImplementation(async replica => left(replica)) // as every store does: before it resolves
  const calls = [call(), call(), call()]
  await Promise.all(calls.map(({ ended }) => ended))
  expect(calls.map(({ gone, frames }) => [gone.mock.calls.length, frames])).toEqual(calls.map(() => [1, []]))
  expect(client.size).toBe(0)
})

test('a refused call goes elsewhere although the store takes longer to end the lease than the others notice it', async () => {
  await closeServer()
  members.reportDead.mockImplementation(replica => {
    left(replica)
    return new Promise(() => {})
  })
  const { gone, frames, ended } = call()
  await ended
  expect([gone.mock.calls.length, frames]).toEqual([1, []])
})

test('a request that another replica at the address has rejected goes elsewhere', async () => {
  members.reportDead.mockImplementation(async replica => left(replica))
  script = (_, response) => void response.writeHead(421).end()
  const { gone, frames, ended } = call()
  await ended
  expect([gone.mock.calls.length, frames]).toEqual([1, []])
})

test('an answer that arrives just after the lease of its replica has ended is delivered', async () => {
  script = (_, response, { id }) => {
    left('home')
    answer(response, id, { ok: true })
  }
  expect(await call().last()).toEqual({ ok: true })
})

test('a replica that is no member is not called at all', async () => {
  members.at.mockReturnValue(undefined)
  const { gone, ended } = call()
  await ended
  expect([gone.mock.calls.length, requests.length]).toEqual([1, 0])
})

test('at an address of another replica, the one that was meant is reported', async () => {
  script = (_, response) => void response.writeHead(421).end()
  const { gone, ended } = call()
  await ended
  expect([gone.mock.calls.length, members.reportDead.mock.calls.length]).toEqual([1, 1])
})

test('a replica that does not hold the session any more is alive', async () => {
  script = (_, response) => void response.writeHead(421, OWN).end()
  const { gone, ended } = call()
  await ended
  expect([gone.mock.calls.length, members.reportDead.mock.calls.length]).toEqual([1, 0])
})

test('a replica with another clock is called once more, with its own time', async () => {
  const ahead = Date.now() + 3_600_000
  script = (request, response, { id }) => {
    if (Number(String(request.headers['x-caller']).split(' ')[3]) > ahead - 1000) return answer(response, id, {})
    response.writeHead(403, { 'x-clock': String(ahead) }).end()
  }
  expect(await call().last()).toEqual({})
  expect(requests).toHaveLength(2)
  await call().last()
  expect(requests).toHaveLength(3)
})

test.each([
  ['a replica that rejects the caller', 403],
  ['another program at the address', 404],
  ['another program that answers anything', 200],
])('%s is neither used nor reported', async (_, status) => {
  script = (__, response, { id }) =>
    void response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result: { forged: true } }))
  const ended = await call().last()
  expect(ended).not.toHaveProperty('forged')
  expect(ended.code).toBe(-32603)
  expect(members.reportDead).not.toHaveBeenCalled()
})

test('a call whose replica breaks off may have run, and is not repeated', async () => {
  script = (_, response) => {
    response.writeHead(200, { ...OWN, 'content-type': 'text/event-stream' })
    response.write(': begun\n\n')
    setTimeout(() => response.destroy(), 10)
  }
  expect(await call().last()).toMatchObject({ code: -32603, reason: 'replica_lost', upstream: 'far' })
  expect(requests).toHaveLength(1)
})

test('what only reads may be sent elsewhere when its replica breaks off', async () => {
  script = (_, response) => void response.destroy()
  const { gone, frames, ended } = call('tools/list')
  await ended
  expect([gone.mock.calls.length, frames]).toEqual([1, []])
})

test('when the lease of a replica ends, what hangs there ends', async () => {
  script = () => {}
  const [hanging, reading] = [call(), call('resources/read', { params: Json.of({ uri: 'a:b' }) })]
  await vi.waitFor(() => expect(requests).toHaveLength(2))
  left('another')
  expect(client.size).toBe(2)
  left('home')
  expect(await hanging.last()).toMatchObject({ reason: 'replica_lost' })
  await reading.ended
  expect(reading.gone).toHaveBeenCalledTimes(1)
  expect(client.size).toBe(0)
})

test('a cancelled call is closed there, and gets nothing more', async () => {
  const closed = vi.fn()
  script = (_, response) => void response.on('close', closed)
  const { abort, frames } = call()
  await vi.waitFor(() => expect(requests).toHaveLength(1))
  abort.abort({ kind: 'cancelled', text: 'enough' })
  await vi.waitFor(() => expect(closed).toHaveBeenCalled())
  expect([frames, client.size]).toEqual([[], 0])
})

test('an error of the server passes unchanged, whatever it claims', async () => {
  script = (_, response, { id }) => {
    const error = { code: -32001, message: 'mine', data: { reason: 'replica_lost' } }
    response.writeHead(200, OWN).end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  }
  const { gone, last } = call()
  expect(await last()).toEqual({ code: -32001, reason: 'replica_lost' })
  expect(gone).not.toHaveBeenCalled()
})
