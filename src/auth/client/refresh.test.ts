import { mkdtemp, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type FakeIssuer, sendJson, startFakeIssuer, startProtectedServer } from '../../../test/support/fake-oauth.ts'
import { remoteServer, startLoginClient } from '../../../test/support/login-client.ts'
import { createLocalWake, createSqlCluster } from '../../../test/support/sql-cluster.ts'
import { openSqlite } from '../../stores/sqlite.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { prepareSqlite } from '../../stores/state/prepare-state.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { SILENT } from '../../telemetry/log.ts'

afterEach(() => void vi.useRealTimers())

/** Only the clock is faked: sockets and timers are real. */
const forward = (ms: number): void => void vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })

const HOUR = 3_600_000
const refreshes = (issuer: FakeIssuer): number => issuer.count('/token', 'refresh_token')

const start = async (options: Parameters<typeof startLoginClient>[1] = {}) => {
  const issuer = await startFakeIssuer()
  const server = await startProtectedServer(issuer)
  const replica = startLoginClient(remoteServer(server.url), options)
  expect(await replica.login('ada')).toMatchObject({ status: 200 })
  return { issuer, server, ...replica }
}

describe('an access token', () => {
  test('is given synchronously while it is valid, without a statement of the store', async () => {
    const cluster = new MemoryCluster()
    const store = cluster.join()
    const read = vi.spyOn(store, 'read')
    const { credentials } = await start({ store })
    const before = read.mock.calls.length
    for (let i = 0; i < 1000; i++) expect(credentials.bearerOf('ada')).toBeTypeOf('string')
    expect(read.mock.calls.length).toBe(before)
  })

  test('is refreshed a minute before its end, while calls go on with it', async () => {
    const { issuer, credentials } = await start()
    const old = credentials.bearerOf('ada')
    forward(HOUR - 59_000)
    expect(credentials.bearerOf('ada')).toBe(old)
    await vi.waitFor(() => expect(credentials.bearerOf('ada')).not.toBe(old))
    expect(credentials.bearerOf('ada')).toBeTypeOf('string')
    expect(refreshes(issuer)).toBe(1)
  })

  test('is refreshed after its end before the call is sent, once for all calls', async () => {
    const { issuer, call, server } = await start()
    forward(HOUR + 1000)
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => call('ada')))
    expect(outcomes).toEqual(Array.from({ length: 50 }, () => ({ kind: 'answered', status: 200, sent: 1 })))
    expect(refreshes(issuer)).toBe(1)
    const { form } = issuer.requests.findLast(({ path }) => path === '/token') ?? {}
    expect(Object.fromEntries(form ?? [])).toMatchObject({ grant_type: 'refresh_token', resource: server.url })
  })

  test('that was refreshed or given up is still known, for what must not show it', async () => {
    const { client, credentials, call, logins } = await start()
    const old = credentials.bearerOf('ada')
    forward(HOUR + 1000)
    await call('ada')
    const next = credentials.bearerOf('ada')
    await logins.forget('github', 'ada')
    expect(client.recentTokens()).toEqual(expect.arrayContaining([old, next]))
  })

  test('that is used again and again is still known after many others', async () => {
    const { client, credentials, login } = await start()
    const used = credentials.bearerOf('ada')
    for (let at = 0; at < 60; at++) {
      await login(`user${at}`)
      forward(10_000)
      expect(credentials.bearerOf('ada')).toBe(used)
    }
    expect(client.recentTokens()).toContain(used)
  })

  test('of four seconds is not refreshed all the time', async () => {
    const { issuer, call } = await start()
    issuer.settings.lifetimeS = 4
    forward(HOUR + 1000)
    await call('ada')
    for (let i = 0; i < 20; i++) await call('ada')
    expect(refreshes(issuer)).toBe(1)
    forward(2500)
    await call('ada')
    expect(refreshes(issuer)).toBe(1)
    forward(2000)
    expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
    expect(refreshes(issuer)).toBe(2)
  })

  test('that the server refuses early is refreshed: its clock is ahead, or it was revoked', async () => {
    const { issuer, call } = await start()
    forward(HOUR / 2)
    issuer.accessTokens.clear()
    expect(await Promise.all([call('ada'), call('ada'), call('ada')])).toEqual(
      Array.from({ length: 3 }, () => ({ kind: 'answered', status: 200, sent: 2 })),
    )
    expect(refreshes(issuer)).toBe(1)
  })

  test('without an end is used until the server refuses it', async () => {
    const issuer = await startFakeIssuer()
    issuer.settings.lifetimeS = undefined
    const server = await startProtectedServer(issuer)
    const { login, call } = startLoginClient(remoteServer(server.url))
    await login('ada')
    forward(1000 * HOUR)
    issuer.accessTokens.clear()
    expect(await call('ada')).toMatchObject({ status: 200, sent: 2 })
  })

  test('that was just issued and is refused is refreshed once; then it leads to a login, not to a loop', async () => {
    const { issuer, call } = await start()
    issuer.accessTokens.clear()
    expect(await Promise.all([call('ada'), call('ada')])).toMatchObject([{ status: 200 }, { status: 200 }])
    expect(refreshes(issuer)).toBe(1)
    issuer.accessTokens.clear()
    expect(await call('ada')).toMatchObject({ kind: 'login' })
    expect(refreshes(issuer)).toBe(1)
  })

  test('that was just issued and is refused stays while the issuer does not answer', async () => {
    const { issuer, call } = await start()
    issuer.accessTokens.clear()
    issuer.answers.set('/token', (_request, response) => sendJson(response, {}, 503))
    expect(await call('ada')).toMatchObject({ reason: 'login_unavailable' })
  })

  test('that was just issued is not refreshed at an issuer that the server has left', async () => {
    const { issuer, server, call } = await start()
    const next = await startFakeIssuer()
    server.state.issuer = next
    issuer.accessTokens.clear()
    expect(await call('ada')).toMatchObject({ kind: 'login' })
    expect([refreshes(issuer), next.count('/register')]).toEqual([0, 1])
  })

  test('without a refresh token needs a login when it has ended', async () => {
    const issuer = await startFakeIssuer()
    issuer.settings.rotates = false
    const server = await startProtectedServer(issuer)
    const { login, call } = startLoginClient(remoteServer(server.url))
    await login('ada')
    forward(HOUR + 1000)
    expect(await call('ada')).toMatchObject({ kind: 'login' })
  })

  test('keeps its refresh token if the new answer has none', async () => {
    const { issuer, call } = await start()
    issuer.settings.rotates = false
    issuer.settings.rejectsReuse = false
    for (let hours = 1; hours < 4; hours++) {
      forward(HOUR + 1000)
      expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
      expect(refreshes(issuer)).toBe(hours)
    }
  })
})

