import { afterEach, describe, expect, it } from 'vitest'
import { channelServer, connectTo } from '../../test/support/channel-server.ts'
import { callTool, closeAll, connectSmall, eventually } from '../../test/support/processes.ts'
import {
  callerOf,
  exchangeWith,
  legacy,
  modern,
  notice,
  openStream,
  result,
  type Script,
  scriptedServer,
  sendJson,
  tokenOf,
} from '../../test/support/scripted-server.ts'
import type { Frame, Peer } from '../protocol/exchange.ts'
import { SILENT } from '../telemetry/log.ts'
import { connectRemote } from './connect-remote.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await closeAll()
})

/** Tells of progress, then answers; but everything else at once. */
const telling: Script = (arrived, response) => {
  const { id, method } = arrived.body
  if (id === undefined) return void response.writeHead(202).end()
  if (method !== 'tools/call') return sendJson(response, result(id, { ok: true }))
  const stream = openStream(response)
  stream.event(notice('notifications/progress', { progressToken: tokenOf(arrived), progress: 1 }))
  stream.event(result(id, { ok: true }))
  stream.end()
}

const connect = async (script: Script): Promise<Peer> => {
  const server = await scriptedServer(script)
  const remote = { kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'auto', timeoutMs: 2000 } as const
  const upstream = connectRemote({ name: 'far', ...remote }, { log: SILENT })
  closing.push(
    () => server.close(),
    () => upstream.close(),
  )
  return upstream.open(callerOf({ revision: '2025-11-25' }))
}

const KINDS: readonly (readonly [string, () => Promise<Peer>])[] = [
  ['a stateless server', () => connect(modern(telling))],
  ['a server with sessions', () => connect(legacy(telling))],
  [
    'a server on a channel',
    async () => {
      const server = await channelServer((arrived, channel, response) => {
        const { id, method } = arrived.body
        response.writeHead(202).end()
        if (method === 'tools/call')
          channel.event(notice('notifications/progress', { progressToken: tokenOf(arrived), progress: 1 }))
        if (id !== undefined) channel.event(result(id, { ok: true }))
      })
      return connectTo(server, closing).open(callerOf({ revision: '2025-11-25' }))
    },
  ],
  ['a modern process', () => connectSmall({ era: 'modern' }).open()],
  ['a legacy process', () => connectSmall({ era: 'legacy' }).open()],
]

const throwsOn = (kind: Frame['kind']) => (frame: Frame) => {
  if (frame.kind === kind) throw new TypeError('a bug')
}
const rejectsOn = (kind: Frame['kind']) => (frame: Frame) =>
  frame.kind === kind ? Promise.reject(new TypeError('a bug')) : undefined

const isFinal = ({ kind }: Frame): boolean => kind === 'result' || kind === 'failure'

describe.each(KINDS)('a call to %s whose sink', (_, open) => {
  it.each([
    ['throws on a notice', 'notice', throwsOn],
    ['rejects on a notice', 'notice', rejectsOn],
    ['throws on the result', 'result', throwsOn],
    ['rejects on the result', 'result', rejectsOn],
  ] as const)('%s has one end, and the next call is answered', async (_, kind, refuse) => {
    const peer = await open()
    const params = { name: 'many', arguments: { count: 1 }, _meta: { progressToken: 1 } }
    const call = exchangeWith(peer, 'tools/call', { params, onFrame: refuse(kind) })
    const taken = () => call.frames.filter(frame => frame.kind !== kind && isFinal(frame))
    await eventually(() => taken().length).toBe(1)
    // A result that came before the rejection was known is as good as a failure.
    if (refuse === throwsOn || kind === 'result')
      expect(taken()).toMatchObject([{ kind: 'failure', error: { code: -32603, cause: new TypeError('a bug') } }])
    expect(await exchangeWith(peer, 'tools/list').result()).toBeDefined()
    expect(taken()).toHaveLength(1)
  })
})

it('a listener whose sink throws gets no more notifications, and the others still do', async () => {
  const peer = await connectSmall({ era: 'legacy' }).open(callerOf({ revision: '2025-11-25', session: 's' }))
  const other = exchangeWith(peer, 'subscriptions/listen')
  const broken = exchangeWith(peer, 'subscriptions/listen', { onFrame: throwsOn('notice') })
  expect(await broken.failure()).toMatchObject({ data: { reason: 'gateway_error' } })
  await other.notice('notifications/subscriptions/acknowledged')
  expect(await callTool(peer, 'echo', { text: 'x' })).toBe('x')
  expect(broken.frames).toHaveLength(2)
})

it('a session of one client ends when the sink of its only listener throws', async () => {
  const { open, upstream } = connectSmall({ era: 'legacy' }, { server: { share: 'session' } })
  const peer = await open(callerOf({ revision: '2025-11-25', session: 's' }))
  expect(upstream.status().processes).toHaveLength(1)
  await exchangeWith(peer, 'subscriptions/listen', { onFrame: throwsOn('notice') }).failure()
  await eventually(() => upstream.status().processes.length).toBe(0)
})
