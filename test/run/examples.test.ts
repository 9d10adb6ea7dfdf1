import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'
import { call } from './call.ts'
import { endPrograms, startServe } from './program.ts'

afterAll(endPrograms)

const example = (path: string): string => fileURLToPath(new URL(`../../examples/${path}`, import.meta.url))

it('every example has a README and is run here', () => {
  expect(readdirSync(example(''))).toEqual(['01-try-it', '02-one-server'])
  for (const name of readdirSync(example(''))) expect(readdirSync(example(name))).toContain('README.md')
})

it('01-try-it: the demo answers without any configuration', async () => {
  const { origin } = await startServe()
  expect(
    await call(`${origin}/mcp`, 'tools/call', { name: 'example-echo', arguments: { message: 'hello' } }),
  ).toMatchObject({
    result: { content: [{ type: 'text', text: 'Echo: hello' }] },
  })
})

it('02-one-server: a file of another client serves its remote server and its local one', async () => {
  const upstream = await startServe()
  const gateway = await startServe(['--config', example('02-one-server/mcp.json')], {
    UPSTREAM_URL: `${upstream.origin}/mcp`,
  })
  await gateway.saw(/upstream +upstream +connected, 2026-07-28 \(modern\), \d+ tools\n/)
  await gateway.saw(/everything +everything +connected, 2025-11-25 \(legacy\), \d+ tools\n/)
  expect(
    await call(`${gateway.origin}/mcp/everything`, 'tools/call', { name: 'echo', arguments: { message: 'hello' } }),
  ).toMatchObject({ result: { content: [{ type: 'text', text: 'Echo: hello' }] } })
  for (const door of ['/mcp', '/mcp/upstream']) {
    const answer = await call(gateway.origin + door, 'tools/call', { name: 'example-ping', arguments: {} })
    expect(answer).toMatchObject({ result: { content: [{ type: 'text', text: 'pong' }] } })
  }
})
