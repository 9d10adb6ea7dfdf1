import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { startFakeIssuer, startProtectedServer } from '../../../test/support/fake-oauth.ts'
import { GATEWAY, remoteServer, startLoginClient } from '../../../test/support/login-client.ts'
import { createLocalWake, createSqlCluster } from '../../../test/support/sql-cluster.ts'
import { openSqlite } from '../../stores/sqlite.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { prepareSqlite } from '../../stores/state/prepare-state.ts'
import { stateTables } from '../../stores/state/state-schema.ts'
import { type RecordKind, StateError } from '../../stores/state/state-store.ts'
import { type Log, SILENT } from '../../telemetry/log.ts'
import type { AccessOf } from '../server/access.ts'
import { createGrantId } from '../server/grant-tokens.ts'
import { Grants } from '../server/grants.ts'
import { OAuthRejection } from '../server/oauth-rejection.ts'
import { RegisteredClients } from '../server/registered-clients.ts'

const start = async (options: Parameters<typeof startLoginClient>[1] = {}) => {
  const issuer = await startFakeIssuer()
  const server = await startProtectedServer(issuer)
  return { issuer, server, ...startLoginClient(remoteServer(server.url), options) }
}

const openDatabase = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-safety-'))
  const open = () => openSqlite(join(folder, 'state.db'))
  const cluster = await createSqlCluster({ open, prepare: prepareSqlite, wake: createLocalWake() })
  onTestFinished(async () => {
    await cluster.close()
    await rm(folder, { recursive: true, force: true })
  })
  return cluster
}

test('no secret of any flow is written to the log', async () => {
  const lines: string[] = []
  const write = (fields: object, message: string): void => {
    const err = 'err' in fields && fields.err instanceof Error ? [fields.err.message, fields.err.stack] : []
    lines.push(JSON.stringify([fields, message, ...err]))
  }
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log }
  const { issuer, login, call, logins, browse } = await start({ log })
  issuer.metadata.token_endpoint_auth_methods_supported = ['client_secret_post']
  expect(await login('ada')).toMatchObject({ status: 200 })
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_601_000 })
  onTestFinished(() => void vi.useRealTimers())
  await call('ada')
  issuer.answers.set('/token', (_, response) => response.destroy())
  vi.setSystemTime(Date.now() + 3_601_000)
  await call('ada')
  issuer.answers.clear()
  issuer.refreshTokens.clear()
  vi.setSystemTime(Date.now() + 10_000)
  const asked = await call('ada')
  expect(asked.kind === 'login' && (await browse(asked.link.id))).toMatchObject({ kind: 'done' })
  await logins.finish(new URL(`${GATEWAY}/oauth/callback?state=guessed-state&code=guessed-code`), { principal: 'ada' })
  await logins.forget('github', 'ada')
  const secrets = issuer.requests.flatMap(({ form, query, body }) => [
    ...['code', 'code_verifier', 'refresh_token', 'client_secret', 'token'].map(name => form.get(name)),
    ...['state', 'code_challenge'].map(name => query.get(name)),
    ...(body.startsWith('{') ? [] : [body]),
  ])
  const used = [...new Set([...secrets, ...issuer.accessTokens.keys()])].filter(secret => secret)
  expect(used.length).toBeGreaterThan(10)
  const output = lines.join('\n')
  expect(lines.length).toBeGreaterThan(3)
  expect(used.filter(secret => output.includes(secret ?? ''))).toEqual([])
})

describe('a stolen store', () => {
  test('has no token in it', async () => {
    const cluster = await openDatabase()
    const { issuer, login } = await start({ store: await cluster.join() })
    await login('ada')
    const rows = await cluster.database.all<{ body: Uint8Array }>(
      `SELECT body FROM ${stateTables(cluster.database).record}`,
    )
    const bytes = Buffer.concat(rows.map(({ body }) => body)).toString('latin1')
    expect(rows.length).toBeGreaterThan(2)
    for (const secret of [...issuer.accessTokens.keys(), ...issuer.refreshTokens.keys(), 'ada', 'github'])
      expect(bytes.includes(secret)).toBe(false)
  })

  test('whose rows are swapped gives no user the token of another', async () => {
    const cluster = await openDatabase()
    const store = await cluster.join()
    const { server, login } = await start({ store })
    await login('ada')
    await login('ben')
    const { record } = stateTables(cluster.database)
    const rows = await cluster.database.all<{ id: string; body: Uint8Array }>(
      `SELECT id, body FROM ${record} WHERE kind = 'token'`,
    )
    const [one, other] = rows
    if (rows.length !== 2 || !one || !other) throw new Error('there are not two logins')
    await cluster.database.run(`UPDATE ${record} SET body = ? WHERE id = ?`, other.body, one.id)
    await cluster.database.run(`UPDATE ${record} SET body = ? WHERE id = ?`, one.body, other.id)
    const restarted = startLoginClient(remoteServer(server.url), { store })
    expect(await restarted.call('ada')).toMatchObject({ kind: 'login' })
    expect(await restarted.call('ben')).toMatchObject({ kind: 'login' })
  })
})

