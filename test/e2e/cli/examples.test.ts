import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { TestBrowser } from '../../support/test-browser.ts'
import { call } from './call.ts'
import { runCommand } from './in-process.ts'
import { endPrograms, startProgram, startServe } from './program.ts'

afterAll(endPrograms)

const example = (path: string): string => fileURLToPath(new URL(`../../../examples/${path}`, import.meta.url))

it('every example has a README and is run here', () => {
  expect(readdirSync(example(''))).toEqual([
    '01-try-it',
    '02-one-server',
    '03-many-servers',
    '04-team',
    '05-existing-client',
    '06-memory',
    '07-replicas',
    '08-login',
  ])
  for (const name of readdirSync(example(''))) expect(readdirSync(example(name))).toContain('README.md')
})

it('an example that starts two gateways gives one of them a data directory of its own', () => {
  const starts = (name: string) =>
    readFileSync(example(`${name}/README.md`), 'utf8').match(/^(npm start --|dragoman serve) .*$/gm) ?? []
  const several = readdirSync(example('')).filter(name => starts(name).length > 1)
  expect(several).toEqual(expect.arrayContaining(['02-one-server', '03-many-servers']))
  for (const name of several)
    expect(starts(name).filter(line => !line.includes('--data')).length, name).toBeLessThanOrEqual(1)
})

it('01-try-it: the demo answers', async () => {
  const { origin } = await startServe(['--demo'])
  expect(
    await call(`${origin}/mcp`, 'tools/call', { name: 'example-echo', arguments: { message: 'hello' } }),
  ).toMatchObject({
    result: { content: [{ type: 'text', text: 'Echo: hello' }] },
  })
})

/** The demo server, at a URL of its own. */
const startDemo = async (): Promise<{ url: string }> => {
  const demo = await startTestGateway()
  onTestFinished(demo.close)
  return demo
}

it('02-one-server: a file of another client serves its remote server and its local one', async () => {
  const upstream = await startDemo()
  const gateway = await startServe(['--config', example('02-one-server/mcp.json')], {
    UPSTREAM_URL: upstream.url,
  })
  await gateway.saw(/^ +upstream +connected, 2026-07-28 \(modern\), \d+ tools\n/m)
  await gateway.saw(/^ +everything +connected, 2025-11-25 \(legacy\), \d+ tools\n/m)
  expect(
    await call(`${gateway.origin}/mcp/everything`, 'tools/call', { name: 'echo', arguments: { message: 'hello' } }),
  ).toMatchObject({ result: { content: [{ type: 'text', text: 'Echo: hello' }] } })
  for (const [door, name] of [
    ['/mcp', 'upstream__example-ping'],
    ['/mcp/upstream', 'example-ping'],
  ] as const) {
    const answer = await call(gateway.origin + door, 'tools/call', { name, arguments: {} })
    expect(answer).toMatchObject({ result: { content: [{ type: 'text', text: 'pong' }] } })
  }
})

type Tools = { result: { tools: { name: string; title?: string; description?: string }[] } }
const toolsOf = async (url: string, headers?: Record<string, string>) =>
  ((await call(url, 'tools/list', {}, headers)) as Tools).result.tools
/** A server that takes long to start joins the list later. */
const SLOW = { timeout: 30_000 }
const namesOf = async (url: string, headers?: Record<string, string>) =>
  (await toolsOf(url, headers)).map(({ name }) => name)

