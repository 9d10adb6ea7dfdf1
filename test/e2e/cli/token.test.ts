import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { modern, send } from '../../support/raw.ts'
import { runCommand } from './in-process.ts'
import { endPrograms, type Program, startServe } from './program.ts'

let data: string
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'dragoman-token-'))
})
afterEach(async () => {
  await endPrograms()
  await rm(data, { recursive: true })
})

const token = (...args: string[]) => runCommand(['token', ...args, '--data', data])

interface Created {
  readonly id: string
  readonly token: string
}
const create = async (...args: string[]): Promise<Created> =>
  JSON.parse((await token('create', ...args, '--json')).stdout) as Created

describe('dragoman token', () => {
  it('create shows the secret once and keeps only its hash', async () => {
    const { code, stdout } = await token('create', 'laptop', '--workspace', 'a', '--workspace', 'b', '--expires', '30d')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^Created token [0-9a-f]{10} "laptop": workspaces a, b, until \d{4}-\d\d-\d\dT.*Z\. Copy it now: it will not be shown again\.\n\n {2}drg_[\w-]{43}\n\n/,
    )
    expect(stdout).toContain('From now on every caller needs a token.')
    const file = join(data, 'tokens.json')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readFile(file, 'utf8')).not.toContain('drg_')
    expect((await token('list')).stdout).not.toContain('drg_')
    expect((await token('create', 'phone')).stdout).not.toContain('From now on')
  })

  it('create --json is for programs', async () => {
    const made = await create('ci', '--principal', 'robots', '--expires', '1h')
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{10}$/),
      name: 'ci',
      principal: 'robots',
      workspaces: ['*'],
      policy: null,
      admin: false,
      created: expect.any(String),
      expires: expect.any(String),
      token: expect.stringMatching(/^drg_/),
    })
    const { created, expires } = made as Created & { created: string; expires: string }
    expect(Date.parse(expires) - Date.parse(created)).toBe(3_600_000)
  })

  it('list shows every token, also as JSON', async () => {
    expect((await token('list')).stdout).toBe(`There are no tokens in ${join(data, 'tokens.json')}.\n`)
    const one = await create('one', '--workspace', 'a', '--policy', 'reading')
    const two = await create('two', '--principal', 'ada', '--expires', '1y', '--admin')
    const lines = (await token('list')).stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(/^ID +NAME +PRINCIPAL +WORKSPACES +POLICY +ADMIN +CREATED +EXPIRES +LAST USED$/)
    expect(lines[1]).toMatch(
      new RegExp(`^${one.id} +one +${one.id} +a +reading +- +\\d{4}-\\d\\d-\\d\\d +never +never$`),
    )
    expect(lines[2]).toMatch(
      new RegExp(`^${two.id} +two +ada +\\* +- +yes +\\d{4}-\\d\\d-\\d\\d +\\d{4}-\\d\\d-\\d\\d +never$`),
    )
    expect(JSON.parse((await token('list', '--json')).stdout)).toMatchObject([
      { id: one.id, workspaces: ['a'], policy: 'reading', expires: null, lastUsed: null },
      { id: two.id, principal: 'ada', admin: true },
    ])
  })

  it('create --admin allows no limit, because its holder could remove it', async () => {
    for (const limit of [
      ['--workspace', 'a'],
      ['--policy', 'reading'],
    ]) {
      const refused = await token('create', 'x', '--admin', ...limit)
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--admin: a token that may change')])
    }
  })

  it('revoke takes one away, and says when there is none', async () => {
    const one = await create('one')
    const two = await create('two')
    const { code, stdout } = await token('revoke', one.id)
    expect(code).toBe(0)
    expect(stdout).toBe(`Revoked token ${one.id} "one"; it is rejected from now on.\n`)
    expect(JSON.parse((await token('list', '--json')).stdout)).toMatchObject([{ id: two.id }])
    const again = await token('revoke', one.id)
    expect(again.code).toBe(1)
    expect(again.stderr).toBe(
      `dragoman: there is no token with the id or name "${one.id}"; "dragoman token list" shows them\n`,
    )
  })

  it('revoking nothing creates no file, which would lock the gateway', async () => {
    expect((await token('revoke', 'x')).code).toBe(1)
    await expect(stat(join(data, 'tokens.json'))).rejects.toThrow('ENOENT')
  })

  it.each<[string[], string]>([
    [['create'], 'expected dragoman token create NAME'],
    [['create', ' '], 'the name: expected 1 to 100 printable characters'],
    [['create', 'a', 'b'], "Unexpected argument 'b'"],
    [['create', 'a', '--expires', 'soon'], '--expires: expected a time like 45m, 12h, 30d, 6w or 1y'],
    [['create', 'a', '--expires', '0d'], '--expires: expected a time'],
    [['create', 'a', '--expires', '999999999y'], '--expires: expected a time'],
    [['create', 'a', '--workspace', 'a/b'], '--workspace: "a/b" is not a valid workspace name'],
    [['create', 'a', '--principal', ''], '--principal: expected 1 to 100 printable characters'],
    [['create', 'a', '--expire', '1d'], "Unknown option '--expire'; did you mean '--expires'?"],
    [['list', 'a'], "Unexpected argument 'a'"],
    [['list', '--workspace', 'a'], "Unknown option '--workspace'"],
    [['crate', 'a'], '"crate" is not an action; did you mean "create"?'],
  ])('%j is wrong, says so and exits 2', async (args, message) => {
    const { code, stdout, stderr } = await token(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(`dragoman: ${message}`)
    expect(stdout).toBe('')
    await expect(stat(join(data, 'tokens.json'))).rejects.toThrow('ENOENT')
  })

  it('says so when the file is broken, and leaves it', async () => {
    await writeFile(join(data, 'tokens.json'), '{', { mode: 0o600 })
    for (const args of [['create', 'a'], ['list'], ['revoke', 'a']]) {
      const { code, stderr } = await token(...args)
      expect(code).toBe(2)
      expect(stderr).toContain('tokens.json is broken')
    }
    expect(await readFile(join(data, 'tokens.json'), 'utf8')).toBe('{')
  })

  it('--help shows the actions and their flags', async () => {
    const { code, stdout } = await runCommand(['token', '--help'])
    expect(code).toBe(0)
    for (const text of ['create NAME', 'list', 'revoke ID', '--workspace', '--expires', '--principal', '--json'])
      expect(stdout).toContain(text)
  })
})

