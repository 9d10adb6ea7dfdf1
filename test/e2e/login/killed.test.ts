import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { MODERN } from '../../../src/protocol/revisions.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { endPrograms, type Program, startProgram } from '../cli/program.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await endPrograms()
  for (const close of closing.splice(0).reverse()) await close()
})

type Result = { resultType: string; requestState: string; content: { text: string }[]; inputRequests: Questions }
type Questions = { login: { params: { url: string } } }

/** A modern client that can open links. */
const call = async (origin: string, params: object): Promise<Result> => {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } },
  }
  const response = await fetch(`${origin}/mcp`, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'echo' },
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'echo', arguments: { text: 'hello' }, _meta: meta, ...params },
    }),
  })
  const text = await response.text()
  return (JSON.parse(/\{.*\}/s.exec(text)?.[0] ?? '{}') as { result: Result }).result
}

test('a call goes on, and logins stay, when the gateway is killed with -9 and started again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-login-'))
  const server = await startV1()
  const site = await startLoginSite({ upstream: server.url })
  closing.push(async () => rmSync(folder, { recursive: true, force: true }), server.close, site.close)
  const file = join(folder, 'mcp.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { far: { url: site.url } } }))
  const serve = async (port: number): Promise<Program & { readonly origin: string }> => {
    const args = ['serve', '--config', file, '--port', String(port), '--data', join(folder, 'data')]
    const program = startProgram(args)
    const [, origin = ''] = await program.saw(/listening on (http:\S+)/)
    return { ...program, origin }
  }
  const kill = async (program: Program): Promise<void> => {
    program.signal('SIGKILL')
    await program.ended
  }

  const first = await serve(0)
  const { origin } = first
  const port = Number(new URL(origin).port)
  const asked = await call(origin, {})
  expect(asked.resultType).toBe('input_required')
  const { url } = asked.inputRequests.login.params
  await kill(first)

  // The link and the state of the call are good for the next process.
  const second = await serve(port)
  const retry = call(origin, { requestState: asked.requestState, inputResponses: { login: { action: 'accept' } } })
  expect((await createBrowser('ada').open(url)).text).toContain('Logged in')
  expect((await retry).content[0]?.text).toContain('hello')
  await kill(second)

  // The login is kept; that the server wants one is, too: no call is sent without it.
  const third = await serve(port)
  await third.saw(/far +not tried: needs a login/) // after the first probe, which has no login
  expect(await (await fetch(`${origin}/readyz`)).text()).toContain('untried')
  const refused = site.refused.length
  expect((await call(origin, {})).content[0]?.text).toContain('hello')
  expect(site.refused).toHaveLength(refused)
  expect(site.counts.registrations).toBe(1)
  await kill(third)
})