it('03-many-servers: a legacy process, a modern server and a built-in one are one, in three styles of names', async () => {
  const upstream = await startDemo()
  const env = { UPSTREAM_URL: upstream.url }
  const { origin } = await startServe(['--config', example('03-many-servers/mcp.json')], env)
  await expect
    .poll(() => namesOf(`${origin}/mcp`), SLOW)
    .toEqual(expect.arrayContaining(['docs__read_file', 'everything__echo', 'remote__example-ping']))
  await expect
    .poll(() => namesOf(`${origin}/mcp/slash`), SLOW)
    .toEqual(expect.arrayContaining(['docs/read_file', 'everything/echo']))
  expect(await namesOf(`${origin}/mcp/plain`)).toEqual(expect.arrayContaining(['read_file', 'example-ping']))
  for (const [name, args, text] of [
    ['everything__echo', { message: 'hello' }, 'Echo: hello'],
    ['remote/example-ping', {}, 'pong'],
    ['docs__read_file', { relative_path: 'configuration.md' }, '# Configure the gateway'],
  ] as const)
    expect(JSON.stringify(await call(`${origin}/mcp`, 'tools/call', { name, arguments: args }))).toContain(text)
})

/** Creates tokens in a data directory; each is the header a client sends. */
const tokensIn =
  (data: string) =>
  async (...args: string[]): Promise<Record<string, string>> => {
    const { code, stdout } = await runCommand(['token', 'create', ...args, '--json'], { env: { DRAGOMAN_DATA: data } })
    expect(code).toBe(0)
    return { authorization: `Bearer ${(JSON.parse(stdout) as { token: string }).token}` }
  }

it('04-team: two workspaces over the same servers, and each token sees what it may', async () => {
  const data = mkdtempSync(join(tmpdir(), 'dragoman-team-'))
  const create = tokensIn(data)
  const ada = await create('ada')
  const bob = await create('bob', '--workspace', 'library')
  const eve = await create('eve', '--workspace', 'work', '--policy', 'guest')
  const { origin } = await startServe(['--config', example('04-team/mcp.json')], { DRAGOMAN_DATA: data })
  const [work, library] = [`${origin}/mcp/work`, `${origin}/mcp/library`]
  expect(await namesOf(work, ada)).toEqual(expect.arrayContaining(['docs__read_file', 'demo__greet']))
  expect((await namesOf(work, ada)).filter(name => name.includes('test_'))).toEqual([])
  expect(await toolsOf(library, bob)).toEqual(
    expect.arrayContaining([expect.objectContaining({ name: 'read_file', title: 'Read a page of the manual' })]),
  )
  expect(await namesOf(library, bob)).not.toContain('list_dir')
  expect((await namesOf(work, eve)).sort()).toEqual(['demo__example-ping', 'demo__greet'])
  const greeting = await call(work, 'tools/call', { name: 'demo__greet', arguments: {} }, eve)
  expect(JSON.stringify(greeting)).toContain('Good morning')
  const hidden = await call(work, 'tools/call', { name: 'docs__read_file', arguments: { relative_path: 'a' } }, eve)
  expect(hidden).toMatchObject({ error: { code: -32602, message: 'Unknown tool: docs__read_file' } })
  for (const name of ['work', 'nowhere'])
    expect((await fetch(`${origin}/mcp/${name}`, { method: 'POST', body: '{}' })).status).toBe(401)
  rmSync(data, { recursive: true, force: true })
})

it('05-existing-client: the file of another client is one URL for all its servers, and one for each', async () => {
  const upstream = await startDemo()
  const env = { UPSTREAM_URL: upstream.url }
  const gateway = await startServe(['--config', example('05-existing-client/mcp.json')], env)
  const { origin } = gateway
  await expect
    .poll(() => namesOf(`${origin}/mcp`), SLOW)
    .toEqual(expect.arrayContaining(['everything__echo', 'remote__example-ping']))
  await expect.poll(() => namesOf(`${origin}/mcp/everything`), SLOW).toContain('echo')
  expect(await namesOf(`${origin}/mcp/remote`)).toContain('example-ping')
  expect(gateway.stderr()).toContain('ignored keys that are not ours: \\"globalShortcut\\"')
})

/** Many programs one after another. */
const LONG = { timeout: 60_000 }

