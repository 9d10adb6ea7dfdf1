import { afterEach, describe, expect, it } from 'vitest'
import { callTool, closeAll, connectSmall, eventually } from '../../../test/support/processes.ts'
import { callerOf, exchangeWith } from '../../../test/support/scripted-server.ts'
import { Json } from '../../wire/json/json.ts'

afterEach(closeAll)

const capabilities = Json.of({ elicitation: {} })
const modernCaller = callerOf({ capabilities })
const legacyCaller = (session = 'client-1') => callerOf({ revision: '2025-06-18', session, capabilities })
const healthCheck = callerOf({ principal: undefined, workspace: '', isHealthCheck: true })

describe('a stdio server of both eras', () => {
  it('has one process for the modern callers of a user, and one for the legacy ones', async () => {
    const { open, upstream } = connectSmall({ era: 'dual' })
    await open(healthCheck)
    const callers = [modernCaller, legacyCaller(), modernCaller, legacyCaller('client-2'), legacyCaller()]
    const peers = await Promise.all(callers.map(open))
    const [modern, legacy] = ['2026-07-28', '2025-11-25']
    expect(peers.map(({ revision }) => revision)).toEqual([modern, legacy, modern, legacy, legacy])
    const pids: string[] = []
    for (const [at, peer] of peers.entries()) pids.push(await callTool(peer, 'pid', {}, callers[at]))
    expect(new Set(pids).size).toBe(2)
    expect(pids[0]).toBe(pids[2])
    expect(upstream.status()).toMatchObject({ crashes: 0, processes: { length: 2 } })
  })

  it('asks a legacy caller and logs for it, as it does directly', async () => {
    const { open } = connectSmall({ era: 'dual' })
    const peer = await open(legacyCaller())
    const asking = exchangeWith(peer, 'tools/call', { params: { name: 'ask' }, caller: legacyCaller() })
    const question = await asking.question()
    question.answer({ kind: 'result', result: Json.of({ action: 'accept', content: {} }) })
    expect(JSON.stringify(await asking.result())).toContain('accept')
    const logging = exchangeWith(peer, 'tools/call', { params: { name: 'logs', arguments: { count: 1 } } })
    await logging.notice('notifications/message')
  })

  it('is tried once by all legacy callers if it is modern only, and that is no crash', async () => {
    const { open, upstream } = connectSmall({ era: 'modern' })
    const peers = await Promise.all(['a', 'b', 'c'].map(session => open(legacyCaller(session))))
    expect(peers.map(({ revision }) => revision)).toEqual(['2026-07-28', '2026-07-28', '2026-07-28'])
    for (const peer of peers) expect(await callTool(peer, 'echo', { text: 'hello' })).toBe('hello')
    expect((await open(legacyCaller('d'))).revision).toBe('2026-07-28')
    await eventually(() => upstream.status().processes.length).toBe(1)
    expect(upstream.status().crashes).toBe(0)
  })

  it('serves a legacy caller by its modern process if the limit allows no process for a trial', async () => {
    const { open } = connectSmall({ era: 'modern' }, { limits: { processes: 1 } })
    const peer = await open(modernCaller)
    const busy = exchangeWith(peer, 'tools/call', { params: { name: 'wait' }, caller: modernCaller })
    expect((await open(legacyCaller())).revision).toBe('2026-07-28')
    expect(await callTool(await open(legacyCaller()), 'echo', { text: 'hello' })).toBe('hello')
    busy.abort.abort({ kind: 'cancelled' })
  })

  it.each(['modern', 'legacy'] as const)('is used by all callers in its configured era: %s', async era => {
    const { open } = connectSmall({ era: 'dual' }, { server: { era } })
    const revision = era === 'modern' ? '2026-07-28' : '2025-11-25'
    for (const caller of [legacyCaller(), modernCaller]) expect((await open(caller)).revision).toBe(revision)
  })
})

describe('what one principal leaves in a process', () => {
  const [ann, bob] = ['ann', 'bob'].map(principal => callerOf({ principal, capabilities }))
  const asLegacy = { revision: '2025-06-18' } as const

  it.each(['legacy', 'dual', 'modern'])('another principal does not find: %s', async era => {
    const { open } = connectSmall({ era })
    for (const more of [{}, asLegacy]) {
      const [owner, other] = [ann, bob].map(caller => ({ ...callerOf(), ...caller, ...more }))
      await callTool(await open(owner), 'keep', { text: 'a secret' }, owner)
      expect(await callTool(await open(other), 'kept', {}, other)).toBe('nothing')
      expect(await callTool(await open(owner), 'kept', {}, owner)).toBe('a secret')
    }
  })

  it.each(['legacy', 'dual', 'modern'])('an anonymous caller does not find, and leaves nothing: %s', async era => {
    const { open, upstream } = connectSmall({ era })
    const anonymous = callerOf({ principal: undefined })
    await callTool(await open(ann), 'keep', { text: 'a secret' })
    for (const _ of [1, 2]) {
      expect(await callTool(await open(anonymous), 'kept')).toBe('nothing')
      await callTool(await open(anonymous), 'keep', { text: 'litter' })
    }
    await eventually(() => upstream.status().processes.length).toBe(1)
  })

  it.each(['legacy', 'dual', 'modern'])('everyone finds if the configuration shares the process: %s', async era => {
    const { open, upstream } = connectSmall({ era }, { server: { share: 'everyone' } })
    await callTool(await open(ann), 'keep', { text: 'for all' })
    for (const caller of [bob, callerOf({ principal: undefined, capabilities })])
      expect(await callTool(await open({ ...callerOf(), ...caller }), 'kept')).toBe('for all')
    expect(upstream.status().processes).toHaveLength(1)
  })

  it('the first caller gets the process that a health check has started', async () => {
    const { open, upstream } = connectSmall({ era: 'modern' })
    await exchangeWith(await open(healthCheck), 'tools/list').result()
    const [pid] = upstream.status().processes.map(process => process.pid)
    expect(await callTool(await open(ann), 'pid')).toBe(String(pid))
    expect(await callTool(await open(bob), 'pid')).not.toBe(String(pid))
    await open(healthCheck)
    expect(upstream.status().processes).toHaveLength(2)
  })
})
