import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const isWindows = process.platform === 'win32'
const run = promisify(execFile)
const npm = (args: readonly string[], cwd: string) =>
  run('npm', ['--loglevel=error', ...args], { cwd, shell: isWindows, timeout: 60_000 })

let folder: string // holds the tarball, and `app`, a program that depends on it
let app: string
let packed: { filename: string; size: number; files: { path: string }[] }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-package-'))
  app = join(folder, 'app')
  await mkdir(app)
  await writeFile(join(app, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }))
  // Without the scripts: they would build dist again while other tests run it.
  const { stdout } = await npm(['pack', '--ignore-scripts', '--json', '--pack-destination', folder], ROOT)
  packed = (JSON.parse(stdout) as [typeof packed])[0]
  await npm(['install', join(folder, packed.filename), '--prefer-offline', '--no-audit', '--no-fund'], app)
}, 90_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

/** By the link that npm puts on the PATH. */
const dragoman = (...args: string[]) =>
  run(join(app, 'node_modules/.bin/dragoman'), args, { cwd: app, shell: isWindows, timeout: 30_000 })

/** Defines a server, serves it beside one of a configuration, and calls its tool over HTTP. */
const EMBEDDING = `
import { type Call, ConfigError, defineServer, type Gateway, type GatewayConfig, startGateway, text, tool } from 'dragoman'

const greeter = defineServer({
  name: 'greeter',
  version: '1.0.0',
  tools: [
    tool({
      name: 'greet',
      description: 'Greets a person',
      input: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      run: ({ name }, call: Call) => [text(\`Hello \${name.toUpperCase()} in \${call.caller.workspace}\`)],
    }),
  ],
})
const config: GatewayConfig = {
  mcpServers: { demo: { builtin: 'demo' } },
  workspaces: { default: { servers: ['greeter'] }, both: { servers: '*' } },
}
const gateway: Gateway = await startGateway({ config, servers: { greeter }, port: 0 })
const response = await fetch(gateway.url, {
  method: 'POST',
  headers: {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'greet',
  },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'greet',
      arguments: { name: 'Ada' },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'app', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  }),
})
const answer = await response.text()
const workspaces = gateway.status().map(({ name, servers }) => [name, servers.map(server => server.name)])
await gateway.close()
const invalid = await startGateway({ config: { listen: { port: -1 } } }).catch((error: unknown) => error)
console.log(JSON.stringify({ answer, workspaces, problem: invalid instanceof ConfigError && invalid.message }))
`

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    module: 'nodenext',
    target: 'es2023',
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
  },
  include: ['*.ts'],
}

test('the package is small: no maps, no sources, no tests', () => {
  const paths = packed.files.map(({ path }) => path)
  expect(paths.filter(path => /\.map$|\.test\.|(?<!\.d)\.ts$|^src\//.test(path))).toEqual([])
  expect(packed.size).toBeLessThan(1_450_000)
})

test('npx dragoman serve runs in an empty folder; tools and call use it, stop ends it', async () => {
  const empty = await mkdtemp(join(folder, 'empty-'))
  const args = [
    '--prefix',
    app,
    'exec',
    '--no',
    '--',
    'dragoman',
    'serve',
    '--port',
    '0',
    '--data',
    join(empty, 'data'),
  ]
  const child = spawn('npm', args, { cwd: empty, shell: isWindows })
  let printed = ''
  child.stdout.setEncoding('utf8')
  for await (const text of child.stdout) {
    printed += text
    if (printed.includes('tools\n')) break
  }
  const [, url = ''] = /default +(http\S+)/.exec(printed) ?? []
  expect((await fetch(url.replace('/mcp', '/healthz'))).status).toBe(200)
  expect(printed).toMatch(/memory +connected/)
  const data = ['--data', join(empty, 'data')]
  expect((await dragoman('tools', ...data)).stdout).toMatch(/^(\w+\/)?list_dir\t/m)
  await writeFile(join(empty, 'note.txt'), 'hello from the folder')
  const read = await dragoman('call', 'files/read_file', 'relative_path=note.txt', ...data)
  expect(read.stdout).toContain('hello from the folder')
  const ended = once(child, 'exit')
  expect((await dragoman('stop', ...data)).stdout).toContain('Stopped the daemon')
  await ended
}, 60_000)

test('the installed command runs', async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  expect((await dragoman('--version')).stdout.trim()).toBe(version)
  await writeFile(join(app, 'config.json'), JSON.stringify({ mcpServers: { demo: { builtin: 'demo' } } }))
  expect((await dragoman('check', 'config.json', '--data', join(folder, 'data'))).stdout).toContain(
    'config.json is valid.',
  )
})

test('a program in TypeScript that embeds the gateway compiles against its types and runs', async () => {
  await writeFile(join(app, 'embedding.ts'), EMBEDDING)
  await writeFile(join(app, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  const compiled = await run(process.execPath, [TSC, '-p', app]).catch(error => error)
  expect(compiled.stdout).toBe('')
  const { stdout } = await run(process.execPath, ['embedding.js'], { cwd: app, timeout: 15_000 })
  const { answer, workspaces, problem } = JSON.parse(stdout)
  expect(answer).toContain('Hello ADA in default')
  expect(workspaces).toEqual([
    ['default', ['greeter']],
    ['both', ['demo', 'greeter']],
  ])
  expect(problem).toContain('the configuration has a problem:\n  listen.port: expected a whole number from 0 to 65535')
})

test('the example of docs/embedding.md runs', async () => {
  const [, example] = /```js\n(.*?)```/s.exec(await readFile(join(ROOT, 'docs/embedding.md'), 'utf8')) ?? []
  await writeFile(join(app, 'example.js'), `${example}\nawait gateway.close()`)
  const { stdout } = await run(process.execPath, ['example.js'], { cwd: app, timeout: 15_000 })
  expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp\n$/)
})
