import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { expect, onTestFinished, vi } from 'vitest'
import { startFakeIssuer, startProtectedServer } from './fake-oauth.ts'
import { remoteServer, startLoginClient } from './login-client.ts'
import { joinStore } from './login-store.ts'

type Child = ChildProcessByStdio<Writable, Readable, null>

const COUNT = 4

/** A replica in a process of its own. */
const startProcess = async (location: string, serverUrl: string) => {
  const args = ['--import', 'tsx', 'test/support/login-process.ts', location, serverUrl]
  const child: Child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => ((await lines.next()) as { value?: string }).value ?? 'ended'
  const [word, replica = ''] = (await next()).split(' ')
  expect(word).toBe('ready')
  /** The outcomes of calls at the same time; `ended` if the process was killed. */
  const call = async (count: number): Promise<unknown> => {
    child.stdin.write(`${count}\n`)
    const line = await next()
    return line === 'ended' ? line : JSON.parse(line)
  }
  return { replica, call, kill: () => child.kill('SIGKILL') }
}

/** Four processes on one database, and a client beside them that logs in. */
export const startLoginProcesses = async (location: string) => {
  const issuer = await startFakeIssuer()
  const server = await startProtectedServer(issuer)
  const store = await joinStore(location)
  onTestFinished(() => store.close())
  const processes = await Promise.all(Array.from({ length: COUNT }, () => startProcess(location, server.url)))
  const client = startLoginClient(remoteServer(server.url), { store })

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

  /** Kills a process that has sent a refresh, before the answer: the issuer has made new tokens when it does. */
  const killBeforeAnswer = async (): Promise<typeof processes> => {
    const [killed, ...others] = processes
    issuer.answers.set('/token', (request, response) => {
      issuer.answers.clear()
      killed?.kill()
      issuer.routes['/token']?.(request, response)
    })
    expect(await killed?.call(1)).toBe('ended')
    // Leases on SQLite do not end by themselves: the main process reports a worker that has ended.
    if (!location.startsWith('postgres')) await store.members.reportDead(killed?.replica ?? '')
    return others
  }

  const refreshes = (): number => issuer.count('/token', 'refresh_token')
  return { issuer, processes, loginThatEnds, killBeforeAnswer, refreshes }
}
