import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ExactNumber } from '../../../src/console/exact-json.ts'
import { capabilitiesOf, DEFAULT_SETTINGS } from '../../../src/console/mcp/client-settings.ts'
import { cliCommand } from '../../../src/console/pages/explore/copy/cli-command.ts'
import type { CopiedRequest } from '../../../src/console/pages/explore/copy/copied-request.ts'
import { curlCommand, jsonRpcText } from '../../../src/console/pages/explore/copy/curl-command.ts'
import { sdkV1Code, sdkV2Code } from '../../../src/console/pages/explore/copy/sdk-code.ts'
import { quoteWord } from '../../../src/console/pages/explore/copy/shell-quote.ts'
import { REVISIONS, type Revision } from '../../../src/protocol/revisions.ts'
import { startTestGateway } from '../../support/gateway.ts'

const run = promisify(execFile)
const shell = async (script: string): Promise<string> => (await run('sh', ['-c', script])).stdout

let gateway: Awaited<ReturnType<typeof startTestGateway>>
beforeAll(async () => {
  gateway = await startTestGateway()
})
afterAll(() => gateway.close())

/** Text that a shell or JavaScript would read as something else. */
const HOSTILE = `it's "$HOME" \`id\` $(id) \\ ! * ~ ; & | < > # \n äé😀`

const echo = (revision: Revision, more: Partial<CopiedRequest> = {}): CopiedRequest => ({
  url: `${gateway.url}/default`,
  revision,
  method: 'tools/call',
  params: { name: 'example-echo', arguments: { message: HOSTILE } },
  needsToken: false,
  version: '1',
  capabilities: capabilitiesOf(DEFAULT_SETTINGS),
  logLevel: 'debug',
  ...more,
})

describe('a word of the shell', () => {
  test.each([HOSTILE, '', "'", "''", '-n', '--x', 'a=b', 'plain', '/a/b.c', '$x', 'a b', '\\', '\n'])(
    '%j',
    async word => {
      expect(await shell(`for word in ${quoteWord(word)}; do printf '%s' "$word"; done`)).toBe(word)
    },
  )

  test('stays as it is where that is safe', () => {
    expect(quoteWord('http://127.0.0.1:8765/mcp/demo')).toBe('http://127.0.0.1:8765/mcp/demo')
  })
})

describe.each(REVISIONS)('copied as %s', revision => {
  test('curl gets the answer', async () => {
    expect(await shell(curlCommand(echo(revision)))).toContain(JSON.stringify(`Echo: ${HOSTILE}`).slice(1, -1))
  })

  test('the dragoman command has the same words', async () => {
    const words = await shell(cliCommand(echo(revision)).replace(/^dragoman /, `printf '%s\\0' `))
    const isOldest = revision === '2024-11-05'
    expect(words.split('\0')).toEqual([
      'call',
      `${gateway.url}/default${isOldest ? '/sse' : ''}`,
      'example-echo',
      JSON.stringify({ message: HOSTILE }),
      '--revision',
      revision,
      ...(isOldest ? ['--transport', 'sse'] : []),
      '--log-level',
      'debug',
      '',
    ])
  })

  test('the dragoman command gets the answer', async () => {
    const command = cliCommand(echo(revision)).replace(/^dragoman/, `${process.execPath} dist/main.js`)
    expect(await shell(command)).toContain(`Echo: it's "$HOME"`)
  })
})

describe('the chosen level of messages', () => {
  test('is that of the call: in _meta, in a message of the session, or as a flag', () => {
    const modern = echo('2026-07-28', { logLevel: 'error' })
    for (const text of [jsonRpcText(modern), curlCommand(modern)])
      expect(text).toMatch(/"io.modelcontextprotocol\/logLevel": ?"error"/)
    const session = curlCommand(echo('2025-11-25', { logLevel: 'error' }))
    expect(session).toContain('"method":"logging/setLevel","params":{"level":"error"}')
    expect(cliCommand(modern)).toContain('--log-level error')
  })

  test.each(['2025-11-25', '2026-07-28'] as const)('decides what curl hears as %s', async revision => {
    const params = { name: 'test_tool_with_logging', arguments: {} }
    const heard = async (logLevel: string): Promise<string> => shell(curlCommand(echo(revision, { params, logLevel })))
    expect(await heard('debug')).toContain('notifications/message')
    expect(await heard('error')).not.toContain('notifications/message')
  })
})

test('the dragoman command says what it does not send', async () => {
  const params = { name: 'example-echo', arguments: { message: 'hi' }, _meta: { 'a/b': 1 } }
  const command = cliCommand(echo('2026-07-28', { params }))
  expect(command).toMatch(/^# The command does not send _meta\.\ndragoman call /)
  expect(await shell(command.replace(/^dragoman/m, `${process.execPath} dist/main.js`))).toContain('Echo: hi')
  const read = { method: 'resources/read', params: { uri: 'test://x' }, logLevel: 'error' }
  expect(cliCommand(echo('2026-07-28', read))).toMatch(/^# The command does not send the log level error\.\n/)
})

describe('code', () => {
  const CODE = {
    v1: [sdkV1Code, '2025-11-25'],
    'v1 over HTTP+SSE': [sdkV1Code, '2024-11-05'],
    v2: [sdkV2Code, '2026-07-28'],
  } as const
  test.each(Object.entries(CODE))('SDK %s gets the answer', async (_name, [write, revision]) => {
    const code = write(echo(revision)).replace('console.log(result)', 'console.log(JSON.stringify(result))')
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code])
    expect(JSON.parse(stdout)).toMatchObject({ content: [{ type: 'text', text: `Echo: ${HOSTILE}` }] })
  })

  test('warns of numbers that JavaScript rounds', () => {
    const params = { name: 'x', arguments: { id: new ExactNumber('9007199254740993') } }
    expect(sdkV2Code(echo('2026-07-28', { params }))).toContain('JavaScript rounds numbers such as 9007199254740993')
    expect(jsonRpcText(echo('2026-07-28', { params }))).toContain('"id": 9007199254740993')
  })

  test('has a variable in place of the token', () => {
    const request = echo('2026-07-28', { needsToken: true })
    expect(curlCommand(request)).toContain('-H "authorization: Bearer $DRAGOMAN_TOKEN"')
    expect(cliCommand(request)).toContain('--token "$DRAGOMAN_TOKEN"')
    expect(sdkV1Code(request)).toContain('Authorization: `Bearer ${process.env.DRAGOMAN_TOKEN}`')
  })
})

test('prompts and resources have their own commands', () => {
  const prompt = { method: 'prompts/get', params: { name: 'p', arguments: { a: 'b c' } } }
  expect(cliCommand(echo('2026-07-28', prompt))).toContain(`dragoman prompt ${gateway.url}/default p 'a=b c'`)
  const read = { method: 'resources/read', params: { uri: 'test://x y' } }
  expect(cliCommand(echo('2026-07-28', read))).toContain(`dragoman read ${gateway.url}/default 'test://x y'`)
  expect(sdkV2Code(echo('2026-07-28', read))).toContain('client.readResource({')
})
