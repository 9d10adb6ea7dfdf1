import { afterEach, expect, test } from 'vitest'
import { serve } from '../../compat/seeds/served.ts'
import { createTestLog } from '../../support/log.ts'
import { modern, openSession, send } from '../../support/raw.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const start = async (isDebug: boolean) => {
  const { log, lines, saw } = createTestLog({ isDebug })
  const servers = { mcpServers: { demo: { builtin: 'demo' }, gone: { url: 'http://127.0.0.1:1/mcp' } } }
  const served = await serve(servers, { log })
  closing.push(served.close)
  return { ...served, saw, requests: () => lines.filter(({ message }) => message === 'request ended') }
}

const call = (name: string) => modern(1, 'tools/call', { name, arguments: { message: 's3cret argument' } })

test('at level debug there is one line for each request, with where it went and without its arguments', async () => {
  const { origin, requests } = await start(true)
  await send(`${origin}/mcp`, call('demo__example-echo'))
  await send(`${origin}/mcp/demo`, call('example-echo'))
  await send(`${origin}/mcp/gone`, call('nothing'))
  await send(`${origin}/actions/demo/example-echo`, { body: { message: 's3cret argument' } })
  expect(requests()).toMatchObject([
    { level: 'debug', fields: { dialect: 'stateless', method: 'tools/call', workspace: 'default', server: 'demo' } },
    { level: 'debug', fields: { workspace: 'demo', server: 'demo', outcome: 'ok', ms: expect.any(Number) } },
    { level: 'debug', fields: { workspace: 'gone', outcome: 'error', code: -32603 } },
    { level: 'debug', fields: { dialect: 'rest', method: 'tools/call', workspace: 'demo', server: 'demo' } },
  ])
  expect(JSON.stringify(requests())).not.toContain('s3cret')
})

test('requests of sessions are logged too, those that stand open when they end', async () => {
  const { origin, requests, saw } = await start(true)
  const { headers } = await openSession(`${origin}/mcp/demo`)
  await send(`${origin}/mcp/demo`, { headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } })
  expect(requests().map(({ fields }) => fields.method)).toEqual(['server/discover', 'tools/list'])
  await send(`${origin}/mcp/demo`, { method: 'DELETE', headers })
  const { fields } = await saw(({ fields }) => fields.method === 'subscriptions/listen')
  expect(fields).toMatchObject({ dialect: 'streamable', outcome: 'cancelled' })
})

test('at other levels nothing is looked at', async () => {
  const { origin, requests } = await start(false)
  await send(`${origin}/mcp/demo`, call('example-echo'))
  expect(requests()).toEqual([])
})
