// How long a search for tools takes beside the list of all of them.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { answerTo, type Request } from './mcp-answers.ts'
import { type ListedTool, listPages, listTools, searchTools } from './mcp-client.ts'
import { listening } from './peer.ts'
import { startDragomanWithData } from './start-dragoman.ts'
import { quantile } from './statistics.ts'

const COUNTS = [452, 10_000]
const ROUNDS = 300
const WARM_ROUNDS = 30
const LISTED_MS = 60_000
const HOUR = 3_600_000

export interface Latency {
  readonly median: number
  readonly p99: number
}

/** Milliseconds of a search, and of all pages of the list, at so many tools. */
export interface ToolLatency {
  readonly tools: number
  readonly searchMs: Latency
  readonly listMs: Latency
}

/** Real definitions, as often as it takes, each time under other names. */
const repeated = (definitions: readonly ListedTool[], count: number): ListedTool[] =>
  Array.from({ length: count }, (_, at) => {
    const { name, ...rest } = definitions[at % definitions.length] as ListedTool
    const turn = Math.floor(at / definitions.length)
    return { name: turn === 0 ? name : `${name.slice(0, 50)}_${turn}`, ...rest }
  })

/** A server whose list has so many tools: `/452`. The gateway reads it once. */
const startServer = async (definitions: readonly ListedTool[]): Promise<string> => {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const message = JSON.parse(Buffer.concat(chunks).toString() || '{}') as Request
    const count = Number((request.url ?? '').slice(1))
    const list = { resultType: 'complete', tools: repeated(definitions, count), ttlMs: HOUR, cacheScope: 'public' }
    const text =
      message.method === 'tools/list'
        ? JSON.stringify({ jsonrpc: '2.0', id: message.id, result: list })
        : answerTo('modern', message).text
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(text)
  })
  return (await listening(server)).url
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

const latencyOf = (all: number[]): Latency => {
  const sorted = all.sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) }
}

/** Searches and lists in turn, so that both have the same neighbours. */
const measure = async (
  origin: string,
  tools: number,
  queries: readonly string[],
  limit: number,
): Promise<ToolLatency> => {
  const [all, short] = [`${origin}/mcp/all-${tools}`, `${origin}/mcp/search-${tools}`]
  const deadline = Date.now() + LISTED_MS
  while ((await listTools(all)).length < tools) {
    if (Date.now() > deadline) throw new Error(`${all} does not list ${tools} tools`)
    await sleep(200)
  }
  const [searches, lists]: [number[], number[]] = [[], []]
  for (let round = -WARM_ROUNDS; round < ROUNDS; round++) {
    const query = queries[(round + WARM_ROUNDS) % queries.length] ?? ''
    const searched = await timed(() => searchTools(short, query, limit))
    const listed = await timed(() => listPages(all, 'tools/list'))
    if (round < 0) continue
    searches.push(searched)
    lists.push(listed)
  }
  return { tools, searchMs: latencyOf(searches), listMs: latencyOf(lists) }
}

export const measureLatencies = async (
  definitions: readonly ListedTool[],
  queries: readonly string[],
  limit: number,
): Promise<ToolLatency[]> => {
  const server = await startServer(definitions)
  const each = (make: (count: number) => readonly [string, object][]): Record<string, object> =>
    Object.fromEntries(COUNTS.flatMap(make))
  const { url, child } = await startDragomanWithData({
    mcpServers: each(count => [[`s${count}`, { url: new URL(`/${count}`, server).href, era: 'modern' }]]),
    workspaces: each(count => [
      [`all-${count}`, { servers: [`s${count}`] }],
      [`search-${count}`, { servers: [`s${count}`], budget: { tokens: 1000, favourites: [] } }],
    ]),
  })
  const latencies: ToolLatency[] = []
  for (const count of COUNTS) latencies.push(await measure(new URL(url).origin, count, queries, limit))
  child.kill()
  return latencies
}
