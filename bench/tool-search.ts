// `npm --prefix bench run tool-search [-- FOLDER]`: whether the right tool of many real servers is found, what a budget
// saves, and what it costs. Installs the servers of tool-servers.ts, or uses a folder that has them. With `--calls` only the
// calls are timed, and nothing is published; `--rounds N` times them so often.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type BudgetCalls, timeBudgetCalls } from './budget-calls.ts'
import { listTools, searchTools } from './mcp-client.ts'
import { publish } from './page.ts'
import { facts, save } from './results.ts'
import { startDragomanWithData } from './start-dragoman.ts'
import { measureLatencies } from './tool-latency.ts'
import { type TaskResult, type ToolSearchResults, toolSearchSection, type WorkspaceSize } from './tool-search-report.ts'
import { SEARCH_TASKS } from './tool-search-tasks.ts'
import { SERVERS } from './tool-servers.ts'

const AMONG = 5
const READY_MS = 180_000
const BUDGETS = [10_000, 20_000, 50_000]
const CALL_ROUNDS = 5

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

/** The names at the beginning of each found signature. */
const namesIn = (answer: string): string[] =>
  [...answer.matchAll(/\\n\\n([\w-]+__[\w-]+)\(/g)].map(([, name]) => name ?? '')

const measureCalls = async (rounds: number): Promise<BudgetCalls[]> => {
  const calls: BudgetCalls[] = []
  for (let round = 0; round < rounds; round++) calls.push(...(await timeBudgetCalls(round)))
  return calls
}

const WORKSPACES = {
  all: { servers: '*' },
  trimmed: { servers: '*', trim: true },
  ...Object.fromEntries(
    BUDGETS.map(tokens => [`budget-${tokens / 1000}k`, { servers: '*', budget: { tokens, favourites: ['*'] } }]),
  ),
  search: { servers: '*', budget: { tokens: 1000, favourites: [] } },
}

/** What real servers list, and which tools are found among theirs. */
const measureServers = async (folder: string) => {
  if (!existsSync(join(folder, 'p'))) install(folder)
  const { url, child } = await startDragomanWithData({
    mcpServers: entriesIn(folder),
    workspaces: WORKSPACES,
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
  const tasks: TaskResult[] = []
  for (const [at, task] of SEARCH_TASKS.entries()) {
    const names = namesIn(await searchTools(searched, task.query, AMONG))
    const place = names.findIndex(name => task.tools.includes(name)) + 1
    tasks.push({ ...task, half: at % 2 === 0 ? 'for tuning' : 'kept aside', place })
  }
  const measured = {
    servers: state.servers.filter(server => server.state === 'ready').map(({ name }) => name),
    sizes: (await readyz(origin)).workspaces.filter(({ name }) => name in WORKSPACES),
    tasks,
    definitions: await listTools(`${origin}/mcp/all`),
  }
  child.kill()
  return measured
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { calls: { type: 'boolean' }, rounds: { type: 'string', default: String(CALL_ROUNDS) } },
})
const known = facts()
if (values.calls) {
  await measureCalls(Number(values.rounds))
} else {
  const [folder = mkdtempSync(join(tmpdir(), 'dragoman-bench-tools-'))] = positionals
  const { definitions, ...measured } = await measureServers(folder)
  const queries = SEARCH_TASKS.map(({ query }) => query)
  const latencies = await measureLatencies(definitions, queries, AMONG)
  const results: ToolSearchResults = {
    ...known,
    ...measured,
    among: AMONG,
    latencies,
    calls: await measureCalls(Number(values.rounds)),
  }
  const section = toolSearchSection(results)
  save('tool-search', results)
  publish({ 'Tool search': section })
  console.log(section)
  for (const { query, tools, place, half } of results.tasks)
    if (place === 0) console.log(`${half}: ${query} → ${tools.join(' or ')}`)
}
process.exit() // gateways end with this process
