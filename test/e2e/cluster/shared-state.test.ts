import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { changeSharedTokens } from '../../../src/auth/shared-tokens.ts'
import { createSecret, hashSecret, type Token } from '../../../src/auth/token.ts'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { META } from '../../../src/protocol/meta.ts'
import { MODERN } from '../../../src/protocol/revisions.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
const open = async (options: Omit<Parameters<typeof startReplicas>[0], 'size'> = {}) => {
  const cluster = await startReplicas({ size: 3, ...options })
  closing.push(cluster.close)
  return cluster
}
const tokenOf = (secret: string): Token => ({
  ...{ id: 'one', name: 'test', hash: hashSecret(secret), principal: 'ada', workspaces: ['*'] },
  created: new Date().toISOString(),
})

const request = (url: string, method: string, params: object, secret?: string): Promise<Response> => {
  const _meta = { [META.protocolVersion]: MODERN, [META.clientCapabilities]: {} }
  return fetch(url, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ 'mcp-protocol-version': MODERN, 'mcp-method': method },
      ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  })
}
const statuses = (replicas: readonly TestReplica[], secret?: string): Promise<number[]> =>
  Promise.all(replicas.map(async ({ url }) => (await request(url, 'tools/list', {}, secret)).status))

test('a token is valid at every replica, and its revocation cuts what it has opened everywhere', async () => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-cluster-'))
  closing.push(() => rm(data, { recursive: true }))
  const { replicas } = await open({ data })
  expect(await statuses(replicas)).toEqual([200, 200, 200])
  const secret = createSecret()
  const [first] = replicas
  if (!first) throw new Error('three replicas')
  await changeSharedTokens(first.store.shared, tokens => [...tokens, tokenOf(secret)])
  await vi.waitFor(async () => expect(await statuses(replicas)).toEqual([401, 401, 401]))
  expect(await statuses(replicas, secret)).toEqual([200, 200, 200])
  const notifications = { toolsListChanged: true }
  const streams = await Promise.all(
    replicas.map(({ url }) => request(url, 'subscriptions/listen', { notifications }, secret)),
  )
  const ends = streams.map(async ({ body }) => {
    const reader = body?.getReader()
    while (!(await reader?.read())?.done);
  })
  await changeSharedTokens(first.store.shared, () => [])
  expect((await Promise.allSettled(ends)).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(await statuses(replicas, secret)).toEqual([401, 401, 401])
})

test('replicas admit together what one may admit, within a tenth for each further one', async () => {
  const { replicas } = await open({ limits: { rate: { perPrincipal: { perSecond: 30, burst: 0 } } } })
  await new Promise(resolve => setTimeout(resolve, 1000 - (Date.now() % 1000)))
  const begun = Date.now()
  const sent = Array.from({ length: 40 }, () => statuses(replicas))
  const all = (await Promise.all(sent)).flat()
  const seconds = Math.ceil((Date.now() - begun + 1) / 1000)
  const admitted = all.filter(status => status === 200).length
  expect(new Set(all)).toEqual(new Set([200, 429]))
  expect(admitted).toBeGreaterThanOrEqual(30)
  expect(admitted).toBeLessThanOrEqual(seconds * (30 + 2 * 3))
})

test('calls of modern clients to modern servers ask the store nothing', async () => {
  const { replicas } = await open()
  await statuses(replicas)
  const asked = replicas.flatMap(({ store }) => [
    ...(['create', 'read', 'take', 'write', 'remove'] as const).map(method => vi.spyOn(store, method)),
    ...(['count', 'document'] as const).map(method => vi.spyOn(store.shared, method)),
  ])
  for (let i = 0; i < 10; i++) expect(await statuses(replicas)).toEqual([200, 200, 200])
  expect(asked.map(({ mock }) => mock.calls.length).filter(count => count > 0)).toEqual([])
})

test('readiness names the replicas whose configuration differs, and a reload reaches the others once', async () => {
  const reloads: number[] = []
  const entry = (at: number): ServerConfig => ({
    ...{ name: 'demo', disabled: false, kind: 'builtin', builtin: 'demo' },
    ...(at === 2 && { concurrency: 3 }),
  })
  const { replicas } = await open({ entry, onReload: at => void reloads.push(at) })
  const differing = (): Promise<unknown[]> =>
    Promise.all(
      replicas.map(async ({ gateway }) => {
        const { replicasWithOtherConfiguration } = (await (await fetch(`${gateway.origin}/readyz`)).json()) as {
          replicasWithOtherConfiguration?: string[]
        }
        const at = (name: string): number => replicas.findIndex(({ store }) => store.members.self === name)
        return replicasWithOtherConfiguration?.map(at).sort()
      }),
    )
  await vi.waitFor(async () => expect(await differing()).toEqual([[2], [2], [0, 1]]))
  replicas[1]?.gateway.announceReload()
  await vi.waitFor(() => expect(reloads.sort()).toEqual([0, 2]))
})
