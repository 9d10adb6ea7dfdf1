import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, callThatWaits, openSession } from './call.ts'
import { endPrograms, runProgram, startServe } from './program.ts'

const SMALL = fileURLToPath(new URL('../../support/servers/stdio/server.mjs', import.meta.url))

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-run-'))
})
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true })
})

const write = async (config: object): Promise<string> => {
  const file = join(folder, `${crypto.randomUUID()}.json`)
  await writeFile(file, JSON.stringify(config))
  return file
}

describe('dragoman serve', () => {
  it('without a configuration serves a memory and the files of the folder, and says so', async () => {
    const program = await startServe()
    await program.saw(/^ +memory +connected, 2026-07-28 \(modern\), \d+ tools\n/m)
    await program.saw(/^ +files +connected, 2026-07-28 \(modern\), \d+ tools\n/m)
    expect(program.stdout()).toContain('No configuration: serving an agent memory, stored in ')
    expect(program.stdout()).toContain(`the files of ${process.cwd()}, read-only.`)
    const listed = JSON.stringify(await call(`${program.origin}/mcp`, 'tools/list'))
    for (const name of ['add_memory', 'search_memory_facts', 'read_file']) expect(listed).toContain(`"name":"${name}"`)
    program.signal('SIGTERM')
    expect(await program.ended).toBe(0)
  })

  it('uses the file it finds in the current directory, names it, and reloads it', async () => {
    const project = await mkdtemp(join(folder, 'project-'))
    const file = join(await realpath(project), 'dragoman.json')
    await writeFile(file, JSON.stringify({ mcpServers: { demo: { builtin: 'demo' } } }))
    const program = await startServe([], {}, project)
    await program.saw(new RegExp(`^configuration ${file}$`, 'm'))
    await program.saw(/^ +demo +connected/m)
    expect(program.stdout()).not.toContain('No configuration')
    await writeFile(file, JSON.stringify({ mcpServers: {} }))
    await program.saw(/mcpServers: names no server/, 'stderr')
    const { stdout } = await runProgram(['check', '--offline'], project)
    expect(stdout).toContain(`${file} has a problem:`)
    program.signal('SIGTERM')
    expect(await program.ended).toBe(0)
  })

  it('at log level debug shows each request and what its processes write to stderr', async () => {
    const small = { command: process.execPath, args: [SMALL, JSON.stringify({ stderr: 'hello from the server' })] }
    const config = await write({ mcpServers: { small } })
    const program = await startServe(['--config', config, '--log-level', 'debug'])
    await call(`${program.origin}/mcp`, 'tools/call', { name: 'echo', arguments: { text: 's3cret argument' } })
    await program.saw(/"server":"small","text":"hello from the server","msg":"server wrote to stderr"/, 'stderr')
    const [line] = await program.saw(/^.*"method":"tools\/call".*"msg":"request ended"}$/m, 'stderr')
    expect(JSON.parse(line)).toMatchObject({ level: 20, workspace: 'default', server: 'small', outcome: 'ok' })
    expect(program.stderr()).not.toContain('s3cret')
  })

  it('serves the demo when asked', async () => {
    const program = await startServe(['--demo'])
    await program.saw(/^ +demo +connected, 2026-07-28 \(modern\), \d+ tools\n/m)
    expect(program.stdout()).toMatch(
      /^dragoman \d+\.\d+\.\d+ listening on http:\/\/127\.0\.0\.1:\d+\n {2}default +http:\/\/127\.0\.0\.1:\d+\/mcp\n/,
    )
    expect((await fetch(`${program.origin}/healthz`)).status).toBe(200)
    const answer = await call(`${program.origin}/mcp`, 'tools/call', {
      name: 'example-echo',
      arguments: { message: 'hello' },
    })
    expect(JSON.stringify(answer)).toContain('Echo: hello')
    program.signal('SIGTERM')
    expect(await program.ended).toBe(0)
  })

  it('shows what cannot be served, and serves the rest', async () => {
    const config = await write({
      theme: 'dark',
      mcpServers: {
        files: { command: 'no-such-server' },
        secret: { url: 'http://127.0.0.1:1/', headers: { authorization: '${DRAGOMAN_TEST_UNSET}' } },
        gone: { url: 'http://127.0.0.1:1/mcp' },
        off: { builtin: 'demo', disabled: true },
        demo: { builtin: 'demo' },
      },
    })
    const program = await startServe(['--config', config])
    await program.saw(/^ +demo +connected/m)
    expect(program.stdout()).toMatch(/^ +files +down: .*"no-such-server" was not found \(PATH was searched: /m)
    expect(program.stdout()).toMatch(/^ +secret +unavailable: .*the variable DRAGOMAN_TEST_UNSET is not set/m)
    expect(program.stdout()).toMatch(/^ +gone +down: \S/m)
    expect(program.stdout()).toMatch(/^ +off +disabled/m)
    expect(program.stderr()).toContain('ignored keys that are not ours: \\"theme\\"')
    expect(JSON.stringify(await call(`${program.origin}/mcp/demo`, 'tools/list'))).toContain('example-echo')
    program.signal('SIGINT')
    expect(await program.ended).toBe(0)
  })

  it('says for whom it waits, and ends while it does', async () => {
    const silent = { command: process.execPath, args: ['-e', 'process.stdin.resume()'] }
    const program = await startServe(['--config', await write({ mcpServers: { silent, demo: { builtin: 'demo' } } })])
    await program.saw(/\nWaiting for silent \.\.\.\n/)
    program.signal('SIGTERM')
    expect(await program.ended).toBe(0)
  })

  it('logs JSON lines on stderr, at the level asked for', async () => {
    const config = await write({ theme: 'dark', mcpServers: 'default' })
    const loud = await startServe(['--config', config])
    loud.signal('SIGTERM')
    await loud.ended
    const lines = loud.stderr().trim().split('\n')
    expect(lines.map(line => (JSON.parse(line) as { msg: string }).msg)).toContain(
      'ignored keys that are not ours: "theme"',
    )

    const silent = await startServe(['--config', config, '--log-level', 'silent'])
    silent.signal('SIGTERM')
    await silent.ended
    expect(silent.stderr()).toBe('')
  })

  it('ends within a second of SIGTERM, though a client holds a stream open', async () => {
    const program = await startServe(['--demo'])
    const url = `${program.origin}/mcp`
    const stream = await fetch(url, { headers: await openSession(url) })
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
    const started = performance.now()
    program.signal('SIGTERM')
    await expect(stream.text()).resolves.toBeDefined() // ended properly, not cut off
    expect(await program.ended).toBe(0)
    expect(performance.now() - started).toBeLessThan(1000)
  })

  it('gives calls in flight their time, and then ends their streams properly', async () => {
    const program = await startServe(['--demo', '--config', await write({ limits: { shutdownMs: 300 } })])
    const reader = await callThatWaits(`${program.origin}/mcp`)
    const started = performance.now()
    program.signal('SIGTERM')
    while (!(await reader.read()).done);
    expect(performance.now() - started).toBeGreaterThan(290)
    expect(await program.ended).toBe(0)
  })

  it('ends at once on a second signal', async () => {
    const program = await startServe(['--demo'])
    const reader = await callThatWaits(`${program.origin}/mcp`)
    program.signal('SIGINT')
    await program.saw(/"msg":"closing"/, 'stderr')
    program.signal('SIGINT')
    expect(await program.ended).toBe(130)
    await expect(reader.read()).rejects.toThrow() // cut off
  })
})
