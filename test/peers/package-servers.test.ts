import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { endPrograms, startProgram, startServe } from '../e2e/cli/program.ts'
import { connectV1 } from '../support/client-v1.ts'
import { connectV2 } from '../support/client-v2.ts'
import { findLaunchers, PACKAGE_SERVERS, packageConfig } from './package-servers.ts'
import { runCommand } from './process.ts'

// Seven servers as newcomers start them, with npx and uvx.

const DOWNLOAD_MS = 300_000
const SLOW = { timeout: 150_000 }
const IDLE_MS = 20_000
const CALLED = { filesystem: 'list_allowed_directories', memory: 'read_graph', everything: 'get-tiny-image' }

let folder: string
let reason: string | undefined
let servers: ReturnType<typeof packageConfig>
let gateway: Awaited<ReturnType<typeof startServe>>

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dragoman-packages-'))
  const launchers = await findLaunchers()
  if ('reason' in launchers) {
    reason = launchers.reason
    return
  }
  await runCommand({ command: 'git', args: ['init', '--quiet', folder] }, 20_000)
  servers = packageConfig(folder, launchers.path, IDLE_MS)
  const file = join(folder, 'mcp.json')
  writeFileSync(file, JSON.stringify(servers.config))
  const check = startProgram(['check', file, '--timeout', '240']) // fills the caches of npx and uvx
  expect([await check.ended, check.stdout()]).toEqual([0, expect.stringContaining('is valid')])
  gateway = await startServe(['--config', file])
}, DOWNLOAD_MS)
afterAll(async () => {
  gateway?.signal('SIGTERM')
  await gateway?.ended
  await endPrograms()
  rmSync(folder, { recursive: true, force: true })
})

/** The tools of each server. */
const ALL = Object.fromEntries(Object.entries(PACKAGE_SERVERS).map(([name, { tools }]) => [name, tools]))
const listed = (names: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const name of names) {
    const [server = ''] = name.split('__')
    counts[server] = (counts[server] ?? 0) + 1
  }
  return counts
}

/** Processes start one after the other: none may run at two looks in a row. */
const allEnd = async (): Promise<void> => {
  let looks = 0
  const count = (): number => {
    looks = Object.keys(servers.running().trees).length === 0 ? looks + 1 : 0
    return looks
  }
  await expect.poll(count, { ...SLOW, interval: 3000 }).toBeGreaterThan(1)
}

test('the first client lists all tools of seven npx and uvx servers', SLOW, async ({ skip }) => {
  if (reason) skip(reason)
  const url = `${gateway.origin}/mcp`
  const first = await connectV1({ url, capabilities: {} })
  expect(listed(await first.toolNames())).toEqual(ALL)
  await first.close()
})

test.runIf(process.platform === 'linux')(
  'three short clients of three npx servers: one process each, none for the others, all gone when idle',
  SLOW,
  async ({ skip }) => {
    if (reason) skip(reason)
    await allEnd() // the gateway has learnt what they offer
    let mostMb = 0
    for (let turn = 0; turn < 3; turn++) {
      const client = await connectV1({ url: `${gateway.origin}/mcp`, capabilities: {} })
      for (const [server, tool] of Object.entries(CALLED))
        expect(await client.call(`${server}__${tool}`)).not.toMatchObject({ isError: true })
      const { trees, rssMb } = servers.running()
      expect(trees).toEqual({ filesystem: 1, memory: 1, everything: 1 })
      mostMb = Math.max(mostMb, rssMb)
      await client.close()
    }
    process.stderr.write(`the processes of three npx servers, called by three clients: ${mostMb} MB RSS\n`)
    await allEnd()
  },
)

test('a client with other capabilities gets all tools at once', SLOW, async ({ skip }) => {
  if (reason) skip(reason)
  const begun = performance.now()
  const client = await connectV2('SDK v2 modern', { url: `${gateway.origin}/mcp`, capabilities: { roots: {} } })
  expect(listed(await client.toolNames())).toEqual(ALL)
  process.stderr.write(
    `a client with other capabilities had all tools after ${Math.round(performance.now() - begun)} ms\n`,
  )
  await client.close()
})
