import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli, startTestDaemon } from '../../support/cli.ts'

const EVERYTHING = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
)
const CONFIG = { mcpServers: { demo: { builtin: 'demo' }, other: { builtin: 'demo' } } }

let daemon: Awaited<ReturnType<typeof startTestDaemon>>
let folder: string
let file: string
beforeAll(async () => {
  daemon = await startTestDaemon(CONFIG)
  folder = mkdtempSync(join(tmpdir(), 'dragoman-client-'))
  file = join(folder, 'mcp.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { demo: { builtin: 'demo' } } }))
})
afterAll(async () => {
  await daemon.close()
  rmSync(folder, { recursive: true })
})

/** The three kinds of targets: words before the name of the tool, and after its arguments. */
const TARGETS: readonly (readonly [string, () => { before: string[]; prefix: string; after: string[] }])[] = [
  ['the daemon', () => ({ before: [], prefix: 'demo/', after: ['--data', daemon.data] })],
  ['a file', () => ({ before: [], prefix: 'demo/', after: ['--config', file] })],
  ['a URL', () => ({ before: [`${daemon.origin}/mcp/demo`], prefix: '', after: [] })],
  ['a URL over SSE', () => ({ before: [`${daemon.origin}/mcp/demo/sse`], prefix: '', after: ['--transport', 'sse'] })],
]

describe.each(TARGETS)('with %s', (_, target) => {
  it('tools lists every tool, one per line', async () => {
    const { before, prefix, after } = target()
    const { code, stdout } = await runCli(['tools', ...before, ...after])
    expect(code).toBe(0)
    expect(stdout).toContain(`${prefix}example-echo\tEchoes back the provided message\n`)
  })

  it('describe shows the signature and an example that works', async () => {
    const { before, prefix, after } = target()
    const { code, stdout } = await runCli(['describe', ...before, `${prefix}test_x_mcp_header`, ...after])
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(`${prefix}test_x_mcp_header(region: string, level?: integer, note?: string)\n`),
    ])
    const [, example = ''] = /Example: dragoman (call .*test_x_mcp_header region=text)\n$/.exec(stdout) ?? []
    expect(await runCli([...example.split(' '), ...after])).toMatchObject({
      code: 0,
      stdout: 'Region text, level not given\n',
    })
  })

  it('call types the arguments by the schema and prints the result', async () => {
    const { before, prefix, after } = target()
    const words = [...before, `${prefix}test_x_mcp_header`, 'region=eu', 'level=3', ...after]
    expect(await runCli(['call', ...words])).toEqual({ code: 0, stdout: 'Region eu, level 3\n', stderr: '' })
  })

  it('call answers a question with --answer', async () => {
    const { before, prefix, after } = target()
    const answers = ['--answer', 'username=ann', '--answer', 'email=a@b.c']
    const words = [...before, `${prefix}test_elicitation`, 'message=Who?', ...answers, ...after]
    const { code, stdout } = await runCli(['call', ...words])
    expect([code, stdout]).toEqual([0, 'User response: action=accept, content={"username":"ann","email":"a@b.c"}\n'])
  })
})

describe('a workspace whose names do not say the server', () => {
  let plain: Awaited<ReturnType<typeof startTestDaemon>>
  beforeAll(async () => {
    const files = { builtin: 'files', root: folder }
    const workspaces = { default: { servers: ['demo', 'files'], names: 'plain' } }
    plain = await startTestDaemon({ mcpServers: { demo: { builtin: 'demo' }, files }, workspaces })
  })
  afterAll(() => plain.close())
  const run = (...words: string[]) => runCli([...words, '--data', plain.data])
  const namesIn = (stdout: string) => stdout.split('\n').map(line => line.split('\t')[0])

  it('lists tools and resources with their servers, and those of one server', async () => {
    expect(namesIn((await run('tools')).stdout)).toEqual(
      expect.arrayContaining(['demo/example-echo', 'files/read_file']),
    )
    expect(namesIn((await run('tools', 'files')).stdout)).toEqual([
      ...['list_dir', 'read_file', 'find_file', 'search_for_pattern'].map(name => `files/${name}`),
      '',
    ])
    expect((await run('resources', 'files')).stdout).not.toContain('test://')
    expect((await run('resources', 'demo', '--revision', '2025-06-18')).stdout).not.toContain('file://')
  })

  it('calls a tool by the name with its server', async () => {
    expect(await run('call', 'demo/example-echo', 'message=x')).toMatchObject({ code: 0, stdout: 'Echo: x\n' })
  })
})

it('a command after -- is started, called and ended', async () => {
  const { code, stdout } = await runCli(['call', 'get-sum', 'a=1', 'b=2', '--', process.execPath, EVERYTHING])
  expect([code, stdout]).toEqual([0, 'The sum of 1 and 2 is 3.\n'])
})

it('describe shows an example for a command after --', async () => {
  const { stdout } = await runCli(['describe', 'get-sum', '--', process.execPath, EVERYTHING])
  expect(stdout).toContain(`\nExample: dragoman call get-sum a=1.5 b=1.5 -- ${process.execPath} ${EVERYTHING}\n`)
})

it('the daemon is called in an older revision where --revision says so', async () => {
  const words = ['demo/example-echo', 'message=x', '--data', daemon.data, '--revision', '2024-11-05']
  expect(await runCli(['call', ...words])).toMatchObject({ code: 0, stdout: 'Echo: x\n' })
})

it('--json prints the result as the server wrote it', async () => {
  const { code, stdout } = await runCli(['call', `${daemon.origin}/mcp/demo`, 'test_structured_content', '--json'])
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    expect.objectContaining({ structuredContent: { temperature: 22.5, conditions: 'sunny' } }),
  ])
})

describe('errors', () => {
  const call = (...words: string[]) => runCli(['call', ...words, '--data', daemon.data])
  it.each<[string, string[], number, string]>([
    ['an unknown tool', ['demo/example-eco'], 2, 'has no tool "example-eco"; did you mean demo/example-echo?'],
    ['an unknown server', ['dmo/example-echo'], 2, 'there is no server "dmo"; did you mean "demo"?'],
    ['a name that two servers have', ['example-echo'], 2, 'call one of demo/example-echo, other/example-echo'],
    [
      'a wrong type',
      ['demo/test_x_mcp_header', 'region=eu', 'level=much'],
      2,
      'level: expected integer, got "much"\nUsage: demo/test_x_mcp_header(region: string, level?: integer, note?: string)',
    ],
    [
      'a missing argument',
      ['demo/example-echo'],
      2,
      'missing message\n  message: The message to echo back\nUsage: demo/example-echo(message: string)',
    ],
    ['an unknown argument', ['demo/example-echo', 'mesage=x'], 2, 'there is no argument mesage; did you mean message?'],
    ['invalid JSON', ['demo/example-echo', 'message:=x'], 2, 'message:= is not valid JSON'],
    [
      'a word that is no argument',
      ['demo/example-echo', 'hello'],
      2,
      '"hello": expected key=value, key:=json, @file or -',
    ],
    [
      'a tool error',
      ['demo/test_error_handling'],
      1,
      'the tool reported an error: This tool intentionally returns an error',
    ],
    [
      'a question without a terminal',
      ['demo/test_elicitation', 'message=Who?'],
      2,
      'pass --answer username=VALUE --answer email=VALUE, or --decline',
    ],
  ])('%s', async (_, words, code, message) => {
    const result = await call(...words)
    expect([result.code, result.stdout, result.stderr]).toEqual([code, '', expect.stringContaining(message)])
  })
})
