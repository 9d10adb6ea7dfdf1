import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { checkServers } from '../../../src/app/check.ts'
import { serveStdioProxy } from '../../../src/app/stdio-proxy.ts'
import { findDaemon } from '../../../src/config/daemon-file.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { LineDecoder } from '../../../src/wire/ndjson.ts'
import { runCli, startCli, startTestDaemon } from '../../support/cli.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'

type Daemon = Awaited<ReturnType<typeof startTestDaemon>>
type Site = Awaited<ReturnType<typeof startLoginSite>>
const closing: (() => Promise<unknown>)[] = []
let site: Site
let daemon: Daemon

beforeEach(async () => {
  const server = await startV2()
  site = await startLoginSite({ upstream: server.url })
  daemon = await startTestDaemon({
    mcpServers: { far: { url: site.url }, plain: { url: site.url, oauth: false }, demo: { builtin: 'demo' } },
  })
  closing.push(server.close, site.close, daemon.close)
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const dragoman = (...args: string[]) => runCli([...args, '--data', daemon.data])
const linkIn = (text: string): string => /http:\S+\/oauth\/login\/\S+/.exec(text)?.[0] ?? ''

/** A login by command, with a browser of that user. */
const logIn = async (user = 'ada'): Promise<void> => {
  const login = startCli(['login', 'far', '--no-browser', '--data', daemon.data])
  await expect.poll(login.stdout).toMatch(/^Open http/)
  await createBrowser(user).open(linkIn(login.stdout()))
  expect(await login.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('Logged in to "far".') })
}

test('login prints the link, and ends when the user has logged in', async () => {
  expect(await dragoman('tools', 'far')).toMatchObject({ stdout: expect.stringContaining('login') })
  expect(await dragoman('call', 'far/test_simple_text')).toMatchObject({
    code: 5,
    stderr: 'dragoman: far needs a login before its tools can be used: run "dragoman login far"\n',
  })
  await logIn()
  expect(await dragoman('call', 'far/test_simple_text')).toMatchObject({ code: 0 })
  await logIn('ben') // again, at another account
  expect(site.counts.registrations).toBe(1)
})

test('login --paste finishes with the address at which the browser ends', async () => {
  const login = startCli(['login', 'far', '--paste', '--data', daemon.data], { isTerminal: true })
  await expect.poll(login.stdout).toContain('Paste the address')
  const authorization = /http:\S+\/authorize\S+/.exec(login.stdout())?.[0] ?? ''
  const { headers } = await createBrowser('ada').send(authorization)
  login.type(`${headers.location}\n`)
  expect(await login.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('Logged in to "far".') })
  expect(await dragoman('call', 'far/test_simple_text')).toMatchObject({ code: 0 })
})

test.each([
  ['nothing', '\n', 'no address was pasted'],
  ['another address', 'http://127.0.0.1/oauth/callback?code=1&state=2\n', 'dragoman: .+'],
])('login --paste refuses %s', async (_, typed, message) => {
  const login = startCli(['login', 'far', '--paste', '--data', daemon.data], { isTerminal: true })
  await expect.poll(login.stdout).toContain('Paste the address')
  login.type(typed)
  const { code, stderr } = await login.ended
  expect(code).not.toBe(0)
  expect(stderr).toMatch(new RegExp(message))
  expect((await dragoman('tools', 'far')).stdout).toMatch(/\blogin\b/)
})

test('login --paste shows what an authorization server says without its control characters, in one line', async () => {
  const login = startCli(['login', 'far', '--paste', '--data', daemon.data], { isTerminal: true })
  await expect.poll(login.stdout).toContain('Paste the address')
  const authorization = new URL(/http:\S+\/authorize\S+/.exec(login.stdout())?.[0] ?? '')
  const said = 'no\u001b]0;title\u0007\u001b[2J\ndragoman: all is well\u202e'
  const answer = { error: 'access_denied', error_description: said, iss: site.origin }
  const state = authorization.searchParams.get('state') ?? ''
  login.type(`http://127.0.0.1/oauth/callback?${new URLSearchParams({ ...answer, state })}\n`)
  const { code, stderr } = await login.ended
  expect(code).toBe(2)
  expect(stderr).toMatch(/did not grant access \(access_denied\)\. .* \(no\]0;title\[2J dragoman: all is well\)\n$/)
  expect(stderr.trimEnd()).not.toMatch(/[\p{Cf}\p{Cc}]/u)
})

