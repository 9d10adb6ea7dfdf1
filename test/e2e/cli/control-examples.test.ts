import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { documentedOutputs, IS_WRITING, normalizeOutput, writeOutputs } from '../../support/documented-output.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { modern, send } from '../../support/raw.ts'
import { readShell } from '../../support/shell-line.ts'
import { runCommand } from './in-process.ts'
import { endPrograms, startProgram, startServe } from './program.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const MAIN = join(ROOT, 'dist/main.js')
const SMALL = fileURLToPath(new URL('../../support/servers/stdio/server.mjs', import.meta.url))

const outputs = new Map<string, string>()
const documented = documentedOutputs()
let home: string
let upstream: Awaited<ReturnType<typeof startTestGateway>>
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'dragoman-home-'))
  upstream = await startTestGateway()
})
afterEach(() => vi.restoreAllMocks())
afterAll(async () => {
  await endPrograms()
  await upstream.close()
  rmSync(home, { recursive: true, force: true })
  if (IS_WRITING) writeOutputs(outputs)
})

const at = (name: string): string => join(home, name)
const write = (name: string, value: object): void => {
  mkdirSync(dirname(at(name)), { recursive: true })
  writeFileSync(at(name), JSON.stringify(value))
}

/** Compares what an example printed with docs/cli-examples.md. */
const compare = (line: string, text: string): void => {
  const output = normalizeOutput(text, {
    [`${process.execPath} ${EVERYTHING}`]: 'npx -y @modelcontextprotocol/server-everything',
    [new URL(upstream.url).origin]: 'https://example.com',
    [process.execPath]: '/usr/bin/node',
    [home]: '~',
  })
  outputs.set(line, output)
  if (!IS_WRITING) expect(output).toBe(documented.get(line))
}

/** Runs an example in an empty home directory. */
const runExample = async (line: string): Promise<string> => {
  vi.spyOn(process, 'cwd').mockReturnValue(home)
  vi.spyOn(process, 'argv', 'get').mockReturnValue([process.execPath, '/opt/dragoman/dist/main.js'])
  const env = {
    HOME: home,
    XDG_CONFIG_HOME: at('.config'),
    DRAGOMAN_DATA: at('data'),
    GITHUB_TOKEN: 'x',
    KEY: 'x',
    BROWSER: 'true',
  }
  const { code, stdout, stderr } = await runCommand(readShell(line).args, { env })
  expect([line, code, stderr]).toEqual([line, 0, expect.any(String)])
  return stdout + stderr
}

const check = async (line: string): Promise<void> => compare(line, await runExample(line))

const ADD = "dragoman add github https://example.com/mcp --header 'Authorization: Bearer ${GITHUB_TOKEN}'"
const ADD_OPENAPI = 'dragoman add pets --openapi https://example.com/openapi.json'
const ADD_KEY = `${ADD_OPENAPI} --header 'X-API-Key: \${KEY}'`
const SERVE_URL = 'dragoman serve https://example.com/mcp --header "Authorization: Bearer $TOKEN"'
const NPX = '-- npx -y @modelcontextprotocol/server-everything'

it('the examples of the configuration', async () => {
  write('.cursor/mcp.json', { mcpServers: { docs: { url: 'https://docs.example.com/mcp' } } })
  for (const line of [
    `dragoman add everything ${NPX}`,
    ADD,
    ADD_OPENAPI,
    'dragoman remove everything',
    'dragoman import',
  ])
    await check(line)
  await runExample('dragoman remove pets')
  await check(ADD_KEY)
})

it('the examples of the doctor', async () => {
  write('examined/dragoman.json', { mcpServers: { github: { url: upstream.url } } })
  const { origin } = new URL(upstream.url)
  const examples: readonly (readonly [string, readonly string[]])[] = [
    ['dragoman doctor http://127.0.0.1:8765/mcp', [upstream.url]],
    [`dragoman doctor ${NPX}`, ['--', process.execPath, EVERYTHING]],
    [
      'dragoman doctor github --config dragoman.json --json',
      ['github', '--config', at('examined/dragoman.json'), '--json'],
    ],
  ]
  for (const [line, args] of examples) {
    const { code, stdout } = await runCommand(['doctor', ...args])
    expect([line, code]).toEqual([line, 0])
    compare(
      line,
      stdout
        .replaceAll(origin, 'http://127.0.0.1:8765')
        .replace('demo unknown', 'demo 1.0.0')
        .replace('"unknown"', '"1.0.0"'),
    )
  }
})

it('the examples of clients', async () => {
  write('.gemini/settings.json', { theme: 'dark' })
  for (const line of ['dragoman link gemini', 'dragoman unlink gemini']) await check(line)
})

