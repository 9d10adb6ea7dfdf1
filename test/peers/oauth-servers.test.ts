import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endPrograms, startServe } from '../e2e/cli/program.ts'
import { type Asked, type TestClient, textOf } from '../support/client.ts'
import { freePort } from '../support/free-port.ts'
import { install } from './install.ts'
import { type Provider, signInAs, startProvider } from './oauth/provider-process.ts'
import { pythonProgram } from './recipes.ts'
import { connectSdk, SDK_CLIENTS, type SdkClient } from './sdk-clients.ts'
import { type ServerProcess, startServerProcess } from './server-process.ts'

/** Servers that accept tokens of an issuer only, on two frameworks. */
const SERVERS = {
  'Python mcp 2.3': pythonProgram('mcp-2.3', 'server_mcp_oauth'),
  'FastMCP 4.1': pythonProgram('fastmcp-4.1', 'server_fastmcp_oauth'),
}
const TOKEN_SECONDS = 4
const INSTALL_MS = 600_000

afterAll(endPrograms)

describe.each(Object.entries(SERVERS))('%s behind oidc-provider', (_, program) => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-oauth-'))
  const clients: TestClient[] = []
  let skipped: string | undefined
  let provider: Provider
  let server: ServerProcess
  let gateway: Awaited<ReturnType<typeof startServe>>
  let port: number
  const opened: string[] = []

  const start = async (): Promise<void> => {
    gateway = await startServe([
      '--config',
      join(folder, 'mcp.json'),
      '--data',
      join(folder, 'data'),
      '--port',
      String(port),
    ])
  }
  const stop = async (): Promise<void> => {
    for (const client of clients.splice(0)) await client.close().catch(() => undefined)
    gateway.signal('SIGTERM')
    await gateway.ended
  }
  /** A client of the local user, who follows links and signs in as Ada. */
  const connect = async (kind: SdkClient): Promise<TestClient> => {
    const answer = async ({ params }: Asked) => {
      opened.push(String(params.url))
      const page = await signInAs('ada', String(params.url))
      return page.status === 200 ? { action: 'accept' } : { action: 'cancel' }
    }
    const client = await connectSdk(kind, {
      url: `${gateway.origin}/mcp`,
      capabilities: { elicitation: { url: {} } },
      answer,
    })
    clients.push(client)
    return client
  }
  const whoami = async (client: TestClient): Promise<string> => textOf(await client.call('whoami'))
  const refreshes = async (): Promise<number> =>
    (await provider.requests()).filter(({ asked }) => asked.grant_type === 'refresh_token').length
  const expire = (): Promise<void> => new Promise(resolve => setTimeout(resolve, TOKEN_SECONDS * 1000 + 500))

  beforeAll(async () => {
    const started = await startProvider(TOKEN_SECONDS)
    const installed = await install(program.recipe)
    if (typeof started === 'string') skipped = started
    else if (installed.kind === 'skipped') skipped = installed.reason
    if (typeof started === 'string' || installed.kind === 'skipped') {
      process.stderr.write(`skipped: ${skipped}\n`)
      return
    }
    provider = started
    server = await startServerProcess(port => program.start(installed.folder, [String(port), provider.issuer]))
    port = await freePort()
    writeFileSync(
      join(folder, 'mcp.json'),
      JSON.stringify({ mcpServers: { server: { url: `http://127.0.0.1:${server.port}/mcp` } } }),
    )
    await start()
  }, INSTALL_MS)
  afterAll(async () => {
    if (skipped === undefined) {
      await stop()
      await server.stop()
      await provider.stop()
    }
    rmSync(folder, { recursive: true, force: true })
  })
  const step = (name: string, run: () => Promise<void>): void => {
    it(name, async ({ skip }) => (skipped === undefined ? run() : skip(skipped)))
  }

  step('shows only a login, which asks by a link and then lists the tools', async () => {
    const client = await connect('SDK v2 modern')
    expect(await client.toolNames()).toEqual(['login'])
    expect((await client.call('login')).isError).toBe(false)
    expect((await client.toolNames()).sort()).toEqual(['add', 'whoami'])
    expect(await whoami(client)).toBe('ada')
    expect(opened).toHaveLength(1)
  })

  step('serves every other client of the user without a second login', async () => {
    for (const kind of SDK_CLIENTS) expect(await whoami(await connect(kind))).toBe('ada')
    expect(opened).toHaveLength(1)
  })

  step(
    'refreshes once for 20 calls at once after the token has expired, with a new refresh token each time',
    async () => {
      const client = await connect('SDK v2 modern')
      for (let round = 0; round < 3; round++) {
        await expire()
        const before = await refreshes()
        const results = await Promise.all(Array.from({ length: 20 }, () => whoami(client)))
        expect(new Set(results)).toEqual(new Set(['ada']))
        expect((await refreshes()) - before).toBe(1)
      }
      const used = (await provider.requests()).flatMap(({ asked }) => asked.refresh_token ?? [])
      expect(new Set(used).size).toBe(used.length)
      expect((await provider.requests()).filter(({ status }) => status >= 400)).toEqual([])
    },
  )

  step('keeps the login across a restart', async () => {
    await stop()
    await expire()
    await start()
    expect(await whoami(await connect('SDK v1'))).toBe('ada')
    expect(opened).toHaveLength(1)
    expect((await provider.requests()).filter(({ path }) => path === '/reg')).toHaveLength(1)
  })

  step('asks again, in the middle of the call, when the provider has ended the grant', async () => {
    const client = await connect('SDK v2 legacy')
    await provider.endGrants()
    await expire()
    expect(await whoami(client)).toBe('ada')
    expect(opened).toHaveLength(2)
  })
})
