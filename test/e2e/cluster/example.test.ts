import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { startPostgres, whyNoPostgres } from '../../support/postgres.ts'
import { runCommand } from '../cli/in-process.ts'
import { endPrograms, startServe } from '../cli/program.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const EXAMPLE = join(ROOT, 'examples/07-replicas')
const read = (file: string): string => readFileSync(join(EXAMPLE, file), 'utf8')
const canRun = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0
const NGINX: string = 'nginx' // of the machine, if it has one
const hasNginx = canRun(NGINX, '-v')

afterAll(endPrograms)

/** nginx with the configuration of the example, at other ports. */
const startNginx = async (origins: readonly string[]): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-nginx-'))
  const port = await freePort()
  const config = origins.reduce(
    (text, origin, at) => text.replace(`gateway-${at + 1}:8765`, new URL(origin).host),
    read('nginx.conf').replace('listen 8080', `listen 127.0.0.1:${port}`),
  )
  writeFileSync(join(folder, 'nginx.conf'), config)
  const settings = `daemon off; pid ${folder}/pid; error_log stderr;`
  const child = spawn(NGINX, ['-p', folder, '-c', join(folder, 'nginx.conf'), '-g', settings], { stdio: 'ignore' })
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await new Promise(ended => child.once('close', ended))
    rmSync(folder, { recursive: true })
  })
  const origin = `http://127.0.0.1:${port}`
  await expect
    .poll(
      () =>
        fetch(`${origin}/healthz`).then(
          ({ ok }) => ok,
          () => false,
        ),
      { timeout: 10_000 },
    )
    .toBe(true)
  return origin
}

/** Does the same where nginx is not installed: the next gateway for each request, another if it refuses the connection. */
const startBalancer = async (origins: readonly string[]): Promise<string> => {
  let next = 0
  const server = createServer((near, answer) => {
    const body: Buffer[] = []
    const forward = (tries: number): void => {
      const far = request(origins[next++ % origins.length] + (near.url ?? ''), {
        method: near.method,
        headers: near.headers,
      })
      far.on('response', response => {
        answer.writeHead(response.statusCode ?? 502, response.headers).flushHeaders()
        response.on('error', () => answer.destroy()).pipe(answer)
      })
      far.on('error', (error: NodeJS.ErrnoException) =>
        error.code === 'ECONNREFUSED' && tries > 1 ? forward(tries - 1) : answer.destroy(),
      )
      answer.on('close', () => far.destroy())
      far.end(Buffer.concat(body))
    }
    near.on('data', (chunk: Buffer) => body.push(chunk)).on('end', () => forward(origins.length))
  })
  await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const why = whyNoPostgres()
describe.skipIf(why !== undefined)(
  `07-replicas: three programs on PostgreSQL behind ${hasNginx ? 'nginx' : 'a proxy'}`,
  () => {
    test('serve every client, and go on when one of them is killed', async () => {
      const postgres = await startPostgres()
      onTestFinished(postgres.stop)
      const data = mkdtempSync(join(tmpdir(), 'dragoman-replica-'))
      onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 5 }))
      const created = await runCommand(['token', 'create', 'ada', '--json'], { env: { DRAGOMAN_DATA: data } })
      const { token } = JSON.parse(created.stdout) as { token: string }
      const start = (env: Record<string, string> = {}) =>
        startServe(['--config', join(EXAMPLE, 'dragoman.json')], { DATABASE_URL: postgres.url, ...env })
      // The tokens of the first one become those of all.
      const gateways = [await start({ DRAGOMAN_DATA: data }), ...(await Promise.all([start(), start()]))]
      const origin = await (hasNginx ? startNginx : startBalancer)(gateways.map(gateway => gateway.origin))

      expect((await fetch(`${origin}/mcp`, { method: 'POST', body: '{}' })).status).toBe(401)
      const url = new URL(`${origin}/mcp`)
      const given = { requestInit: { headers: { authorization: `Bearer ${token}` } } }
      const legacy = new Client({ name: 'v1', version: '1' })
      const modern = new ClientV2({ name: 'v2', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
      await legacy.connect(new StreamableHTTPClientTransport(url, given) as Parameters<Client['connect']>[0])
      await modern.connect(new TransportV2(url, given))
      for (const client of [legacy, modern]) onTestFinished(() => client.close().catch(() => {}))
      const echo = async (client: Pick<Client, 'callTool'> | ClientV2, message: string): Promise<void> => {
        const result = await client.callTool({ name: 'example-echo', arguments: { message } })
        expect(result).toMatchObject({ content: [{ text: `Echo: ${message}` }] })
      }
      for (let i = 0; i < 3; i++) for (const client of [legacy, modern]) await echo(client, String(i))
      const status = await runCommand(['status', '--data', data])
      expect(status.stdout.match(/^\S+ (\(this one\))? +http:/gm)).toHaveLength(3)

      gateways[1]?.signal('SIGKILL')
      await gateways[1]?.ended
      for (let i = 0; i < 4; i++) for (const client of [legacy, modern]) await echo(client, 'again')
    }, 90_000)
  },
)

/** Programs that read YAML, with the arguments that check the compose file. */
const YAML_READERS: readonly (readonly [string, ...string[]])[] = [
  ['docker', 'compose', '-f', join(EXAMPLE, 'compose.yaml'), 'config', '-q'],
  ['python3', '-c', `import yaml; yaml.safe_load(open('${join(EXAMPLE, 'compose.yaml')}'))`],
]
const readers = YAML_READERS.filter(([program, first]) =>
  program === 'docker' ? canRun('docker', 'compose', 'version') : canRun(program, first ?? '', 'import yaml'),
)

test.skipIf(readers.length === 0)('the compose file can be read', () => {
  const [program = '', ...args] = readers[0] ?? []
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
})

test('the compose file starts the gateways that nginx names', () => {
  const named = [...read('nginx.conf').matchAll(/server (gateway-\d):8765;/g)].map(([, name]) => name)
  const started = [...read('compose.yaml').matchAll(/^ {2}(gateway-\d): /gm)].map(([, name]) => name)
  expect(named).toEqual(started)
})

describe('the Dockerfile', () => {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')

  test('copies what exists, and what .dockerignore lets through', () => {
    const ignored = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')
    const copied = [...text.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, names = '']) => names.split(' '))
    expect(copied.length).toBeGreaterThan(5)
    expect(copied.filter(name => !existsSync(join(ROOT, name)) || !ignored.includes(`!${name}`))).toEqual([])
  })

  test('runs as a normal user, and its health check tells a gateway that answers', async () => {
    expect(text).toMatch(/^USER node$(.|\n)*^ENTRYPOINT/m)
    const [, script = ''] = /^ {2}CMD \["node", "-e", "(.*)"\]$/m.exec(text) ?? []
    const check = (port: number): Promise<number | null> =>
      new Promise(ended => spawn(process.execPath, ['-e', script.replace('8765', String(port))]).on('close', ended))
    const server = createServer((_, response) => response.end('ok'))
    await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
    const { port } = server.address() as AddressInfo
    expect(await check(port)).toBe(0)
    server.close()
    expect(await check(port)).toBe(1)
  })
})