it('06-memory: one for each person and one for all, for clients and the command line', LONG, async () => {
  const data = mkdtempSync(join(tmpdir(), 'dragoman-minds-'))
  const create = tokensIn(data)
  const ada = await create('ada', '--principal', 'ada')
  const ben = await create('ben', '--principal', 'ben')
  const robot = await create('robot', '--principal', 'robot', '--policy', 'reading')
  const serve = () => startServe(['--config', example('06-memory/mcp.json')], { DRAGOMAN_DATA: data })
  const memory = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(['memory', ...args], { env: { DRAGOMAN_DATA: data } })
    expect(code, stderr).toBe(0)
    return stdout
  }
  const use = (origin: string, who: Record<string, string>, name: string, args: object) =>
    call(`${origin}/mcp`, 'tools/call', { name, arguments: args }, who).then(answer => JSON.stringify(answer))

  const first = await serve()
  await use(first.origin, ada, 'own__write_memory', { text: 'Ada wants short answers.' })
  await use(first.origin, ada, 'team__write_memory', { text: 'The release is on 3 December 2026.' })
  await memory('add', 'Ben keeps the release notes.')
  expect(await use(first.origin, robot, 'team__write_memory', { text: 'no' })).toContain('Unknown tool')
  first.signal('SIGTERM')
  expect(await first.ended).toBe(0)

  const { origin } = await serve()
  const ask = (who: Record<string, string>, server: string, query: string) =>
    use(origin, who, `${server}__search_memory_facts`, { query })
  for (const who of [ada, ben, robot]) {
    expect(await ask(who, 'team', 'when is the release')).toContain('3 December 2026')
    expect(await ask(who, 'team', 'release notes')).toContain('Ben keeps')
  }
  expect(await ask(ada, 'own', 'short answers')).toContain('Ada wants')
  for (const who of [ben, robot]) expect(await ask(who, 'own', 'short answers')).not.toContain('Ada wants')
  expect(await memory('search', 'short answers', '--principal', 'ada')).toContain('Ada wants short answers.')
  expect(await memory('search', 'short answers')).toBe('Nothing was found.\n')
  expect(await memory('forget', '--principal', 'ada', '--group', 'main', '--yes')).toMatch(/^Erased 1 episode/)
  expect(await ask(ada, 'own', 'short answers')).not.toContain('Ada wants')
  expect(await memory('stats', '--principal', 'ada')).toContain('The memory of principal ada')
  rmSync(data, { recursive: true, force: true })
})

it('08-login: a server that wants OAuth is used after a login in a browser', async () => {
  const folders = [1, 2].map(() => mkdtempSync(join(tmpdir(), 'dragoman-login-'))) as [string, string]
  onTestFinished(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })
  const [trackerData, data] = folders
  const { authorization = '' } = await tokensIn(trackerData)('ada')
  const tracker = await startServe(['--config', example('08-login/tracker.json')], { DRAGOMAN_DATA: trackerData })
  const env = { TRACKER_URL: `${tracker.origin}/mcp`, DRAGOMAN_DATA: data }
  const { origin } = await startServe(['--config', example('08-login/mcp.json')], env)
  const tools = async () => (await runCommand(['tools', 'tracker'], { env: { DRAGOMAN_DATA: data } })).stdout
  expect(await tools()).toMatch(/^tracker\/login\t/)
  const login = startProgram(['login', 'tracker', '--no-browser'], { DRAGOMAN_DATA: data })
  const [link = ''] = await login.saw(/http:\S+/)
  const browser = new TestBrowser(origin, tracker.origin)
  const token = authorization.replace('Bearer ', '')
  const consent = await browser.submit(await browser.open(link), '/oauth/sign-in', { token })
  await browser.submit(consent, '/oauth/consent', { decision: 'allow' })
  expect(await login.ended).toBe(0)
  expect(await tools()).toContain('example-echo')
  expect((await runCommand(['logout', 'tracker'], { env: { DRAGOMAN_DATA: data } })).code).toBe(0)
  expect(await tools()).toMatch(/^tracker\/login\t/)
})
