import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli, startCli, startTestDaemon } from '../../support/cli.ts'
import { pseudoTerminalProblem, startInTerminal } from '../../support/pseudo-terminal.ts'
import { scriptedServer } from '../../support/scripted-server.ts'

const SLOW = { timeout: 10_000 } // on a busy machine

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
const PLAIN = { env: { NO_COLOR: '1' } }
const problem = pseudoTerminalProblem()
if (problem) console.warn(`skipped: the commands in a pseudo-terminal (${problem})`)

let daemon: Awaited<ReturnType<typeof startTestDaemon>>
let folder: string
beforeAll(async () => {
  daemon = await startTestDaemon({ mcpServers: { demo: { builtin: 'demo' } } })
  folder = mkdtempSync(join(tmpdir(), 'dragoman-terminal-'))
})
afterAll(async () => {
  await daemon.close()
  rmSync(folder, { recursive: true })
})

/** A browser that writes the link it is given to a file. */
const fakeBrowser = () => {
  const place = mkdtempSync(join(folder, 'browser-'))
  const [browser, seen] = [join(place, 'browser'), join(place, 'opened')]
  writeFileSync(seen, '')
  writeFileSync(browser, `#!/bin/sh\necho "$1" > '${seen}'\n`)
  chmodSync(browser, 0o755)
  return { browser, opened: () => readFileSync(seen, 'utf8') }
}

describe.skipIf(problem !== undefined)('in a terminal', () => {
  const start = (args: readonly string[], options: Parameters<typeof startInTerminal>[1] = {}) =>
    startInTerminal([process.execPath, MAIN, ...args, '--data', daemon.data], options)

  it('tools fits the width of the terminal', async () => {
    const terminal = start(['tools'], { columns: 60 })
    expect(await terminal.ended).toBe(0)
    const lines = terminal.screen().split('\n')
    expect(lines.filter(line => line.length > 60)).toEqual([])
    expect(lines).toContain('demo/example-echo               Echoes back the provided me…')
    expect(terminal.raw()).toContain('\u001b[2m')
  })

  it('call asks for each field, checks it, and sends the form', async () => {
    const terminal = start(['call', 'demo/test_elicitation_sep1034_defaults'], PLAIN)
    await terminal.shows('name [John Doe]:')
    terminal.type('Ann\r')
    await terminal.shows('age, a whole number [30]:')
    terminal.type('many\r')
    await terminal.shows('! expected a whole number')
    terminal.type('41\r')
    await terminal.shows('score, a number [95.5]:')
    terminal.type('\r')
    await terminal.shows('status [active]:')
    terminal.type('3\r')
    await terminal.shows('verified, yes or no [yes]:')
    terminal.type('n\r')
    await terminal.shows('Send this?')
    terminal.type('y\r')
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen()).toBe(`The server asks: Please review the form fields with defaults
  User name
  name [John Doe]: Ann
  User age
  age, a whole number [30]: many
  ! expected a whole number
  age, a whole number [30]: 41
  User score
  score, a number [95.5]:
  User status
    1) active
    2) inactive
    3) pending
  status [active]: 3
  Verification status
  verified, yes or no [yes]: n
  Send this? [Y]es, [n]o, [c]ancel: y
Elicitation completed: action=accept, content={"name":"Ann","age":41,"score":95.5,"status":"pending","verified":false}
`)
  })

  it('call lets the user choose several values, skip fields and decline', async () => {
    const terminal = start(['call', 'demo/test_elicitation_sep1330_enums'], PLAIN)
    await terminal.shows('untitledSingle (optional):')
    terminal.type('option7\r')
    await terminal.shows('! expected one of option1, option2, option3, got "option7"; did you mean option1?')
    terminal.type('option2\r')
    await terminal.shows('3) Third Option (value3)\n  titledSingle (optional):')
    terminal.type('First Option\r')
    await terminal.shows('legacyEnum (optional):')
    terminal.type('\r')
    await terminal.shows('untitledMulti, several with commas (optional):')
    terminal.type('1, option3\r')
    terminal.type('2\r') // before it is asked for
    await terminal.shows('Send this?')
    terminal.type('no\r')
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen()).toContain('Elicitation completed: action=decline, content={}')
  })

  it('call opens a link if the user agrees', async () => {
    const { browser, opened } = fakeBrowser()
    const terminal = start(['call', 'demo/test_elicitation_url'], { env: { NO_COLOR: '1', BROWSER: browser } })
    await terminal.shows(
      'https://example.com/visit\n  The link leads to example.com.\n  Open it? [y]es, [N]o, [c]ancel:',
    )
    terminal.type('y\r')
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen()).toContain('User response: action=accept')
    await expect.poll(opened, SLOW).toBe('https://example.com/visit\n')
  })

  it('Ctrl-C and Ctrl-D end a question', async () => {
    const interrupted = start(['call', 'demo/test_elicitation', 'message=Who?'], PLAIN)
    await interrupted.shows('username')
    interrupted.type('\u0003')
    expect(await interrupted.ended).toBe(130)
    expect(interrupted.screen()).toContain('dragoman: cancelled while calling')

    const ended = start(['call', 'demo/test_elicitation', 'message=Who?'], PLAIN)
    await ended.shows('username')
    ended.type('\u0004')
    expect(await ended.ended).toBe(0)
    expect(ended.screen()).toContain('User response: action=cancel')
  })

  it('Ctrl-C cancels a call at the server', async () => {
    const server = await scriptedServer(({ method: verb, body: { id, method = '' } }, response) => {
      if (verb !== 'POST') return void response.writeHead(405).end()
      if (id === undefined) return void response.writeHead(202).end()
      const result = {
        initialize: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'x', version: '1' },
        },
        'tools/list': { tools: [{ name: 'run', inputSchema: { type: 'object' } }] },
      }[method]
      if (method === 'tools/call') {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const params = { progressToken: id, progress: 1, total: 4, message: 'reading' }
        return void response.write(
          `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })}\n\n`,
        )
      }
      response.setHeader('content-type', 'application/json')
      const error = { code: -32601, message: 'no such method' }
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }))
    })
    const terminal = startInTerminal([process.execPath, MAIN, 'call', server.url, 'run'], PLAIN)
    await terminal.shows('[######------------------]  25% reading')
    terminal.type('\u0003')
    expect(await terminal.ended).toBe(130)
    expect(terminal.screen()).toBe('dragoman: cancelled while calling\n')
    await expect.poll(() => server.arrivals.map(({ body }) => body.method), SLOW).toContain('notifications/cancelled')
    await server.close()
  })
})

