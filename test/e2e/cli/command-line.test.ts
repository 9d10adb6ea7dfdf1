import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runCommand } from './in-process.ts'
import { endPrograms, runProgram } from './program.ts'

afterAll(endPrograms)

describe('dragoman', () => {
  it.each([[[]], [['--help']], [['-h']], [['help']]])('%j shows its commands', async args => {
    const { code, stdout } = await runCommand(args)
    expect(code).toBe(0)
    expect(stdout).toMatch(/Usage: dragoman <command>.*\n {2}serve +run the gateway/s)
  })

  it('serve --help shows the flags and starts nothing', async () => {
    const { code, stdout } = await runCommand(['serve', '--help'])
    expect(code).toBe(0)
    for (const flag of ['--config FILE', '--host HOST', '--port PORT', '--log-level LEVEL'])
      expect(stdout).toContain(flag)
  })

  it.each([
    [['help', 'serve'], 'Usage: dragoman serve [flags]', '--port PORT'],
    [['help', 'memory', 'add'], 'Usage: dragoman memory add [TEXT] [flags]', '--source KIND   text (default)'],
    [['memory', 'add', '--help'], 'Usage: dragoman memory add [TEXT] [flags]', '--source KIND   text (default)'],
    [['token', 'create', '--help'], 'Usage: dragoman token create NAME [flags]', '--expires TIME     how long'],
  ])('%j shows the help of that alone', async (args, usage, flag) => {
    const { code, stdout } = await runCommand(args)
    expect([code, stdout.split('\n')[0]]).toEqual([0, usage])
    expect(stdout.replaceAll(/ +/g, ' ')).toContain(flag.replaceAll(/ +/g, ' '))
    expect(stdout).not.toContain('--subject')
  })

  it('memory --help says which actions a flag belongs to', async () => {
    const { stdout } = await runCommand(['memory', '--help'])
    expect(stdout).toMatch(/--yes +forget: do not ask.*; backup: replace an existing file/)
    expect(stdout).toMatch(/--workspace NAME +the memory of this workspace/)
  })

  it('--version prints it alone', async () => {
    const { code, stdout } = await runProgram(['--version'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  it.each([
    [['serv'], '"serv" is not a command; did you mean "serve"?'],
    [['constructor'], '"constructor" is not a command'],
    [['serve', '--prot', '1'], "Unknown option '--prot'; did you mean '--port'?"],
    [['serve', 'now'], "Unexpected argument 'now'"],
    [['serve', '--port'], "Option '--port <value>' argument missing"],
    [['serve', '--port', '70000'], '--port: expected a whole number from 0 to 65535'],
    [['serve', '--host', ''], '--host: expected a host name or address'],
    [['serve', '--log-level', 'loud'], '--log-level: expected one of debug, info, warn, error, silent'],
  ])('%j is wrong, says so and exits 2', async (args, message) => {
    const { code, stdout, stderr } = await runCommand(args)
    expect(code).toBe(2)
    expect(stderr).toContain(`dragoman: ${message}`)
    expect(stderr).not.toMatch(/^ {4}at /m)
    expect(stdout).toBe('')
  })

  it('with a wrong configuration says where and what, and exits 2', async () => {
    const file = join(tmpdir(), `dragoman-wrong-${process.pid}.json`)
    await writeFile(file, '{\n  "listen": { "port": "x" },\n  "mcpServers": { "a": { "url": "nope" } }\n}')
    const { code, stdout, stderr } = await runCommand(['serve', '--config', file])
    expect(code).toBe(2)
    expect(stderr).toBe(
      `dragoman: ${file} has 2 problems:\n` +
        '  line 2: listen.port: expected a whole number from 0 to 65535\n' +
        '  line 3: mcpServers.a.url: not a valid URL; expected something like "https://example.com/mcp"\n',
    )
    expect(stdout).toBe('')
  })

  it('with a port in use says so and exits 1', async () => {
    const other = createServer()
    await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    const { code, stderr } = await runProgram(['serve', '--port', String(port)])
    other.close()
    expect(code).toBe(1)
    expect(stderr).toContain(`dragoman: port ${port} on 127.0.0.1 is in use`)
    expect(stderr).not.toMatch(/^ {4}at /m)
  })
})
