import { afterEach, describe, expect, it } from 'vitest'
import { callTool, closeAll, connectSmall, eventually } from '../../../test/support/processes.ts'
import { callerOf, exchangeWith } from '../../../test/support/scripted-server.ts'
import { Abort } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

afterEach(closeAll)

const healthCheck = callerOf({ principal: undefined, workspace: '', isHealthCheck: true })
const client = callerOf({ session: 'a', revision: '2025-11-25' })

type Small = ReturnType<typeof connectSmall>

/** What a health check does when the gateway starts. */
const probe = async ({ open }: Small): Promise<void> => {
  const peer = await open(healthCheck)
  await exchangeWith(peer, 'tools/list', { caller: healthCheck }).result()
  await new Promise(resolve => setTimeout(resolve, 10)) // the session ends
}

describe.each(['legacy', 'modern'])('the process that a health check started (%s)', era => {
  it('serves the first client', async () => {
    const small = connectSmall({ era })
    await probe(small)
    const [pid] = small.living()
    expect(await callTool(await small.open(client), 'pid', {}, client)).toBe(String(pid))
    expect(small.upstream.status().processes).toHaveLength(1)
  })

  it('ends if no client needs it', async () => {
    const small = connectSmall({ era }, { limits: { idleMs: 100 } })
    await probe(small)
    expect(small.upstream.status().processes).toHaveLength(1)
    await eventually(small.living).toEqual([])
    expect(await callTool(await small.open(client), 'echo', { text: 'hello' }, client)).toBe('hello')
  })
})

describe('a modern server whose process has ended', () => {
  const LISTS = { notifications: { toolsListChanged: true } }

  it('is not started by clients that listen for changed lists; a call starts it, and they listen there', async () => {
    const small = connectSmall({ era: 'modern' }, { limits: { idleMs: 100 } })
    const discovered = await small.open(healthCheck)
    await exchangeWith(discovered, 'server/discover', { caller: healthCheck }).result()
    await eventually(small.living).toEqual([])
    const [ann, bob] = [callerOf({ principal: 'ann' }), callerOf({ principal: 'bob' })]
    const listen = async (caller: Caller) => {
      const listening = exchangeWith(await small.open(caller), 'subscriptions/listen', { params: LISTS, caller })
      await listening.notice('notifications/subscriptions/acknowledged')
      return listening
    }
    const [, ofBob] = [await listen(ann), await listen(bob)]
    expect(small.upstream.status().processes).toEqual([])
    await callTool(await small.open(bob), 'change', {}, bob)
    await ofBob.notice('notifications/tools/list_changed')
    expect(small.upstream.status().processes).toHaveLength(1)
  })
})

describe('the process that a health check started', () => {
  it('ends when a client with other capabilities starts one', async () => {
    const small = connectSmall()
    await probe(small)
    const [pid] = small.living()
    const caller = { ...client, capabilities: Json.of({ sampling: {} }) }
    const own = await callTool(await small.open(caller), 'pid', {}, caller)
    expect(own).not.toBe(String(pid))
    await eventually(small.living).toEqual([Number(own)])
  })

  it('serves one client only', async () => {
    const small = connectSmall()
    await probe(small)
    const callers = ['ann', 'bob'].map(principal => callerOf({ principal, session: principal }))
    const pids = await Promise.all(callers.map(async caller => callTool(await small.open(caller), 'pid', {}, caller)))
    expect(new Set(pids).size).toBe(2)
  })

  it('makes room where the limit of processes is reached', async () => {
    const small = connectSmall({}, { limits: { processes: 1 } })
    await probe(small)
    const caller = { ...client, capabilities: Json.of({ sampling: {} }) }
    expect(await callTool(await small.open(caller), 'echo', { text: 'hello' }, caller)).toBe('hello')
  })

  it('that has crashed meanwhile is replaced', async () => {
    const small = connectSmall()
    await probe(small)
    process.kill(small.living()[0] ?? 0, 'SIGKILL')
    await eventually(() => small.upstream.status().processes).toEqual([])
    expect(await callTool(await small.open(client), 'echo', { text: 'hello' }, client)).toBe('hello')
  })
})

it('a process whose client has left without ending its session ends, and comes back with the client', async () => {
  const small = connectSmall({}, { limits: { idleMs: 100 } })
  const peer = await small.open(client)
  let hasClient = true
  const sink = () => {}
  const listen = {
    kind: 'request',
    method: 'subscriptions/listen',
    params: Json.empty,
    signal: new Abort(),
    sink,
  } as const
  peer.dispatch({ ...listen, caller: client, hasClient: () => hasClient })
  await exchangeWith(peer, 'resources/subscribe', { caller: client, params: { uri: 'test://x' } }).result()
  await new Promise(resolve => setTimeout(resolve, 300))
  expect(small.living()).toHaveLength(1)
  hasClient = false
  await eventually(small.living).toEqual([])
  hasClient = true
  await eventually(() => small.upstream.status().processes[0]?.stderr).toBe('watches test://x')
})