describe('an authorization server that', () => {
  test('refuses the refresh token ends the login, and is not asked again', async () => {
    const { issuer, call, logins } = await start()
    issuer.refreshTokens.clear()
    forward(HOUR + 1000)
    const [first, second] = [await call('ada'), await call('ada')]
    expect([first, second]).toMatchObject([{ kind: 'login' }, { kind: 'login' }])
    expect(first).toEqual(second)
    expect(refreshes(issuer)).toBe(1)
    expect(await logins.status('github', 'ada')).toMatchObject({ kind: 'present', canRefresh: false })
  })

  const answers: readonly (readonly [string, (response: ServerResponse) => void])[] = [
    ['is away', response => response.destroy()],
    ['hangs', () => {}],
    ['answers 503', response => response.writeHead(503).end()],
    ['answers 429', response => sendJson(response, { error: 'invalid_grant' }, 429)],
    ['answers with a page', response => response.end('<html>')],
    ['answers 404', response => response.writeHead(404).end()],
    ['is not available now', response => sendJson(response, { error: 'temporarily_unavailable' }, 400)],
    ['answers without a token', response => sendJson(response, { token_type: 'Bearer' })],
  ]
  test.each(answers)('%s: the login is kept', async (_, answer) => {
    const { issuer, call } = await start({ fetchOptions: { timeoutMs: 500 } })
    issuer.answers.set('/token', (__, response) => answer(response))
    forward(HOUR + 1000)
    expect(await call('ada')).toEqual({
      kind: 'failed',
      reason: 'login_unavailable',
      text: `cannot be called: ${issuer.origin} did not answer; the login is kept.`,
    })
    issuer.answers.clear()
    forward(6000)
    expect(await call('ada')).toMatchObject({ status: 200 })
  })

  test('is away before the end: the token is used until then', async () => {
    const { issuer, call } = await start()
    issuer.answers.set('/token', (_, response) => response.destroy())
    forward(HOUR - 30_000)
    for (let i = 0; i < 5; i++) expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
    await vi.waitFor(() => expect(refreshes(issuer)).toBe(1))
    expect(await call('ada')).toMatchObject({ status: 200, sent: 1 })
    expect(refreshes(issuer)).toBe(1)
  })

  test('has forgotten the client is registered at again', async () => {
    const { issuer, call, login } = await start()
    issuer.answers.set('/token', (_, response) => sendJson(response, { error: 'invalid_client' }, 401))
    forward(HOUR + 1000)
    expect(await call('ada')).toMatchObject({ kind: 'login' })
    issuer.answers.clear()
    expect(await login('ada')).toMatchObject({ status: 200 })
    expect(issuer.count('/register')).toBe(2)
  })
})

