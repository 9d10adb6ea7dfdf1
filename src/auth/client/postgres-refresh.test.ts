import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { type FakeIssuer, startFakeIssuer, startProtectedServer } from '../../../test/support/fake-oauth.ts'
import { remoteServer, startLoginClient } from '../../../test/support/login-client.ts'
import { joinPostgres } from '../../../test/support/login-store.ts'
import { openPostgres } from '../../stores/postgres.ts'

const server = inject('postgresUrl')
const name = `login_${randomBytes(6).toString('hex')}`
const url = (server ?? '').replace(/\/[^/?]+(?=\?|$)/, `/${name}`)

const onServer = async (statement: string): Promise<void> => {
  const database = openPostgres({ url: server ?? '' })
  await database.exec(statement).finally(() => database.close())
}

type Child = ChildProcessByStdio<Writable, Readable, null>

/** A replica in a process of its own. */
const startProcess = async (serverUrl: string) => {
  const args = ['--import', 'tsx', 'test/support/login-process.ts', url, serverUrl]
  const child: Child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => ((await lines.next()) as { value?: string }).value ?? 'ended'
  expect(await next()).toBe('ready')
  const call = async (count: number): Promise<unknown> => {
    child.stdin.write(`${count}\n`)
    const line = await next()
    return line === 'ended' ? line : JSON.parse(line)
  }
  return { call, kill: () => child.kill('SIGKILL') }
}

const refreshes = (issuer: FakeIssuer): number => issuer.count('/token', 'refresh_token')

describe.skipIf(server === undefined)('processes on PostgreSQL', () => {
  beforeAll(() => onServer(`CREATE DATABASE ${name}`))
  afterAll(() => onServer(`DROP DATABASE ${name} WITH (FORCE)`))

  test('four with 50 calls each send one refresh; one that is killed after its answer costs nothing', async () => {
    const issuer = await startFakeIssuer()
    const protectedServer = await startProtectedServer(issuer)
    const [store, ...processes] = await Promise.all([
      joinPostgres(url),
      ...Array.from({ length: 4 }, () => startProcess(protectedServer.url)),
    ])
    onTestFinished(() => store.close())
    const client = startLoginClient(remoteServer(protectedServer.url), { store })

    /** A login whose access token ends at once; the next one lives for an hour. */
    const loginThatEnds = async (): Promise<void> => {
      issuer.settings.lifetimeS = 1
      const begun = await client.logins.begin('github', 'ada')
      expect(begun.kind === 'login' && (await client.browse(begun.link.id))).toMatchObject({ kind: 'done' })
      issuer.settings.lifetimeS = 3600
      const status = await client.logins.status('github', 'ada')
      const end = status.kind === 'present' ? (status.expires ?? 0) : 0
      await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(end), 3000)
    }

    await loginThatEnds()
    const outcomes = await Promise.all(processes.map(({ call }) => call(50)))
    expect(outcomes).toEqual(Array.from({ length: 4 }, () => new Array(50).fill(200)))
    expect(refreshes(issuer)).toBe(1)

    await loginThatEnds()
    issuer.settings.rejectsReuse = false // it forgives a lost answer
    const [killed, ...others] = processes
    issuer.answers.set('/token', (request, response) => {
      issuer.answers.clear()
      killed?.kill()
      issuer.routes['/token']?.(request, response)
    })
    expect(await killed?.call(1)).toBe('ended')
    expect(refreshes(issuer)).toBe(2)
    expect(await Promise.all(others.map(({ call }) => call(10)))).toEqual(others.map(() => new Array(10).fill(200)))
    expect(refreshes(issuer)).toBe(3)
  })
})
