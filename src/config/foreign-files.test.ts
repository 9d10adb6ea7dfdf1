import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from './load.ts'
import { ConfigError } from './problems.ts'
import type { Snapshot } from './snapshot.ts'
import type { Environment } from './variables.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-foreign-'))
})
afterAll(() => rm(folder, { recursive: true }))

const load = async (content: object, env: Environment = {}, name = 'mcp.json'): Promise<Snapshot> => {
  const file = join(folder, name)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, JSON.stringify(content))
  return loadConfig({ file, env })
}
const server = async (entry: object, env: Environment = {}) => {
  const { servers, warnings } = await load({ mcpServers: { it: entry } }, env)
  return { ...servers.get('it'), warnings }
}

const REMOTE = { url: 'http://127.0.0.1:1/mcp' }

describe('a file of VS Code', () => {
  it('works with its key, its variables and its files of variables', async () => {
    await writeFile(join(folder, '.env'), '# secrets\nexport KEY="k3y"\nMODE=slow\n')
    const { servers, warnings } = await load(
      {
        inputs: [],
        servers: {
          local: {
            type: 'stdio',
            command: '${workspaceFolder}/bin/server',
            args: ['~/notes', '${userHome}${/}x', '${workspaceFolderBasename}', '${env:WHO}', 'a~/b'],
            env: { MODE: 'fast' },
            envFile: '${workspaceFolder}/.env',
          },
        },
      },
      { WHO: 'ann' },
      '.vscode/mcp.json',
    )
    expect(servers.get('local')).toMatchObject({
      command: `${folder}/bin/server`,
      args: [`${homedir()}/notes`, `${homedir()}/x`, folder.split('/').at(-1), 'ann', 'a~/b'],
      env: { KEY: 'k3y', MODE: 'fast' },
    })
    expect(warnings).toEqual(['ignored keys that are not ours: "inputs"'])
  })

  it('says how to replace what VS Code asks its user for', async () => {
    const { servers } = await load({ servers: { it: { ...REMOTE, headers: { a: 'Bearer ${input:api-key}' } } } })
    expect(servers.get('it')).toMatchObject({
      kind: 'unavailable',
      reason:
        'headers.a: ${input:api-key} is asked for by VS Code; the gateway cannot ask: ' +
        'set a variable and write ${API_KEY}, or write ${file:PATH}',
    })
  })

  it('names a file of variables that is not there', async () => {
    expect(await server({ command: 'x', envFile: 'missing.env' })).toMatchObject({
      kind: 'unavailable',
      reason: 'envFile: the file missing.env cannot be read: there is no such file',
    })
  })

  it('may stand beside mcpServers, with other names', async () => {
    const both = { mcpServers: { a: REMOTE }, servers: { b: REMOTE } }
    expect([...(await load(both)).servers.keys()]).toEqual(['a', 'b'])
    const outcome = await load({ ...both, servers: { a: REMOTE } }).catch((error: unknown) => error)
    expect(outcome).toBeInstanceOf(ConfigError)
    expect(String(outcome)).toContain('servers.a: mcpServers.a has the same name')
  })
})