describe('a stolen store whose rows are swapped', () => {
  type Cluster = Awaited<ReturnType<typeof openDatabase>>

  /** Gives each row of a kind the body of another row: of the same kind, or of the other one. */
  const swap = async ({ database, join: joinStore }: Cluster, kind: RecordKind, other = kind): Promise<void> => {
    const { record } = stateTables(database)
    const read = (of: RecordKind) =>
      database.all<{ id: string; body: Uint8Array }>(`SELECT id, body FROM ${record} WHERE kind = ?`, of)
    const [rows, others] = [await read(kind), await read(other)]
    expect(rows.length).toBeGreaterThan(kind === other ? 1 : 0)
    expect(await (await joinStore()).list(kind, 10)).toHaveLength(rows.length)
    const update = `UPDATE ${record} SET body = ? WHERE kind = ? AND id = ?`
    for (const [at, { id }] of rows.entries())
      await database.run(update, others[(at + 1) % others.length]?.body ?? '', kind, id)
    expect(await (await joinStore()).list(kind, 10)).toEqual([])
  }

  test('has no login that another user can finish', async () => {
    const cluster = await openDatabase()
    const { server, call } = await start({ store: await cluster.join() })
    const asked = [await call('ada'), await call('ben')]
    await swap(cluster, 'login')
    const { logins } = startLoginClient(remoteServer(server.url), { store: await cluster.join() })
    for (const [at, principal] of ['ada', 'ben'].entries()) {
      const each = asked[at]
      if (each?.kind !== 'login') throw new Error('no login')
      expect(await logins.open(each.link.id, { principal })).toMatchObject({ kind: 'refused', status: 404 })
    }
  })

  test('has no client with the redirect URIs of another', async () => {
    const cluster = await openDatabase()
    const clients = new RegisteredClients(await cluster.join())
    const made = ['a', 'b'].map(name => clients.register({ name, redirectUris: [`https://${name}.example/cb`] }))
    const ids = (await Promise.all(made)).map(({ id }) => id)
    await swap(cluster, 'oauth-client')
    const reader = new RegisteredClients(await cluster.join())
    for (const id of ids) expect(await reader.find(id)).toBeUndefined()
  })

  test('has no grant with the access of another', async () => {
    const cluster = await openDatabase()
    const grants = await openGrants(cluster)
    const tokens = [await grants.connect('ada'), await grants.connect('ben')]
    await swap(cluster, 'grant')
    const reader = await openGrants(cluster)
    for (const { access, refresh = '' } of tokens) {
      expect(await reader.grants.findGrant(access)).toBeUndefined()
      await expect(reader.grants.refresh(refresh, WISH)).rejects.toBeInstanceOf(OAuthRejection)
    }
  })

  test('has nothing of one kind that passes for another', async () => {
    const cluster = await openDatabase()
    const grants = await openGrants(cluster)
    const { access } = await grants.connect('ada')
    const { server, login } = await start({ store: await cluster.join() })
    await login('ben')
    await swap(cluster, 'grant', 'token')
    await swap(cluster, 'token', 'login')
    expect(await (await openGrants(cluster)).grants.findGrant(access)).toBeUndefined()
    const restarted = startLoginClient(remoteServer(server.url), { store: await cluster.join() })
    expect(await restarted.call('ben')).toMatchObject({ kind: 'login' })
  })

  const VERIFIER = 'v'.repeat(43)
  const WISH = { client: 'c', scopes: undefined, baseScopes: [], workspace: undefined }

  const openGrants = async (cluster: Cluster) => {
    const accessOf: AccessOf = async subject => {
      const name = subject.kind === 'token' ? subject.id : ''
      return { principal: name, name, workspaces: ['*'] }
    }
    const grants = new Grants({
      store: await cluster.join(),
      accessOf,
      sessions: { renew: async () => 'valid' },
      record: () => {},
      log: SILENT,
    })
    onTestFinished(() => grants.close())
    const connect = async (principal: string) => {
      const challenge = createHash('sha256').update(VERIFIER).digest('base64url')
      const subject = { kind: 'token', id: principal } as const
      const redirectUri = 'https://app.example/cb'
      const content = { client: 'c', redirectUri, subject, principal, scopes: [], challenge }
      const code = await grants.create(createGrantId(), content)
      return grants.redeem(code, { client: 'c', redirectUri, verifier: VERIFIER, workspace: undefined })
    }
    return { grants, connect }
  }
})

describe('a store that is away', () => {
  const away = () => Promise.reject(new StateError('away', 'The store cannot be used.'))

  test('fails calls that need it and pages that need it, and no other call', async () => {
    const store = new MemoryCluster().join()
    const { call, login, logins } = await start({ store })
    await login('ada')
    vi.spyOn(store, 'read').mockImplementation(away)
    vi.spyOn(store, 'take').mockImplementation(away)
    expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
    expect(await call('ben')).toEqual({
      kind: 'failed',
      reason: 'login_unavailable',
      text: 'cannot be called: the store with its login cannot be read now; try again later.',
    })
    expect(await logins.open('x'.repeat(44), { principal: 'ada' })).toMatchObject({ kind: 'refused', status: 503 })
    expect(await logins.finish(new URL(`${GATEWAY}/oauth/callback?state=x`), { principal: 'ada' })).toMatchObject({
      status: 503,
    })
  })

  test('while a refresh is answered costs nothing: the tokens are stored when it is back', async () => {
    const store = new MemoryCluster().join()
    const { issuer, call, login } = await start({ store })
    await login('ada')
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_601_000 })
    onTestFinished(() => void vi.useRealTimers())
    issuer.answers.set('/token', (request, response) => {
      issuer.answers.clear()
      vi.spyOn(store, 'take').mockImplementationOnce(away).mockImplementationOnce(away)
      issuer.routes['/token']?.(request, response)
    })
    expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
    expect(issuer.count('/token', 'refresh_token')).toBe(1)
  })
})

test('a login that no call asked for gets scopes and metadata from the server', async () => {
  const { issuer, server, logins, browse, call } = await start()
  server.state.scope = 'read'
  const begun = await logins.begin('github', 'ada')
  expect(begun).toMatchObject({ kind: 'login' })
  expect(begun.kind === 'login' && (await browse(begun.link.id))).toMatchObject({ kind: 'done' })
  expect(issuer.requests.find(({ path }) => path === '/authorize')?.query.get('scope')).toBe('read')
  expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
})
