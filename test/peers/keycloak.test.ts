import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call } from '../e2e/cli/call.ts'
import { endPrograms, startServe } from '../e2e/cli/program.ts'
import { freePort } from '../support/free-port.ts'
import type { Browser, Page } from '../support/oauth/browser.ts'
import { byIssuer, grantAccess } from '../support/oauth/gateway-login.ts'
import { type Keycloak, startKeycloak } from './oauth/keycloak.ts'

afterAll(endPrograms)

describe('Keycloak', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-keycloak-'))
  let skipped: string | undefined
  let keycloak: Keycloak
  let origin: string

  beforeAll(async () => {
    const port = await freePort()
    origin = `http://127.0.0.1:${port}`
    const started = await startKeycloak(origin, `${origin}/oauth/signed-in/corp`)
    if (typeof started === 'string') {
      skipped = started
      process.stderr.write(`skipped: ${started}\n`)
      return
    }
    keycloak = started
    const corp = {
      ...{
        url: keycloak.issuer,
        principal: 'preferred_username',
        clientId: 'dragoman',
        clientSecret: 'secret-of-dragoman',
      },
      grants: [{ where: { groups: 'engineering' }, workspaces: ['*'] }],
    }
    const config = {
      mcpServers: { demo: { builtin: 'demo' } },
      auth: { issuers: { corp }, server: { signIn: ['corp'] } },
    }
    writeFileSync(join(folder, 'mcp.json'), JSON.stringify(config))
    await startServe(['--config', join(folder, 'mcp.json'), '--data', join(folder, 'data'), '--port', String(port)])
  }, 400_000)
  afterAll(async () => {
    await keycloak?.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const step = (name: string, run: () => Promise<void>): void => {
    it(name, async ({ skip }) => (skipped === undefined ? run() : skip(skipped)))
  }
  const ping = (token: string): Promise<unknown> =>
    call(`${origin}/mcp`, 'tools/call', { name: 'example-ping', arguments: {} }, { authorization: `Bearer ${token}` })

  step('admits a person of a group by a JWT, and no one else', async () => {
    expect(JSON.stringify(await ping(await keycloak.tokenOf('ada')))).toContain('pong')
    const response = await fetch(`${origin}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await keycloak.tokenOf('ben')}` },
      body: '{}',
    })
    expect(response.status).toBe(403)
  })

  step('signs a person in for a client that logs in at the gateway', async () => {
    const signIn = async (browser: Browser, page: Page): Promise<Page> => {
      const form = await byIssuer('corp')(browser, page)
      return browser.submit(form, { username: 'ada', password: 'secret of ada' })
    }
    const { tokens } = await grantAccess(origin, signIn)
    expect(JSON.stringify(await ping(tokens.access_token))).toContain('pong')
  })
})
