import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { GatewayStatus } from '../../../src/protocol/status.ts'
import { openState } from '../../../src/stores/state/open-state.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { openSession, send } from '../../support/raw.ts'
import { startReplicas } from '../../support/replicas.ts'

const start = async () => {
  const cluster = await startReplicas({ size: 3, labels: at => (at === 2 ? ['gpu'] : []) })
  onTestFinished(cluster.close)
  await Promise.all(cluster.replicas.map(({ gateway }) => gateway.ready))
  const [first, second] = cluster.replicas as [(typeof cluster.replicas)[0], (typeof cluster.replicas)[0]]
  const read = async (path: string, origin = first.gateway.origin): Promise<string> =>
    (await fetch(origin + path)).text()
  return { ...cluster, first, second, read }
}

test('/readyz and the status show the store and all replicas', async () => {
  const { replicas, first, read } = await start()
  await expect.poll(() => first.store.members.all().every(({ address }) => address !== '')).toBe(true)
  const names = replicas.map(({ store }) => store.members.self).sort()
  const ready = JSON.parse(await read('/readyz'))
  expect(ready).toMatchObject({ status: 'ready', store: { engine: 'memory', state: 'ok', claims: 0 }, forwards: 0 })
  expect(ready.replicas.map(({ name }: { name: string }) => name).sort()).toEqual(names)
  const headers = { authorization: `Bearer ${first.gateway.localSecret}` }
  const status = (await (await fetch(`${first.gateway.origin}/admin/status`, { headers })).json()) as GatewayStatus
  expect(status.state?.replicas.filter(({ isSelf }) => isSelf)).toEqual([
    { name: first.store.members.self, address: expect.stringMatching(/^http/), labels: [], isSelf: true },
  ])
  expect(status.state?.replicas.flatMap(({ labels }) => labels)).toEqual(['gpu'])
})

test('/metrics counts claims, replicas and the requests that others serve', async () => {
  const { first, second, read } = await start()
  const session = await openSession(first.url)
  expect(await read('/metrics')).toMatch(/^dragoman_store_claims [1-9]/m)
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const headers = { ...session.headers, accept: 'text/event-stream' }
  await fetch(second.url, { headers, signal: abort.signal })
  const lines = (await read('/metrics', second.gateway.origin)).split('\n')
  expect(lines).toEqual(
    expect.arrayContaining([
      'dragoman_store_state{engine="memory",state="ok"} 1',
      'dragoman_store_state{engine="memory",state="away"} 0',
      'dragoman_replicas 3',
      'dragoman_forwards_in_flight 1',
      'dragoman_forwards_total{outcome="forwarded"} 1',
      'dragoman_forwards_total{outcome="lost"} 0',
      expect.stringMatching(/^dragoman_store_journal_bytes \d+$/),
    ]),
  )
})

test('/readyz says that a damaged file is not used, and sessions are served from memory', async () => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-damaged-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  await writeFile(join(data, 'state.db'), 'no database')
  const state = await openState({ kind: 'sqlite', data }, SILENT)
  const gateway = await startTestGateway(undefined, state)
  onTestFinished(() => gateway.close().then(() => state.store.close()))
  const ready = await fetch(new URL('/readyz', gateway.url))
  expect([ready.status, await ready.json()]).toMatchObject([
    200,
    {
      status: 'ready',
      store: { engine: 'sqlite', state: 'memory-only', reason: expect.stringMatching(/not changed/) },
    },
  ])
  const { headers } = await openSession(gateway.url)
  const reply = await send(gateway.url, { headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} } })
  expect(reply.json.result).toBeDefined()
})
