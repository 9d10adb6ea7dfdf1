// Installs the servers of real-servers.ts, lists their tools, and counts how many of them the rules of docs/tool-safety.md flag. Every
// flag is printed with its text, so that a reader can judge it. Usage: npx tsx scripts/flag-servers.ts [folder]
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildServer } from '../src/app/build-server.ts'
import { createToolFlags } from '../src/app/tool-flags.ts'
import { loadConfig } from '../src/config/load.ts'
import type { ServerConfig } from '../src/config/snapshot.ts'
import { gatewayCaller } from '../src/health/probe-server.ts'
import { type FlaggedTool, flagText, TOOL_RULES } from '../src/protocol/pins.ts'
import { readToolList } from '../src/safety/read-tool-list.ts'
import { within } from '../src/std/time.ts'
import { SILENT } from '../src/telemetry/log.ts'
import { ProcessHost } from '../src/upstreams/process/process-host.ts'
import { KnownEras } from '../src/upstreams/stdio/known-era.ts'
import { Json } from '../src/wire/json/json.ts'
import { type InstalledServer, installServer } from './install-servers.ts'
import { REAL_SERVERS } from './real-servers.ts'

const [folder = join(tmpdir(), 'real-servers')] = process.argv.slice(2)
const START_MS = 30_000
const AT_ONCE = 3
setInterval(() => {}, 1000) // the timers of the gateway keep no process alive

const installed: InstalledServer[] = []
const failed: string[] = []
const queue = [...REAL_SERVERS]
const install = async (): Promise<void> => {
  for (let server = queue.shift(); server; server = queue.shift())
    try {
      installed.push(await installServer(server, folder))
    } catch (error) {
      failed.push(`${server.package}: not installed: ${String((error as Error).message).split('\n')[0]}`)
    }
}
await Promise.all(Array.from({ length: AT_ONCE }, install))
installed.sort((a, b) => (a.name < b.name ? -1 : 1))

const lists = new Map<string, { readonly tools: readonly Json[] | undefined; readonly reason?: string }>()
const self = gatewayCaller(Json.of({ name: 'dragoman', version: 'flag-servers' }))
const listOf = async ({ name, entry }: InstalledServer) => {
  const { servers } = await loadConfig({ value: { mcpServers: { [name]: entry } }, env: process.env })
  const upstream = buildServer(servers.get(name) as ServerConfig, {
    log: SILENT,
    version: 'flag-servers',
    host: new ProcessHost(1),
    knownEras: new KnownEras(),
    data: folder,
    sources: () => undefined,
    ownPort: () => undefined,
  })
  const work = async () => readToolList(await upstream.open(self), self, true)
  try {
    return await within(START_MS, work(), () => {
      throw new Error(`no list within ${START_MS / 1000} s`)
    })
  } finally {
    await upstream.close().catch(() => {})
  }
}
const waiting = [...installed]
const listNext = async (): Promise<void> => {
  for (let server = waiting.shift(); server; server = waiting.shift()) {
    const found = await listOf(server).then(
      ({ tools }) => ({ tools, reason: 'it listed no tools' }),
      (error: Error) => ({ tools: undefined, reason: error.message }),
    )
    if (found.tools && found.tools.length > 0) lists.set(server.name, found)
    else failed.push(`${server.name} ${server.version}: ${String(found.reason).split('\n')[0]}`)
    process.stderr.write(`${server.name} ${found.tools?.length ?? '-'}\n`)
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, listNext))

const names = [...lists.keys()]
const { workspaces } = await loadConfig({
  value: {
    mcpServers: Object.fromEntries(
      installed.filter(({ name }) => lists.has(name)).map(({ name, entry }) => [name, entry]),
    ),
    workspaces: { all: { servers: names, names: 'prefix' } },
  },
  env: process.env,
})
const flags = createToolFlags(
  server => lists.get(server)?.tools,
  () => workspaces.values(),
).all()
const tools = [...lists.values()].reduce((sum, found) => sum + (found.tools?.length ?? 0), 0)
const flaggedTools = (some: readonly FlaggedTool[]): number =>
  new Set(some.map(({ server, tool }) => JSON.stringify([server, tool]))).size

console.log(`servers that listed tools: ${lists.size}, tools: ${tools}`)
for (const rule of Object.keys(TOOL_RULES)) {
  const some = flags.filter(({ flag }) => flag.rule === rule)
  console.log(`${rule}: ${flaggedTools(some)} tools of ${new Set(some.map(({ server }) => server)).size} servers`)
}
console.log(`any rule: ${flaggedTools(flags)} tools of ${new Set(flags.map(({ server }) => server)).size} servers\n`)
for (const flag of flags) console.log(flagText(flag))
console.log(
  `\nservers: ${installed
    .filter(({ name }) => lists.has(name))
    .map(({ name, version }) => `${name} ${version}`)
    .join(', ')}`,
)
console.log(`\nnot counted:\n${failed.join('\n')}`)
process.exit(0)