describe('in a terminal of this process', () => {
  it.each([
    ['', 'User response: action=decline'],
    ['c', 'User response: action=cancel'],
  ])('a link is not opened if the user answers %j', async (typed, result) => {
    const { browser, opened } = fakeBrowser()
    const args = ['call', 'demo/test_elicitation_url', '--data', daemon.data]
    const cli = startCli(args, { isTerminal: true, env: { NO_COLOR: '1', BROWSER: browser } })
    await expect.poll(cli.stderr, SLOW).toContain('Open it?')
    cli.type(`${typed}\r`)
    expect(await cli.ended).toMatchObject({ code: 0, stdout: `${result}\n` })
    expect(opened()).toBe('')
  })

  it.each([
    ['iTerm.app', { TERM_PROGRAM: 'iTerm.app' }, '\u001b]1337;File=inline=1;size=69:iVBOR'],
    ['kitty', { TERM: 'xterm-kitty' }, '\u001b_Ga=T,f=100,m=0;iVBOR'],
    ['another', {}, 'image-1.png'],
  ])('an image is shown by the protocol of the terminal, or saved: %s', async (_, env, shown) => {
    const args = ['call', 'demo/test_image_content', '--data', daemon.data]
    expect(await runCli(args, { isTerminal: true, env })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(shown),
    })
  })
})

describe('a pipe that is closed early', () => {
  it.each([
    ['tools', '2>&1 | head -1', 'demo/example-ping\tReturns a simple pong response\n'],
    ['call demo/test_simple_text', '| true', ''],
  ])('%s %s is no crash', async (command, rest, expected) => {
    const line = `"${process.execPath}" "${MAIN}" ${command} --data "${daemon.data}" ${rest}`
    const shell = spawn('sh', ['-c', line], { stdio: ['ignore', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    shell.stdout.on('data', text => (stdout += text))
    shell.stderr.on('data', text => (stderr += text))
    const [code] = await once(shell, 'close')
    expect([code, stdout, stderr]).toEqual([0, expected, ''])
  })

  it('ends watch', async () => {
    const line = `"${process.execPath}" "${MAIN}" watch lists --data "${daemon.data}" | head -1`
    const shell = spawn('sh', ['-c', line], { stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    shell.stdout.on('data', text => (stdout += text))
    await new Promise<void>(resolve => shell.stderr.on('data', text => String(text).includes('watching') && resolve()))
    const change = async () => {
      const call = spawn(process.execPath, [MAIN, 'call', 'demo/test_trigger_tool_change', '--data', daemon.data])
      await once(call, 'close')
    }
    const closed = once(shell, 'close')
    await change()
    await change() // the second line has no reader
    await closed
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\dT.*\tthe list of tools changed\n$/)
  })
})
