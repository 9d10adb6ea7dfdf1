import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Gateway, startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { createToken } from './guarded.ts'

const DEMO = { builtin: 'demo' }
let folder: string
let gateway: Gateway
let bound: Record<string, string>
let free: Record<string, string>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-policies-'))
  const file = join(folder, 'mcp.json')
  const config = {
    limits: { shutdownMs: 200 },
    mcpServers: { open: DEMO, secret: DEMO, withheld: DEMO },
    workspaces: { default: { servers: '*', policy: { deny: { servers: ['withheld'] } } } },
    policies: { open: { allow: { servers: ['open'] } } },
  }
  await writeFile(file, JSON.stringify(config))
  bound = { ...(await createToken(folder, { policy: 'open' })).headers }
  free = { ...(await createToken(folder)).headers }
  gateway = await startGateway(await loadConfig({ file, env: {}, flags: { port: 0 } }), { log: SILENT, data: folder })
  await gateway.ready
})
afterAll(async () => {
  await gateway.close()
  await rm(folder, { recursive: true })
})

const get = async (path: string, headers: Record<string, string>) =>
  (await fetch(gateway.origin + path, { headers })).text()
const post = async (path: string, headers: Record<string, string>) => {
  const all = { ...headers, 'content-type': 'application/json' }
  const response = await fetch(gateway.origin + path, { method: 'POST', headers: all, body: '{}' })
  return { status: response.status, text: await response.text() }
}

describe('a server that a token may not see', () => {
  test.each(['/', '/actions/openapi.json', '/actions/default/openapi.json'])('is not in %s', async path => {
    expect(await get(path, bound)).not.toMatch(/secret|withheld/)
    expect(await get(path, free)).toContain('secret')
    expect(await get(path, free)).not.toContain('withheld')
    expect(await get(path, bound)).toContain('open')
  })

  test('is not on the page for people, which contains no data', async () => {
    const page = await get('/', { ...free, accept: 'text/html' })
    expect(page).toContain('<div id="app"></div>')
    expect(page).not.toMatch(/secret|withheld|open/)
  })

  test.each(['secret', 'withheld'])('has the same answer as one that is not there: %s', async server => {
    const [hidden, missing] = [
      await post(`/actions/default/${server}/example-ping`, bound),
      await post('/actions/default/nowhere/example-ping', bound),
    ]
    expect({ ...hidden, text: hidden.text.replaceAll(server, 'nowhere') }).toEqual(missing)
    expect((await post('/actions/default/open/example-ping', bound)).status).toBe(200)
    expect((await post('/actions/default/secret/example-ping', free)).status).toBe(200)
  })
})
