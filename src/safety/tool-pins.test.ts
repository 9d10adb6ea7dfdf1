import { expect, test } from 'vitest'
import { callerOf } from '../../test/support/workspace.ts'
import type { Caller, Exchange, Peer, Upstream } from '../protocol/exchange.ts'
import { MODERN } from '../protocol/revisions.ts'
import { sendRequest } from '../protocol/send-request.ts'
import { MemoryCluster } from '../stores/state/memory-state.ts'
import { SILENT } from '../telemetry/log.ts'
import { Json } from '../wire/json/json.ts'
import { pinUpstream } from './pinned-upstream.ts'
import { ToolPins } from './tool-pins.ts'

type Lists = Record<string, readonly string[]>

/** A server that lists other tools to each principal, and counts its lists. */
const perPrincipal = (first: Lists) => {
  const state = { lists: first, listed: 0 }
  const dispatch = ({ method, caller, params, sink }: Exchange): void => {
    if (method === 'tools/list') state.listed++
    const tools = (state.lists[caller.principal ?? ''] ?? []).map(name => ({ name, inputSchema: { type: 'object' } }))
    const result = method === 'tools/list' ? { tools } : { called: params.get('name') ?? '' }
    void sink({ kind: 'result', result: Json.of(result) })
  }
  const peer: Peer = { revision: MODERN, asks: false, dispatch }
  const upstream: Upstream = { open: async () => peer, close: async () => {} }
  return { state, upstream }
}

const setup = (first: Lists, ownerOf: (caller: Caller) => string | undefined = ({ principal }) => principal ?? '') => {
  const audited: (readonly [string, object])[] = []
  const store = new MemoryCluster().join()
  const pins = new ToolPins({ store, writeAudit: (event, fields) => audited.push([event, fields]), log: SILENT })
  const { state, upstream } = perPrincipal(first)
  const pinned = pinUpstream(upstream, { pins: pins.of('s'), ownerOf })
  const as = (principal: string): Caller => callerOf({ revision: MODERN, principal })
  const list = async (principal: string): Promise<string[]> => {
    const { dispatch } = await pinned.open(as(principal))
    const page = await sendRequest(dispatch, as(principal), 'tools/list')
    return (page.get('tools')?.elements() ?? []).map(tool => tool.get('name')?.asString() ?? '')
  }
  const call = async (principal: string, name: string): Promise<Json> => {
    const { dispatch } = await pinned.open(as(principal))
    return sendRequest(dispatch, as(principal), 'tools/call', Json.of({ name }))
  }
  return { pins, state, list, call, audited, store }
}

test('each principal has pins of its own where the list is its own; an approval counts for all', async () => {
  const { pins, state, list, call, audited } = setup({ ann: ['read'], bob: ['read', 'write'] })
  expect(await list('ann')).toEqual(['read'])
  expect(await list('bob')).toEqual(['read', 'write'])
  state.lists = { ann: ['read', 'write'], bob: ['read', 'write'], eve: ['read', 'write', 'spy'] }
  expect(await list('ann')).toEqual(['read'])
  await expect(call('ann', 'write')).rejects.toThrow('in quarantine')
  expect(await list('bob')).toEqual(['read', 'write'])
  expect(await list('eve')).toEqual(['read', 'write', 'spy']) // her first list
  const found = await pins.quarantined()
  expect(found.map(({ name, principals, isNew }) => [name, principals, isNew])).toEqual([['write', ['ann'], true]])
  expect(await pins.approve(found)).toEqual([])
  expect(await list('ann')).toEqual(['read', 'write'])
  expect(audited.map(([event]) => event)).toEqual(['tool_quarantined', 'tool_approved'])
  expect(audited[0]?.[1]).toMatchObject({ server: 's', tool: 'write', change: 'new', principal: 'ann' })
})

test('a server that begins to give each principal its own list gets no second first list', async () => {
  let isPersonal = false
  const ownerOf = ({ principal }: Caller): string | undefined => (isPersonal ? principal : undefined)
  const { state, list } = setup({ ann: ['read'], bob: ['read'] }, ownerOf)
  expect(await list('ann')).toEqual(['read'])
  isPersonal = true
  state.lists = { ann: ['read', 'spy'], bob: ['read', 'spy'] }
  expect(await list('ann')).toEqual(['read'])
  expect(await list('bob')).toEqual(['read'])
})

test('a first list without tools pins nothing', async () => {
  const { state, list, pins } = setup({ ann: [] }, () => undefined)
  expect(await list('ann')).toEqual([])
  state.lists = { ann: ['read'] }
  expect(await list('ann')).toEqual(['read'])
  state.lists = { ann: ['read', 'more'] }
  expect(await list('ann')).toEqual(['read'])
  expect(pins.statusOf('s')).toEqual({ pinned: 1, quarantined: 1 })
})

test('a call reads the list once, and not again while it is fresh', async () => {
  const { state, call, list } = setup({ ann: ['read'] }, () => undefined)
  await Promise.all(['ann', 'ann', 'ann'].map(principal => call(principal, 'read')))
  expect(state.listed).toBe(1)
  await call('ann', 'read')
  expect(state.listed).toBe(1)
  await expect(call('ann', 'unlisted')).rejects.toThrow('not among the tools that were approved')
  await list('ann')
  expect(state.listed).toBe(2)
})

test('pins that were read stay in force while the store is away', async () => {
  const { state, list, call, store } = setup({ ann: ['read'] }, () => undefined)
  expect(await list('ann')).toEqual(['read'])
  store.shared.document = () => Promise.reject(new Error('the store is away'))
  state.lists = { ann: ['read', 'spy'] }
  expect(await list('ann')).toEqual(['read'])
  await expect(call('ann', 'spy')).rejects.toThrow('in quarantine')
  expect((await call('ann', 'read')).toString()).toContain('read')
})
