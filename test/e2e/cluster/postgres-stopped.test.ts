import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startPostgres, whyNoPostgres } from '../../support/postgres.ts'
import { openSession, send } from '../../support/raw.ts'
import { startServe } from '../cli/program.ts'

const LEASE_MS = 6000
const isOwn = whyNoPostgres() === undefined && !process.env.DATABASE_URL

describe.skipIf(!isOwn || process.platform === 'win32')('a replica that is stopped and continued', () => {
  test('loses its sessions to the other one, and sends them there when it is back', async () => {
    const postgres = await startPostgres()
    onTestFinished(postgres.stop)
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-stopped-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
    const config = join(folder, 'dragoman.json')
    await writeFile(config, JSON.stringify({ store: postgres.url, mcpServers: { demo: { builtin: 'demo' } } }))
    const start = async (name: string) => {
      const program = await startServe(['--config', config, '--data', join(folder, name), '--log-level', 'info'])
      onTestFinished(async () => {
        program.signal('SIGKILL')
        await program.ended
      })
      return program
    }
    const [home, other] = [await start('home'), await start('other')]
    const { headers } = await openSession(`${home.origin}/mcp`)
    const ask = (origin: string, id: number) =>
      send(`${origin}/mcp`, { headers, body: { jsonrpc: '2.0', id, method: 'tools/list', params: {} } })
    expect((await ask(other.origin, 1)).json.result).toBeDefined() // forwarded

    home.signal('SIGSTOP')
    const stopped = performance.now()
    // What is sent to it while it has its lease is lost with a typed error, never repeated and never silent.
    const first = await ask(other.origin, 2)
    expect(performance.now() - stopped).toBeLessThan(LEASE_MS * 3)
    const { error, id } = first.json as { error?: { data?: { reason?: string } }; id?: unknown }
    expect([id, error?.data?.reason ?? 'result']).toEqual([2, expect.stringMatching(/^(replica_lost|result)$/)])
    await expect.poll(async () => (await ask(other.origin, 3)).json.result, { timeout: 15_000 }).toBeDefined()

    home.signal('SIGCONT')
    await home.saw(/lease lost; the replica joins again under a new name/, 'stderr')
    await expect.poll(async () => (await ask(home.origin, 4)).json.result, { timeout: 15_000 }).toBeDefined()
    expect((await ask(other.origin, 5)).json.result).toBeDefined()
  })
})