test('logout revokes the tokens, and the server wants a login again', async () => {
  expect((await dragoman('logout', 'far')).stdout).toBe('There was no login at "far".\n')
  await logIn()
  expect((await dragoman('logout', 'far')).stdout).toBe('Logged out of "far". Its tokens are revoked.\n')
  expect(site.counts.revocations).toBeGreaterThan(0)
  expect((await dragoman('tools', 'far')).stdout).toMatch(/\blogin\b/)
})

test.each([
  ['login', 'expected the name of a server'],
  ['login nowhere', 'users log in to no server "nowhere"; expected one of "far"'],
  ['login fat', 'did you mean "far"?'],
  ['login plain', 'users log in to no server "plain"'],
  ['login far --principal=', '--principal: expected a name'],
  ['logout', 'expected the name of a server'],
  ['logout demo', 'users log in to no server "demo"'],
])('dragoman %s says what is wrong', async (line, message) => {
  const { code, stderr } = await dragoman(...line.split(' '))
  expect(code).not.toBe(0)
  expect(stderr).toContain(message)
})

test('login says so if no daemon runs', async () => {
  const { code, stderr } = await runCli(['login', 'far', '--data', `${daemon.data}/none`])
  expect(code).toBe(1)
  expect(stderr).toContain('no daemon runs')
})

test('/admin/logins lists the logins of a principal to the owner only', async () => {
  await logIn()
  const found = await findDaemon(daemon.data)
  const list = async (headers: Record<string, string>) => fetch(`${daemon.origin}/admin/logins`, { headers })
  const answer = await list({ authorization: `Bearer ${found?.token}` })
  expect(await answer.json()).toMatchObject([
    { server: 'far', principal: 'local', kind: 'present', issuer: site.origin },
  ])
  expect((await list({})).status).toBe(403)
})

test('check says that a login is needed, and how to log in', async () => {
  const snapshot = await loadConfig({ value: { mcpServers: { far: { url: site.url } } }, env: {}, flags: {} })
  const { servers } = await checkServers(snapshot, { log: SILENT, version: '1' })
  expect(servers).toMatchObject([{ name: 'far', state: 'untried', reason: 'needs a login: "dragoman login far"' }])
})

test('doctor says that a login is needed, and who grants it', async () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  await runCli(['doctor', site.url])
  const text = write.mock.calls.join('')
  write.mockRestore()
  expect(text).toMatch(new RegExp(`log in at +${site.origin}`))
  expect(text).toContain('It wants a login. In the configuration of the gateway its URL is enough')
})

/** A client on a pipe, as `dragoman stdio` serves it. */
const openPipe = async () => {
  const found = await findDaemon(daemon.data)
  if (!found) throw new Error('no daemon')
  const [input, output] = [new PassThrough(), new PassThrough()]
  const served = serveStdioProxy({
    daemon: found,
    findAgain: async () => found,
    workspace: 'far',
    input,
    output,
    log: SILENT,
    version: '0',
  })
  closing.push(async () => {
    input.end()
    await served
  })
  const waiting = new Map<number, (response: Answer) => void>()
  const lines = new LineDecoder(line => {
    const response = JSON.parse(line.toString()) as Answer & { id: number }
    waiting.get(response.id)?.(response)
  })
  output.on('data', chunk => lines.feed(chunk))
  let last = 0
  return (method: string, params: object): Promise<Answer> =>
    new Promise(resolve => {
      waiting.set(++last, resolve)
      input.write(`${JSON.stringify({ jsonrpc: '2.0', id: last, method, params })}\n`)
    })
}
type Answer = { result?: { isError?: boolean; content?: { text: string }[]; tools?: { name: string }[] } }

test('a client over stdio gets the link as the result, and its tools after the login', async () => {
  const request = await openPipe()
  const clientInfo = { name: 'pipe', version: '1' }
  await request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
  const call = { name: 'echo', arguments: { text: 'hi' } }
  const refused = (await request('tools/call', call)).result
  expect(refused?.isError).toBe(true)
  await createBrowser('ada').open(linkIn(refused?.content?.[0]?.text ?? ''))
  expect((await request('tools/call', call)).result?.content?.[0]?.text).toContain('hi')
  const { tools } = (await request('tools/list', {})).result ?? {}
  expect(tools?.map(({ name }) => name)).toContain('echo')
})
