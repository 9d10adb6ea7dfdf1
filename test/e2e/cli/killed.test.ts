import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { start as startServer } from '../../support/servers/sdk-v1-server.ts'
import { endPrograms, type Program, startProgram } from './program.ts'

const WATCHED = 'test://watched-resource'
const folder = mkdtempSync(join(tmpdir(), 'dragoman-killed-'))
const file = join(folder, 'mcp.json')
const data = join(folder, 'data')
let server: Awaited<ReturnType<typeof startServer>>
const clients: TestClient[] = []

beforeAll(async () => {
  server = await startServer()
  writeFileSync(file, JSON.stringify({ mcpServers: { everything: { url: server.url } } }))
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close().catch(() => {})
  await endPrograms()
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const serve = async (port: number): Promise<Program & { readonly origin: string }> => {
  const program = startProgram(['serve', '--config', file, '--port', String(port), '--data', data])
  const [, origin = ''] = await program.saw(/listening on (http:\S+)/)
  return { ...program, origin }
}

const outcomeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: unknown) => error,
  )

test('SDK clients go on when the program is killed and started again', async () => {
  const first = await serve(0)
  const url = `${first.origin}/mcp`
  clients.push(await connectV1({ url, persistent: true }), await connectV2('SDK v2 legacy', { url, persistent: true }))
  const running: Promise<unknown>[] = []
  for (const client of clients) {
    await client.watch(WATCHED)
    await client.setLevel('error')
    await new Promise<void>(resolve => {
      running.push(outcomeOf(client.call('wait', { ms: 60_000 }, { onProgress: () => resolve() })))
    })
  }
  first.signal('SIGKILL')
  await first.ended
  const second = await serve(Number(new URL(url).port))
  expect(second.origin).toBe(first.origin)
  for (const [at, client] of clients.entries()) {
    expect(await running[at]).toMatchObject({ code: -32603, data: { reason: 'gateway_restarted' } })
    expect(textOf(await client.call('echo', { text: 'still here' }))).toContain('still here')
    expect(client.requests.filter(({ headers }) => !headers.has('mcp-session-id'))).toHaveLength(1) // initialize
    await client.notices.next('notifications/resources/updated') // it may have changed meanwhile
    await client.call('change_watched_resource')
    await client.notices.next('notifications/resources/updated')
    await client.call('test_tool_with_logging') // at level info
    expect(client.notices.pending('notifications/message')).toEqual([])
  }
  second.signal('SIGTERM')
  expect(await second.ended).toBe(0)
}, 60_000)