describe('dragoman serve with tokens', () => {
  const PING = modern(1, 'tools/call', { name: 'example-ping', arguments: {} })
  const ping = async (origin: string, secret?: string): Promise<number> => {
    const headers = { ...PING.headers, ...(secret && { authorization: `Bearer ${secret}` }) }
    return (await send(`${origin}/mcp`, { body: PING.body, headers })).status
  }
  /** Waits until the daemon has read its tokens for the nth time. */
  const hasRead = (program: Program, times: number): Promise<unknown> =>
    program.saw(new RegExp(`("msg":"tokens read"[^]*){${times}}`), 'stderr')

  it('takes notice of what is created and revoked while it runs, and never logs a token', async () => {
    const program = await startServe(['--data', data, '--log-level', 'debug'])
    expect(await ping(program.origin)).toBe(200)
    const one = await create('one')
    await hasRead(program, 1)
    const two = await create('two', '--workspace', 'other')
    await hasRead(program, 2)
    expect(await ping(program.origin)).toBe(401)
    expect(await ping(program.origin, one.token)).toBe(200)
    expect(await ping(program.origin, two.token)).toBe(403)
    await token('revoke', one.id)
    await hasRead(program, 3)
    expect(await ping(program.origin, one.token)).toBe(401)
    program.signal('SIGTERM')
    expect(await program.ended).toBe(0)

    const output = program.stdout() + program.stderr()
    expect(output).toContain('request rejected')
    for (const secret of [one.token, two.token]) expect(output).not.toContain(secret.slice('drg_'.length))
    expect(output).not.toMatch(/bearer /i)
  })

  it('shows when a token was used last', async () => {
    const one = await create('one')
    const program = await startServe(['--data', data])
    await ping(program.origin, one.token)
    program.signal('SIGTERM')
    await program.ended
    expect((await token('list')).stdout).toMatch(/ \d{4}-\d\d-\d\d \d\d:\d\d\n$/)
  })

  it('refuses to listen beyond loopback without tokens, exits 2 and says what to do', async () => {
    const { code, stdout, stderr } = await runCommand(['serve', '--port', '0', '--host', '0.0.0.0', '--data', data])
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toMatch(
      /^dragoman: refusing to listen on 0\.0\.0\.0, .*dragoman token create NAME.*127\.0\.0\.1.*--insecure\n$/,
    )
  })

  it('listens beyond loopback with --insecure', async () => {
    const program = await startServe(['--host', '0.0.0.0', '--insecure', '--data', data])
    expect(await ping(program.origin.replace('0.0.0.0', '127.0.0.1'))).toBe(200)
    expect(program.stderr()).toContain('everybody who reaches this address may use every server')
  })

  it('does not start with a broken file of tokens', async () => {
    await writeFile(join(data, 'tokens.json'), '{', { mode: 0o600 })
    const { code, stderr } = await runCommand(['serve', '--port', '0', '--data', data])
    expect(code).toBe(2)
    expect(stderr).toContain('tokens.json is broken: expected a JSON object')
  })

  it('says when the data directory cannot be used', async () => {
    const { code, stderr } = await runCommand(['serve', '--port', '0', '--data', '/dev/null/x'])
    expect(code).toBe(2)
    expect(stderr).toBe(
      'dragoman: cannot use the data directory /dev/null/x: part of it is not a directory; ' +
        'choose another with --data DIR or DRAGOMAN_DATA\n',
    )
  })
})

describe('mistakes', () => {
  it('revoke takes a name that only one token has', async () => {
    await token('create', 'laptop')
    await token('create', 'twice')
    await token('create', 'twice')
    const ambiguous = await token('revoke', 'twice')
    expect([ambiguous.code, ambiguous.stderr]).toEqual([
      1,
      expect.stringMatching(/^dragoman: 2 tokens are named "twice"; name one by its id: \w+, \w+\n$/),
    ])
    expect((await token('revoke', 'laptop')).stdout).toMatch(/^Revoked token \w+ "laptop"/)
    expect((await token('revoke', 'laptop')).stderr).toContain('there is no token with the id or name "laptop"')
  })

  it('create --policy names the policies of the configuration', async () => {
    const file = join(data, 'mcp.json')
    await writeFile(file, JSON.stringify({ mcpServers: 'default', policies: { reading: { readOnly: true } } }))
    const unknown = await token('create', 'x', '--policy', 'raeding', '--config', file)
    expect([unknown.code, unknown.stderr.split('\n')[0]]).toEqual([
      2,
      `dragoman: --policy: ${file} defines no policy "raeding"; did you mean "reading"?`,
    ])
    expect((await token('list', '--json')).stdout).toBe('[]\n')
    expect((await token('create', 'x', '--policy', 'reading', '--config', file)).code).toBe(0)
    expect((await token('create', 'y', '--policy', 'other')).stdout).toContain(
      'No configuration file defines the policy "other": until one does, the token sees nothing.',
    )
  })
})
