// `npm --prefix bench run tool-search [-- FOLDER]`: whether the right tool of many real servers is found, and what a budget
// saves. Installs the servers of tool-servers.ts, or uses a folder that has them.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { table } from './markdown.ts'
import { publish } from './page.ts'
import { type Facts, facts, factsLine, OURS_ALONE, save } from './results.ts'
import { startDragomanWithData } from './start-dragoman.ts'
import { SEARCH_TASKS, type SearchTask } from './tool-search-tasks.ts'
import { SERVERS } from './tool-servers.ts'

const AMONG = 5
const READY_MS = 180_000
const BUDGETS = [10_000, 20_000, 50_000]
const ROUNDS = 200 // timings of a search, and of the list

interface WorkspaceSize {
  readonly name: string
  readonly tools: number
  readonly listedTools: number
  readonly listed: { readonly tokens: number; readonly bytes: number }
}

interface TaskResult extends SearchTask {
  readonly half: 'for tuning' | 'kept aside'
  readonly place: number // 0: it was not found
}

interface Latency {
  readonly median: number
  readonly p99: number
}

interface ToolSearchResults extends Facts {
  readonly servers: readonly string[]
  readonly sizes: readonly WorkspaceSize[]
  readonly tasks: readonly TaskResult[]
  readonly searchMs: Latency
  readonly listMs: Latency
}

const folderOf = (folder: string, id: string): string => join(folder, 'p', id.replaceAll(/[/@]/g, '_'))

const install = (folder: string): void => {
  const packagesOf = (registry: string): string[] =>
    Object.values(SERVERS).flatMap(server => (server.registry === registry ? server.package : []))
  for (const id of packagesOf('npm')) // apart: they need other versions of the same libraries
    execFileSync('npm', ['install', '--ignore-scripts', '--prefix', folderOf(folder, id), id], { stdio: 'ignore' })
  execFileSync('python3', ['-m', 'venv', join(folder, 'py')])
  execFileSync(join(folder, 'py/bin/pip'), ['install', '-q', ...packagesOf('PyPI')], { stdio: 'ignore' })
}

const entriesIn = (folder: string): Record<string, object> =>
  Object.fromEntries(
    Object.entries(SERVERS).map(([name, { registry, package: id, args = [], env = {} }]) => {
      if (registry === 'PyPI') return [name, { command: join(folder, 'py/bin', id), args, env, cwd: folder }]
      const root = join(folderOf(folder, id), 'node_modules', id)
      const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
        bin: string | Record<string, string>
      }
      const program = typeof bin === 'string' ? bin : (Object.values(bin)[0] ?? '')
      return [name, { command: process.execPath, args: [join(root, program), ...args], env, cwd: folder }]
    }),
  )

const readyz = async (origin: string) =>
  (await (await fetch(`${origin}/readyz`)).json()) as {
    readonly servers: readonly { readonly name: string; readonly state: string }[]
    readonly workspaces: readonly WorkspaceSize[]
  }

const CLIENT = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

const ask = async (url: string, method: string, params: Readonly<Record<string, unknown>> = {}): Promise<string> => {
  const name: Record<string, string> = typeof params.name === 'string' ? { 'mcp-name': params.name } : {}
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...name,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: CLIENT } }),
  })
  if (!response.ok) throw new Error(`${method}: ${response.status} ${await response.text()}`)
  return response.text()
}

const search = (url: string, query: string): Promise<string> =>
  ask(url, 'tools/call', { name: 'search_tools', arguments: { query, limit: AMONG } })

/** The names at the beginning of each found signature. */
const namesIn = (answer: string): string[] =>
  [...answer.matchAll(/\\n\\n([\w-]+__[\w-]+)\(/g)].map(([, name]) => name ?? '')

const measure = async (work: (round: number) => Promise<unknown>): Promise<Latency> => {
  const all: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const begun = performance.now()
    await work(round)
    all.push(performance.now() - begun)
  }
  all.sort((a, b) => a - b)
  const at = (share: number): number => all[Math.floor(ROUNDS * share)] ?? 0
  return { median: at(0.5), p99: at(0.99) }
}

