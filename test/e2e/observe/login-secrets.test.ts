import { expect, onTestFinished, test } from 'vitest'
import { findDaemon } from '../../../src/config/daemon-file.ts'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { runCli, startCli, startTestDaemon } from '../../support/cli.ts'
import { rpcInitialize, rpcRequest } from '../../support/front.ts'
import { createTestLog, type TestLog } from '../../support/log.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { send } from '../../support/raw.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'

const SOON = { timeout: 20_000 }

const startSite = async () => {
  const server = await startV1()
  const site = await startLoginSite({ upstream: server.url })
  onTestFinished(async () => {
    await site.close()
    await server.close()
  })
  return site
}

const textOf = ({ lines }: TestLog): string =>
  JSON.stringify(lines, (_, value) => (value instanceof Error ? [value.message, value.stack, value.cause] : value))

const linkIn = (text: string): string => /http:[^\s"\\]+\/oauth\/login\/[\w-]+/.exec(text)?.[0] ?? ''
const secretOf = (link: string): string => link.slice(link.lastIndexOf('/') + 1)

/** The secrets of `searched` that a text contains; enough of them must have been used. */
const foundIn = (text: string, searched: readonly (string | undefined)[], least: number): readonly string[] => {
  const secrets = [...new Set(searched)].flatMap(each => (each !== undefined && each.length >= 8 ? each : []))
  expect(secrets.length).toBeGreaterThanOrEqual(least)
  return secrets.filter(secret => text.includes(secret))
}

test('login and logout by command leave nothing secret in the log of the daemon, and print no token', async () => {
  const site = await startSite()
  const log = createTestLog({ isDebug: true })
  const { data, close } = await startTestDaemon({ mcpServers: { far: { url: site.url } } }, log.log)
  const printed: string[] = []
  const ran = async (started: ReturnType<typeof startCli>, code: number): Promise<string> => {
    const ended = await started.ended
    expect(ended).toMatchObject({ code })
    printed.push(ended.stdout, ended.stderr)
    return ended.stdout
  }
  const dragoman = (...args: string[]) => startCli([...args, '--data', data])

  const login = dragoman('login', 'far', '--no-browser')
  await expect.poll(login.stdout, SOON).toMatch(/^Open http/)
  const link = linkIn(login.stdout())
  expect((await createBrowser('ada').open(link)).text).toContain('Logged in')
  await ran(login, 0)
  expect(await runCli(['call', 'far/echo', 'message=hello', '--data', data])).toMatchObject({ code: 0 })
  site.expire()
  expect(await runCli(['call', 'far/echo', 'message=hello', '--data', data])).toMatchObject({ code: 0 })
  expect(site.counts.refreshes).toBe(1)
  await ran(dragoman('logout', 'far'), 0)

  const pasted = startCli(['login', 'far', '--paste', '--data', data], { isTerminal: true })
  await expect.poll(pasted.stdout, SOON).toContain('Paste the address')
  const authorization = /http:\S+\/authorize\S+/.exec(pasted.stdout())?.[0] ?? ''
  pasted.type(`${(await createBrowser('ben').send(authorization)).headers.location}\n`)
  await ran(pasted, 0)
  const wrong = startCli(['login', 'far', '--paste', '--data', data], { isTerminal: true })
  await expect.poll(wrong.stdout, SOON).toContain('Paste the address')
  wrong.type('http://127.0.0.1:1/oauth/callback?code=guessed-code&state=guessed-state\n')
  await ran(wrong, 2)
  const { token } = (await findDaemon(data)) ?? {}
  await close()

  const state = new URL(authorization).searchParams.get('state') ?? undefined
  const used = [...site.secrets, token, 'guessed-code', 'guessed-state']
  expect(foundIn(textOf(log), [...used, secretOf(link), state], 15)).toEqual([])
  expect(log.lines.map(({ message }) => message)).toContain('user logged in to a server')
  // A link, and the address of the authorization server with its state, are what the commands are for.
  expect(foundIn(printed.join('\n'), [...used.filter(each => each !== state)], 14)).toEqual([])
})

test('a login that replicas share leaves nothing secret in the log of any', async () => {
  const site = await startSite()
  const log = createTestLog({ isDebug: true })
  const far: ServerConfig = {
    ...{ name: 'far', disabled: false, kind: 'remote', url: site.url, type: 'auto', headers: {} },
    ...{ era: 'auto', timeoutMs: 10_000 },
  }
  const cluster = await startReplicas({ size: 3, entry: () => far, log: log.log })
  const [first, second, third] = cluster.replicas as [TestReplica, TestReplica, TestReplica]
  const act = async ({ gateway }: TestReplica) => {
    const response = await fetch(`${gateway.origin}/actions/default/echo`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"text":"hello"}',
    })
    return { status: response.status, text: await response.text() }
  }
  const asked = await act(first)
  expect(asked.status).toBe(424)
  const link = linkIn(asked.text)
  const browser = createBrowser('ada')
  const { headers } = await browser.send(link)
  expect((await browser.open(link)).text).toContain('Logged in')
  const cookie = /=([\w-]+)/.exec(String(headers['set-cookie']))?.[1]

  expect((await act(second)).status).toBe(200)
  site.expire()
  expect((await Promise.all([act(second), act(third)])).map(({ status }) => status)).toEqual([200, 200])
  expect(site.counts.refreshes).toBe(1)
  // A session of the third replica that a client uses at the second one.
  const opened = await send(third.url, { body: rpcInitialize('2025-11-25') })
  const session = { 'mcp-session-id': String(opened.headers['mcp-session-id']) }
  const call = rpcRequest(1, 'tools/call', { name: 'echo', arguments: { text: 'hello' } })
  expect((await send(second.url, { headers: session, body: call })).json).toHaveProperty('result')
  await third.kill()
  expect((await send(second.url, { headers: session, body: call })).json).toHaveProperty('result')
  site.expire(true)
  expect((await act(second)).status).toBe(424)
  await cluster.close()

  const text = textOf(log)
  expect(text.length).toBeGreaterThan(500)
  expect(foundIn(text, [...site.secrets, cookie, secretOf(link), session['mcp-session-id']], 8)).toEqual([])
})