it('the examples of the running gateway', async () => {
  const small = { command: process.execPath, args: [SMALL, JSON.stringify({ stderr: 'hello from the server' })] }
  write('mcp.json', { mcpServers: { everything: small, demo: { builtin: 'demo' } } })
  const daemon = await startServe(['--config', at('mcp.json'), '--data', at('data'), '--no-watch'])
  await daemon.saw(/^ +everything +connected/m)
  await check('dragoman console')
  await check('dragoman status')
  await check('dragoman logs everything')
  await runExample('dragoman call demo/slow_compute seconds=60 --task')
  await check('dragoman tasks')
  await check('dragoman tasks cancel')
  await runExample('dragoman call demo/slow_compute seconds=1 --task')
  await check('dragoman tasks wait')
  write('mcp.json', { mcpServers: { demo: { builtin: 'demo' } } })
  for (const line of ['dragoman reload', 'dragoman restart', 'dragoman stop']) await check(line)
  expect(await daemon.ended).toBe(0)
}, 60_000)

it('the examples of recordings', async () => {
  write('mcp.json', { mcpServers: { demo: { builtin: 'demo' } } })
  const daemon = await startServe(['--config', at('mcp.json'), '--data', at('data'), '--no-watch'])
  const { origin, token } = JSON.parse(readFileSync(at('data/daemon.json'), 'utf8')) as Record<string, string>
  const headers = { authorization: `Bearer ${token}` }
  const call = modern(1, 'tools/call', { name: 'example-echo', arguments: { message: 'hello' } })
  expect((await send(`${origin}/mcp`, { ...call, headers: { ...call.headers, ...headers } })).status).toBe(200)
  const exported = await fetch(`${origin}/admin/recordings/export?method=tools/call`, { headers })
  writeFileSync(at('recordings.jsonl'), await exported.text())
  await check('dragoman replay recordings.jsonl')
  const replay = async (line: string, ...args: string[]): Promise<void> => {
    const { code, stdout, stderr } = await runCommand(['replay', ...args])
    expect([line, code]).toEqual([line, 0])
    compare(line, stdout + stderr)
  }
  const file = at('recordings.jsonl')
  await replay('dragoman replay https://example.com/mcp recordings.jsonl', upstream.url, file)
  const stdio = ['--', process.execPath, MAIN, 'stdio', '--data', at('data')]
  await replay('dragoman replay recordings.jsonl -- node server.js', file, ...stdio)
  await replay('dragoman replay recordings.jsonl --as server', file, '--as', 'server')
  const program = startProgram(['replay', file, '--as', 'server', '--port', '0'])
  await program.saw(/plays .*\n/)
  compare(
    'dragoman replay recordings.jsonl --as server --port 8766',
    program.stdout().replace(/:\d+\/mcp/, ':8766/mcp'),
  )
  for (const each of [program, daemon]) {
    each.signal('SIGTERM')
    expect(await each.ended).toBe(0)
  }
}, 60_000)

it.each<[string, readonly string[], number]>([
  ['dragoman serve --config mcp.json', ['--config', 'mcp.json'], 1],
  [SERVE_URL, [], 1],
  [`dragoman serve ${NPX}`, ['--', process.execPath, EVERYTHING], 1],
])(
  '%s',
  async (line, given, servers) => {
    write('mcp.json', { mcpServers: { demo: { builtin: 'demo' } } })
    const args = given.length > 0 ? given : [upstream.url, '--header', 'Authorization: Bearer x']
    const daemon = await startServe(args, {}, home)
    await daemon.saw(new RegExp(`(connected.*\\n[^]*){${servers}}`))
    daemon.signal('SIGTERM')
    await daemon.ended
    const output = daemon.stdout()
    // The program has another name here than its package.
    const named = output.replaceAll(/^ {2}default {2}/gm, '  default     ').replaceAll(/index {4}/g, 'everything  ')
    compare(line, line.includes('npx') ? named.replaceAll('index', 'everything') : output)
  },
  60_000,
)

it.each(['bash', 'zsh', 'fish'])('dragoman completion %s', async shell => {
  const { code, stdout } = await runCommand(['completion', shell])
  expect([code, stdout.includes('dragoman')]).toEqual([0, true])
})

it('every example of --help is run by a test, and the page has its output', async () => {
  const { stdout } = await runCommand(['help'])
  const commands = [...stdout.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name = '']) => name)
  expect(commands).toContain('replay')
  const examples: string[] = []
  for (const command of commands) {
    const { stdout: help } = await runCommand([command, '--help'])
    const [, block = ''] = /^Examples:\n((?: +dragoman .*\n)+)/m.exec(help) ?? []
    examples.push(
      ...block
        .trimEnd()
        .split('\n')
        .map(line => line.trim().replace(/ {3,}\S.*$/, '')),
    )
  }
  const known = documentedOutputs()
  expect(examples.filter(line => line !== '' && !known.has(line))).toEqual([])
})

it('every line of docs/cli.md is run by a test, and the page has its output', () => {
  const page = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8')
  const lines = [...page.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) => block.trimEnd().split('\n'))
  const commands = lines.map(line => line.replace(/ {2,}# .*$/, '').replace(/ \| jq .*$/, ''))
  const missing = commands.filter(line => !line.includes('completion') && !documentedOutputs().has(line))
  expect(missing).toEqual([])
})
