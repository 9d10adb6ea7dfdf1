import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createLocalWake, createSqlCluster } from '../../../test/support/sql-cluster.ts'
import { openSqlite } from '../../stores/sqlite.ts'
import { prepareSqlite } from '../../stores/state/prepare-state.ts'
import { SILENT } from '../../telemetry/log.ts'
import { createGrantId } from './grant-tokens.ts'
import { Grants } from './grants.ts'
import { RegisteredClients } from './registered-clients.ts'

const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
const PROOF = { client: 'c', redirectUri: undefined, verifier: VERIFIER, workspace: undefined }
const WISH = { client: 'c', scopes: undefined, baseScopes: ['mcp'], workspace: undefined }

/** Replicas on one database. */
const openReplicas = async (count: number) => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-grants-'))
  const cluster = await createSqlCluster({
    open: () => openSqlite(join(folder, 'state.db')),
    prepare: prepareSqlite,
    wake: createLocalWake(),
  })
  const stores = await Promise.all(Array.from({ length: count }, () => cluster.join()))
  const replicas = stores.map(store => ({
    clients: new RegisteredClients(store),
    grants: new Grants({
      store,
      accessOf: async () => ({ principal: 'ada', name: 'Ada', workspaces: ['*'] }),
      sessions: { renew: async () => 'valid' },
      record: () => {},
      log: SILENT,
    }),
  }))
  onTestFinished(async () => {
    for (const { grants } of replicas) grants.close()
    await cluster.close()
    await rm(folder, { recursive: true, force: true })
  })
  return replicas
}

const started = (grants: Grants): Promise<string> =>
  grants.create(createGrantId(), {
    client: 'c',
    redirectUri: 'https://app.example/cb',
    subject: { kind: 'token', id: 't1' },
    principal: 'ada',
    scopes: [],
    challenge: CHALLENGE,
  })

it('replicas on a database give one successor, however many of them refresh at once', async () => {
  const replicas = (await openReplicas(3)).map(({ grants }) => grants)
  const [first] = replicas as [Grants]
  const { refresh = '' } = await first.redeem(await started(first), PROOF)
  const all = await Promise.all(
    Array.from({ length: 24 }, (_, at) => (replicas[at % 3] as Grants).refresh(refresh, WISH)),
  )
  expect(new Set(all.map(each => each.refresh)).size).toBe(1)
  const newest = await Promise.all(all.map(each => first.findGrant(each.access)))
  expect(newest.filter(Boolean)).toHaveLength(10)
})

it('replicas on a database add grants and clients at once, and lose none', async () => {
  const replicas = await openReplicas(3)
  const turn = <T>(at: number, items: readonly T[]): T => items[at % items.length] as T
  await Promise.all(
    Array.from({ length: 12 }, async (_, at) => {
      const { grants } = turn(at, replicas)
      await grants.redeem(await started(grants), PROOF)
    }),
  )
  expect(await turn(0, replicas).grants.list('ada')).toHaveLength(12)
  const ids = await Promise.all(
    Array.from({ length: 12 }, async (_, at) => {
      const { clients } = turn(at, replicas)
      return (await clients.register({ name: `${at}`, redirectUris: ['https://app.example/cb'] })).id
    }),
  )
  const found = await Promise.all(ids.map((id, at) => turn(at + 1, replicas).clients.find(id)))
  expect(found.filter(Boolean)).toHaveLength(12)
})