const [given] = process.argv.slice(2)
const folder = given ?? mkdtempSync(join(tmpdir(), 'dragoman-bench-tools-'))
if (!existsSync(join(folder, 'p'))) install(folder)
const workspaces = {
  all: { servers: '*' },
  trimmed: { servers: '*', trim: true },
  ...Object.fromEntries(
    BUDGETS.map(tokens => [`budget-${tokens / 1000}k`, { servers: '*', budget: { tokens, favourites: ['*'] } }]),
  ),
  search: { servers: '*', budget: { tokens: 1000, favourites: [] } },
}
const { url } = await startDragomanWithData({
  mcpServers: entriesIn(folder),
  workspaces,
  limits: { concurrentStarts: 2 },
})
const origin = new URL(url).origin
const deadline = Date.now() + READY_MS
let state = await readyz(origin)
while (state.servers.some(server => server.state === 'connecting') && Date.now() < deadline) {
  await sleep(1000)
  state = await readyz(origin)
}
const searched = `${origin}/mcp/search`
await search(searched, 'anything') // reads every definition
const tasks: TaskResult[] = []
for (const [at, task] of SEARCH_TASKS.entries()) {
  const place = namesIn(await search(searched, task.query)).findIndex(name => task.tools.includes(name)) + 1
  tasks.push({ ...task, half: at % 2 === 0 ? 'for tuning' : 'kept aside', place })
}
const results: ToolSearchResults = {
  ...facts(),
  servers: state.servers.filter(server => server.state === 'ready').map(({ name }) => name),
  sizes: (await readyz(origin)).workspaces,
  tasks,
  searchMs: await measure(round => search(searched, SEARCH_TASKS[round % SEARCH_TASKS.length]?.query ?? '')),
  listMs: await measure(() => ask(`${origin}/mcp/all`, 'tools/list')),
}
save('tool-search', results)
publish({ 'Tool search': sectionOf(results) })
console.log(sectionOf(results))
for (const { query, tools, place, half } of tasks)
  if (place === 0) console.log(`${half}: ${query} → ${tools.join(' or ')}`)
process.exit() // the gateway ends with this process

function sectionOf(measured: ToolSearchResults): string {
  const { servers, sizes, searchMs, listMs } = measured
  const latency = ({ median, p99 }: Latency): string => `${median.toFixed(1)} ms (99th percentile ${p99.toFixed(1)} ms)`
  const recall = (half: string, among: number): string => {
    const ofHalf = measured.tasks.filter(task => task.half === half)
    const found = ofHalf.filter(({ place }) => place > 0 && place <= among).length
    return `${Math.round((100 * found) / ofHalf.length)} % of ${ofHalf.length}`
  }
  return [
    factsLine(measured, OURS_ALONE),
    `${servers.length} servers of npm and PyPI in one workspace, listed in \`bench/tool-servers.ts\`. For each of ${measured.tasks.length} written tasks
one search, without favourites: whether a tool that does it is among the first results.
The tasks were written from the names of the tools. One half is for tuning weights, which has not been needed; the other is kept aside.`,
    table(
      ['tasks', 'first', `among the first ${AMONG}`],
      ['for tuning', 'kept aside'].map(half => [half, recall(half, 1), recall(half, AMONG)]),
    ),
    `The list with budgets that are filled with favourites, and with trimming. A search takes ${latency(searchMs)}, the
first page of the whole list ${latency(listMs)}.`,
    table(
      ['workspace', 'tools', 'listed', 'tokens'],
      sizes
        .filter(({ name }) => name in workspaces)
        .map(({ name, tools, listedTools, listed }) => [name, tools, listedTools, listed.tokens].map(String)),
    ),
  ].join('\n\n')
}