describe('keys of other clients', () => {
  it.each<[object, object]>([
    [{ serverUrl: 'http://x/mcp' }, { kind: 'remote', url: 'http://x/mcp' }], // Windsurf
    [{ ...REMOTE, transport: 'sse' }, { type: 'sse' }],
    [{ ...REMOTE, transportType: 'streamable-http' }, { type: 'http' }],
    [{ ...REMOTE, enabled: false }, { disabled: true }], // Codex, Zed
    [{ ...REMOTE, http_headers: { a: 'b' } }, { headers: { a: 'b' } }],
    [{ ...REMOTE, excludeTools: ['x'] }, { disabledTools: ['x'] }], // Gemini CLI
    [{ ...REMOTE, includeTools: ['x'] }, { enabledTools: ['x'] }],
    [{ ...REMOTE, disabledTools: ['x'], autoApprove: [] }, { disabledTools: ['x'] }],
  ])('are understood: %j', async (entry, expected) => {
    expect(await server(entry)).toMatchObject({ ...expected, warnings: [] })
  })

  it.each([
    [{ ...REMOTE, autoApprove: ['x'] }, '"autoApprove" is ignored: the client asks before a tool is called'],
    [{ ...REMOTE, alwaysAllow: ['x'] }, '"alwaysAllow" is ignored: the client asks before a tool is called'],
    [
      { ...REMOTE, headersHelper: 'x' },
      '"headersHelper" is ignored: the gateway uses "oauth", or a token in "headers"',
    ],
    [{ command: 'x', oauth: { clientId: 'x' } }, '"oauth" is ignored; it goes with "url"'],
    [{ ...REMOTE, serverUrl: 'http://x/' }, 'has "url" and "serverUrl"; "url" is used'],
    [{ ...REMOTE, envFile: '.env' }, '"envFile" is ignored; it goes with "command"'],
    [{ command: 'x', env: { KEY: '$MY_KEY' } }, 'env.KEY is passed as written; to fill it in, write ${MY_KEY}'],
    [{ ...REMOTE, headers: { a: 'Bearer $T' } }, 'headers.a is passed as written; to fill it in, write ${T}'],
  ])('are named where they have no effect: %j', async (entry, warning) => {
    expect((await server(entry)).warnings).toEqual([expect.stringContaining(`mcpServers.it: ${warning}`)])
  })

  it.each([
    ['npx -y x', [], '"command": "npx", "args": ["-y", "x"]'],
    ['uvx  mcp-server-git', ['--verbose'], '"command": "uvx", "args": ["mcp-server-git", "--verbose"]'],
  ])('a command with arguments in it, %s, gets a hint', async (command, args, hint) => {
    expect((await server({ command, args })).warnings).toEqual([
      `mcpServers.it.command: "${command}" is taken for the name of one program; write ${hint}`,
    ])
  })

  it('a path with spaces gets none', async () => {
    expect((await server({ command: '/opt/My Server/run' })).warnings).toEqual([])
  })

  it('hide tools in every workspace of the server, together with a policy of the workspace', async () => {
    const { workspaces } = await load({
      mcpServers: { a: { ...REMOTE, disabledTools: ['drop*'] }, b: { ...REMOTE, enabledTools: ['x'] }, c: REMOTE },
      workspaces: { all: { servers: '*', policy: { deny: { tools: ['c/y'] } } }, plain: { servers: ['c'] } },
    })
    expect(workspaces.get('all')?.policy).toEqual({
      allow: {},
      deny: { tools: ['c/y'] },
      readOnly: false,
      also: { allow: { tools: ['a/*', 'b/x', 'c/*'] }, deny: { tools: ['a/drop*'] }, readOnly: false },
    })
    expect(workspaces.get('plain')?.policy).not.toHaveProperty('also')
  })
})

describe('an entry that leads back to the gateway', () => {
  it.each([
    [{ command: 'dragoman', args: ['stdio'] }],
    [{ command: '/usr/local/bin/dragoman', args: ['stdio', '--workspace', 'team'] }],
    [{ command: 'npx', args: ['-y', 'dragoman@latest', 'stdio'] }],
    [{ command: 'node', args: ['/opt/dragoman/dist/main.js', 'stdio', '--data', '/elsewhere'] }],
    [{ type: 'http', url: 'http://localhost:8765/mcp' }],
    [{ serverUrl: 'http://127.0.0.1:8765/mcp/team' }],
  ])('%j is ignored with a warning', async entry => {
    const { servers, warnings } = await load({ mcpServers: { self: entry, it: { builtin: 'demo' } } })
    expect([...servers.keys()]).toEqual(['it'])
    expect(warnings).toEqual(['mcpServers.self: ignored, it leads back to this gateway'])
  })

  it.each([
    [{ command: 'dragoman', args: ['serve'] }],
    [{ url: 'http://localhost:8766/mcp' }],
    [{ url: 'https://example.com:8765/mcp' }],
    [{ command: 'other', args: ['stdio'] }],
  ])('%j is another server', async entry => {
    expect((await load({ mcpServers: { other: entry } })).servers.has('other')).toBe(true)
  })
})

describe('passEnv', () => {
  it('passes variables of the gateway to every process, below those of its entry', async () => {
    const env = { HTTPS_PROXY: 'http://proxy', no_proxy: 'local', NODE_EXTRA_CA_CERTS: '/ca.pem', SECRET: 's3cret' }
    const { servers } = await load(
      {
        passEnv: ['*_PROXY', '*_proxy', 'NODE_EXTRA_CA_CERTS', 'UNSET'],
        mcpServers: { a: { command: 'x' }, b: { command: 'y', env: { HTTPS_PROXY: 'other' } }, c: REMOTE },
      },
      env,
    )
    const { SECRET: _, ...passed } = env
    expect(servers.get('a')).toMatchObject({ env: passed })
    expect(servers.get('b')).toMatchObject({ env: { ...passed, HTTPS_PROXY: 'other' } })
    expect(JSON.stringify([...servers])).not.toContain('s3cret')
  })

  it('must be a list', async () => {
    await expect(load({ passEnv: 'HTTPS_PROXY', mcpServers: { a: REMOTE } })).rejects.toThrow(
      'passEnv: expected an array',
    )
  })
})
