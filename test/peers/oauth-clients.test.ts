import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from '../e2e/cli/in-process.ts'
import { endPrograms, startServe } from '../e2e/cli/program.ts'
import { startChromium } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { install } from './install.ts'
import { allow } from './oauth/chromium.ts'
import { startMcpRemote } from './oauth/mcp-remote.ts'
import { connectWithLogin, type LoginClient } from './oauth/sdk-login.ts'
import { identityProvider } from './recipes.ts'

const CONFIG = {
  mcpServers: { demo: { builtin: 'demo' } },
  workspaces: { default: { servers: ['demo'] } },
  auth: {
    scopes: { mcp: {}, 'mcp:write': { tools: ['demo/example-echo'] } },
    server: { signIn: ['token'] },
  },
}
const INSTALL_MS = 600_000

afterAll(endPrograms)

interface KeptTokens {
  readonly file: string
  readonly tokens: Readonly<Record<string, string>>
}

/** What mcp-remote keeps in its folder. */
const keptTokens = (config: string): readonly KeptTokens[] =>
  readdirSync(config, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('_tokens.json'))
    .map(name => ({ file: join(config, name), tokens: JSON.parse(readFileSync(join(config, name), 'utf8')) }))

/** As if the access tokens had ended; the refresh tokens stay. */
const spoilAccessTokens = (config: string): void => {
  for (const { file, tokens } of keptTokens(config))
    writeFileSync(file, JSON.stringify({ ...tokens, access_token: `dro_${'x'.repeat(43)}` }))
}

describe('clients that log in at the embedded authorization server, in Chromium', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-clients-'))
  const data = join(folder, 'data')
  const clients: LoginClient[] = []
  let skipped: string | undefined
  let browser: Browser
  let context: BrowserContext
  let gateway: Awaited<ReturnType<typeof startServe>>
  let token: { id: string; token: string }

  const createToken = async (name: string): Promise<typeof token> => {
    const { code, stdout, stderr } = await runCommand(['token', 'create', name, '--json'], {
      env: { DRAGOMAN_DATA: data },
    })
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout) as typeof token
  }
  const visit = async (request: URL, redirect: string): Promise<URL> => {
    const page = await context.newPage()
    try {
      return await allow(page, request, token.token, redirect)
    } finally {
      await page.close()
    }
  }

  beforeAll(async () => {
    const started = await startChromium()
    if (typeof started === 'string') {
      skipped = started
      process.stderr.write(`skipped: ${skipped}\n`)
      return
    }
    browser = started
    context = await browser.newContext()
    token = await createToken('ada')
    writeFileSync(join(folder, 'mcp.json'), JSON.stringify(CONFIG))
    gateway = await startServe(['--config', join(folder, 'mcp.json'), '--data', data])
  }, INSTALL_MS)
  afterAll(async () => {
    for (const client of clients) await client.close().catch(() => undefined)
    await browser?.close()
    gateway?.signal('SIGTERM')
    await gateway?.ended
    rmSync(folder, { recursive: true, force: true })
  })
  const step = (name: string, run: () => Promise<void>): void => {
    it(name, { timeout: 60_000 }, async ({ skip }) => (skipped === undefined ? run() : skip(skipped)))
  }

  for (const kind of ['SDK v1', 'SDK v2'] as const) {
    step(`${kind} logs in, calls, and gets another scope when a tool needs it`, async () => {
      // SDK v1 refreshes instead of asking for a scope, as long as it has a refresh token.
      const client = await connectWithLogin(kind, `${gateway.origin}/mcp`, visit, {
        keepsRefreshToken: kind !== 'SDK v1',
      })
      clients.push(client)
      expect(client.links()).toBe(1)
      expect(await client.tools()).toEqual(expect.arrayContaining(['example-echo', 'example-ping']))
      expect(await client.call('example-ping')).toBe('pong')
      expect(client.kept.tokens?.scope).toBe('mcp')
      expect(await client.call('example-echo', { message: 'hello' })).toBe('Echo: hello')
      expect(client.links()).toBe(2)
      expect(client.kept.tokens?.scope?.split(' ').sort()).toEqual(['mcp', 'mcp:write'])
    })

    step(`${kind} refreshes when its token is rejected, each time with the newest refresh token`, async () => {
      const client = await connectWithLogin(kind, `${gateway.origin}/mcp`, visit)
      clients.push(client)
      const used = new Set<string | undefined>()
      for (let round = 0; round < 3; round++) {
        used.add(client.kept.tokens?.refresh_token)
        if (client.kept.tokens) client.kept.tokens.access_token = `dro_${'x'.repeat(43)}`
        expect(await client.call('example-ping')).toBe('pong')
      }
      expect(used.size).toBe(3)
      expect(client.links()).toBe(1)
    })
  }

  step('mcp-remote logs in for a client that only knows stdio, needs no second login, and refreshes', async () => {
    const installed = await install(identityProvider().recipe)
    if (installed.kind === 'skipped') return void process.stderr.write(`skipped: ${installed.reason}\n`)
    const port = await freePort()
    const config = join(folder, 'mcp-remote')
    const refreshTokens: (string | undefined)[] = []
    for (const round of ['first', 'again', 'refresh']) {
      if (round === 'refresh') spoilAccessTokens(config)
      const bridge = startMcpRemote(installed.folder, `${gateway.origin}/mcp`, port, config)
      try {
        if (round === 'first') await visit(new URL(await bridge.link()), `http://127.0.0.1:${port}/`)
        await bridge.connected
        const { content } = await bridge.client.callTool({ name: 'example-ping' })
        expect(JSON.stringify(content)).toContain('pong')
        if (round !== 'first') expect(bridge.output()).not.toContain('visiting:')
        refreshTokens.push(keptTokens(config)[0]?.tokens.refresh_token)
      } finally {
        await bridge.close()
      }
    }
    expect(refreshTokens[1]).toBe(refreshTokens[0])
    expect(refreshTokens[2]).not.toBe(refreshTokens[1])
  })

  step('mcp-remote gets another scope when a tool needs it, and makes the call then', async () => {
    const installed = await install(identityProvider().recipe)
    if (installed.kind === 'skipped') return void process.stderr.write(`skipped: ${installed.reason}\n`)
    const port = await freePort()
    const config = join(folder, 'mcp-remote-scopes')
    const bridge = startMcpRemote(installed.folder, `${gateway.origin}/mcp`, port, config)
    const open = async (number: number) => visit(new URL(await bridge.link(number)), `http://127.0.0.1:${port}/`)
    try {
      await open(0)
      await bridge.connected
      expect(keptTokens(config)[0]?.tokens.scope).toBe('mcp')
      const call = bridge.client.callTool({ name: 'example-echo', arguments: { message: 'hello' } })
      await open(1)
      expect(JSON.stringify((await call).content)).toContain('Echo: hello')
      expect(keptTokens(config)[0]?.tokens.scope?.split(' ').sort()).toEqual(['mcp', 'mcp:write'])
    } finally {
      await bridge.close()
    }
  })

  step('a revoked token ends what was granted by it', async () => {
    const { code } = await runCommand(['token', 'revoke', token.id], { env: { DRAGOMAN_DATA: data } })
    expect(code).toBe(0)
    const { tokens } = clients[0]?.kept ?? {}
    await expect
      .poll(
        async () =>
          (
            await fetch(`${gateway.origin}/mcp`, {
              method: 'POST',
              headers: { authorization: `Bearer ${tokens?.access_token}` },
              body: '{}',
            })
          ).status,
      )
      .toBe(401)
  })
})