test('a client of the configuration that is replaced needs a login', async () => {
  const issuer = await startFakeIssuer()
  const server = await startProtectedServer(issuer)
  const store = new MemoryCluster().join()
  const client = (clientId: string) => ({ grant: 'authorization_code', login: 'caller', clientId }) as const
  await startLoginClient(remoteServer(server.url, client('one')), { store }).login('ada')
  forward(HOUR + 1000)
  expect(await startLoginClient(remoteServer(server.url, client('two')), { store }).call('ada')).toMatchObject({
    kind: 'login',
  })
  expect(refreshes(issuer)).toBe(0)
})

/** Keeps back what is written to a response. */
const collect = (response: ServerResponse) => {
  const end = response.end.bind(response)
  let body = ''
  response.end = ((text: string) => {
    body = text
    return response
  }) as ServerResponse['end']
  return { write: () => void end(body) }
}

interface TestCluster {
  join(): Promise<StateStore>
  kill(replica: string): Promise<void>
}

const memory = async (): Promise<TestCluster> => {
  const cluster = new MemoryCluster()
  return { join: async () => cluster.join(), kill: async replica => cluster.kill(replica) }
}

const sqlite = async (): Promise<TestCluster> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-login-'))
  const open = () => openSqlite(join(folder, 'state.db'))
  const cluster = await createSqlCluster({ open, prepare: prepareSqlite, wake: createLocalWake() })
  onTestFinished(async () => {
    await cluster.close()
    await rm(folder, { recursive: true, force: true })
  })
  return cluster
}

describe.each([
  ['memory', memory],
  ['SQLite', sqlite],
])('replicas on %s', (_, openCluster) => {
  const replicas = async (count: number, log: Log = SILENT) => {
    const issuer = await startFakeIssuer()
    const server = await startProtectedServer(issuer)
    const cluster = await openCluster()
    const stores = await Promise.all(Array.from({ length: count }, () => cluster.join()))
    const clients = stores.map(store => startLoginClient(remoteServer(server.url), { store, log }))
    expect(await clients[0]?.login('ada')).toMatchObject({ status: 200 })
    for (const { call } of clients) expect(await call('ada')).toMatchObject({ status: 200 })
    return { issuer, server, cluster, stores, clients }
  }

  test('send one refresh for 200 calls', async () => {
    const { issuer, clients } = await replicas(4)
    issuer.answers.set('/token', (request, response) =>
      setTimeout(() => issuer.routes['/token']?.(request, response), 100),
    )
    forward(HOUR + 1000)
    const calls = clients.flatMap(({ call }) => Array.from({ length: 50 }, () => call('ada')))
    const outcomes = await Promise.all(calls)
    expect(outcomes.filter(outcome => outcome.kind !== 'answered' || outcome.status !== 200)).toEqual([])
    expect(refreshes(issuer)).toBe(1)
  })

  test('two that refuse the same token at once refresh once', async () => {
    const { issuer, clients } = await replicas(2)
    forward(HOUR / 2)
    issuer.accessTokens.clear()
    const outcomes = await Promise.all(clients.map(({ call }) => call('ada')))
    expect(outcomes).toMatchObject([{ status: 200 }, { status: 200 }])
    expect(refreshes(issuer)).toBe(1)
  })

  test('one that is killed between the answer and its storing is replaced at once', async () => {
    const { issuer, clients, stores, cluster } = await replicas(2)
    const [first, second] = stores as [StateStore, StateStore]
    issuer.settings.rejectsReuse = false // an issuer that forgives a lost answer
    issuer.answers.set('/token', (request, response) => {
      issuer.answers.clear()
      void cluster.kill(first.members.self).then(() => issuer.routes['/token']?.(request, response))
    })
    forward(HOUR + 1000)
    const { self } = first.members
    clients[0]?.call('ada').catch(() => {}) // it never hears of its answer
    await vi.waitFor(() => expect([refreshes(issuer), second.members.at(self)]).toEqual([1, undefined]))
    expect(await clients[1]?.call('ada')).toMatchObject({ status: 200 })
  })

  test('an issuer that does not forgive a lost answer asks for a login, and never hangs', async () => {
    const { issuer, clients } = await replicas(1)
    forward(HOUR + 1000)
    issuer.answers.set('/token', (request, response) => {
      issuer.refreshTokens.delete(request.form.get('refresh_token') ?? '') // rotated, and the answer is lost
      issuer.answers.clear()
      response.destroy()
    })
    expect(await clients[0]?.call('ada')).toMatchObject({ reason: 'login_unavailable' })
    forward(6000)
    expect(await clients[0]?.call('ada')).toMatchObject({ kind: 'login' })
  })

  test('a login that ends during a refresh is not stored again', async () => {
    const { issuer, clients } = await replicas(2)
    const [one, other] = clients
    issuer.answers.set('/token', (request, response) => {
      issuer.answers.clear()
      void other?.logins.forget('github', 'ada').then(() => issuer.routes['/token']?.(request, response))
    })
    forward(HOUR + 1000)
    expect(await one?.call('ada')).toMatchObject({ kind: 'login' })
    expect(await one?.logins.status('github', 'ada')).toEqual({ kind: 'missing' })
  })

  test('tokens that a refresh brings after the login has ended are revoked', async () => {
    const { issuer, clients } = await replicas(2)
    const [one, other] = clients
    issuer.answers.set('/token', (request, response) => {
      issuer.answers.clear()
      const { write } = collect(response)
      issuer.routes['/token']?.(request, response)
      void other?.logins.forget('github', 'ada').then(write)
    })
    forward(HOUR + 1000)
    expect(await one?.call('ada')).toMatchObject({ kind: 'login' })
    expect(await one?.logins.status('github', 'ada')).toEqual({ kind: 'missing' })
    expect([issuer.count('/revoke'), issuer.refreshTokens.size]).toEqual([2, 0])
  })

  test('one that stalls, and is replaced too early, still brings the tokens that it got', async () => {
    const { issuer, clients } = await replicas(2)
    const [stalled, other] = clients
    let answer: () => void = () => {}
    issuer.answers.set('/token', (request, response) => {
      issuer.answers.clear()
      const { write } = collect(response)
      issuer.routes['/token']?.(request, response) // the refresh token is used up now
      answer = write
    })
    forward(HOUR + 1000)
    const waiting = stalled?.call('ada')
    await vi.waitFor(() => expect(refreshes(issuer)).toBe(1))
    const second = other?.call('ada')
    await vi.waitFor(() => {
      forward(31_000)
      expect(refreshes(issuer)).toBe(2)
    })
    expect(await second).toMatchObject({ kind: 'login' }) // the issuer refuses a token that was used before
    answer()
    expect(await waiting).toMatchObject({ status: 200 })
    expect(await other?.call('ada')).toMatchObject({ status: 200 })
  })

  test('a login during a refresh wins', async () => {
    const { issuer, clients } = await replicas(2)
    const [one, other] = clients
    let newer: string | undefined
    issuer.answers.set('/token', (request, response) => {
      issuer.answers.clear()
      void (async () => {
        const begun = await other?.logins.begin('github', 'ada')
        if (begun?.kind === 'login') await other?.browse(begun.link.id)
        newer = await other?.credentials.bearerOf('ada')
        issuer.routes['/token']?.(request, response)
      })()
    })
    forward(HOUR + 1000)
    expect(await one?.call('ada')).toMatchObject({ status: 200 })
    expect(newer).toBeTypeOf('string')
    expect(await one?.credentials.bearerOf('ada')).toBe(newer)
  })
})
