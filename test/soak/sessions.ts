// Three waves of legacy sessions that are opened, used and abandoned: nothing of them may stay.
import { setTimeout as sleep } from 'node:timers/promises'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'
import type { Figures } from './harness.ts'
import { type HttpClient, httpClient, messageOf } from './http-client.ts'
import { type SoakUpstream, startSoakUpstream } from './upstream.ts'

const WAVES = 3
const SESSIONS = 1_000
const AT_ONCE = 50
const CALLS = 3
const IDLE_MS = 3_000
const SETTLE_MS = 15_000 // idle upstream sockets are closed some seconds after their last use
const HEAP_GROWTH = 1.1

interface Visit {
  readonly client: HttpClient
  readonly url: string
  readonly session: string
}

const sessionHeaders = (session: string) => ({ 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' })

const openSession = async (client: HttpClient, url: string): Promise<string> => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'soak', version: '1.0.0' } }
  const answer = await client.post(url, { id: 0, method: 'initialize', params })
  const session = answer.headers['mcp-session-id']
  if (typeof session !== 'string') throw new Error(`initialize was answered ${answer.status}: ${answer.body}`)
  await client.post(url, { method: 'notifications/initialized' }, sessionHeaders(session))
  return session
}

const call = async ({ client, url, session }: Visit, id: number, name: string): Promise<void> => {
  const params = { name, arguments: { message: `call ${id}`, text: `call ${id}` } }
  const answer = await client.post(url, { id, method: 'tools/call', params }, sessionHeaders(session))
  if (!messageOf(answer).result) throw new Error(`${name} was answered ${answer.status}: ${answer.body}`)
}

// Every other session is on the built-in server, the rest on a remote one; every fourth listens on a GET stream, and
// every tenth is cut off in the middle of a call.
const visit = async (gateway: GatewayProcess, number: number): Promise<Visit> => {
  const client = httpClient()
  const isBuiltin = number % 2 === 0
  const url = `${gateway.origin}/mcp/${isBuiltin ? 'builtin' : 'remote'}`
  const session = await openSession(client, url)
  const visited = { client, url, session }
  for (let id = 1; id <= CALLS; id++) await call(visited, id, isBuiltin ? 'example-echo' : 'echo')
  if (number % 4 < 2) {
    const status = await client.stream(url, sessionHeaders(session))
    if (status !== 200) throw new Error(`the GET stream was answered ${status}`)
  }
  if (number % 10 === 1) call(visited, 99, 'slow').catch(() => {})
  return visited
}

const wave = async (gateway: GatewayProcess, sessions: number): Promise<Visit[]> => {
  const visits: Visit[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < sessions) visits.push(await visit(gateway, next++))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  for (const { client } of visits) client.leave()
  return visits
}

const isEmpty = (load: Figures['load']): boolean => Object.values(load).every(count => count === 0)

const isBackAt = (baseline: Figures, now: Figures): boolean =>
  Object.entries(now.resources).every(([kind, count]) => count <= (baseline.resources[kind] ?? 0))

const settle = async (gateway: GatewayProcess, baseline: Figures): Promise<Figures> => {
  await sleep(IDLE_MS + 1_000)
  const deadline = Date.now() + SETTLE_MS
  let now = await gateway.figures()
  while (!(isBackAt(baseline, now) && isEmpty(now.load)) && Date.now() < deadline) {
    await sleep(500)
    now = await gateway.figures()
  }
  return now
}

// A client of a session that is gone hears 404; asking comes last, because it would use one that is not.
const countAnswering = async (visits: readonly Visit[]): Promise<number> => {
  const client = httpClient()
  let answering = 0
  for (const { url, session } of visits) {
    const { status } = await client.post(url, { id: 1, method: 'ping' }, sessionHeaders(session))
    if (status !== 404) answering++
  }
  client.leave()
  return answering
}

interface Row extends Figures {
  readonly label: string
  readonly answering: number
  readonly upstreamSessions: number
}

const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(2)

const print = ({ label, heapBytes, rssBytes, load, answering, upstreamSessions, resources }: Row): void => {
  const numbers = [load.sessions, load.calls, load.logBytes, answering, upstreamSessions]
  const cells = [label, mebibytes(heapBytes), mebibytes(rssBytes), ...numbers]
  console.log(`${cells.map(cell => String(cell).padStart(9)).join(' ')}  ${JSON.stringify(resources)}`)
}

const HEADER =
  '    after  heap MiB   RSS MiB  sessions     calls log bytes answering  upstream  what keeps the loop alive'

const faults = (baseline: Figures, waves: readonly Row[]): string[] => {
  const [first, last] = [waves[0], waves.at(-1)]
  const found: string[] = []
  if (!first || !last || waves.length !== WAVES) return ['not every wave was run']
  if (last.heapBytes > first.heapBytes * HEAP_GROWTH) {
    found.push(`the heap grew from ${mebibytes(first.heapBytes)} MiB after wave 1 to ${mebibytes(last.heapBytes)} MiB`)
  }
  for (const row of waves) {
    if (!isEmpty(row.load)) found.push(`${row.label}: the gateway still holds ${JSON.stringify(row.load)}`)
    if (row.answering > 0) found.push(`${row.label}: ${row.answering} sessions still answer`)
    if (row.upstreamSessions > 0) found.push(`${row.label}: ${row.upstreamSessions} upstream sessions were not ended`)
    if (!isBackAt(baseline, row))
      found.push(`${row.label}: sockets or timers are left, ${JSON.stringify(row.resources)}`)
  }
  return found
}

// Sockets have to go altogether: without a session nobody needs one, and idle ones are closed after a while.
const baselineOf = ({ resources, ...rest }: Figures): Figures => {
  const { TCPSocketWrap: _, ...others } = resources
  return { ...rest, resources: others }
}

const soak = async (gateway: GatewayProcess, upstream: SoakUpstream): Promise<string[]> => {
  console.log(HEADER)
  const baseline = baselineOf(await gateway.figures())
  const sample = async (label: string, visits: readonly Visit[]): Promise<Row> => {
    const figures = await settle(gateway, baseline)
    const answering = await countAnswering(visits)
    const row = { label, ...figures, answering, upstreamSessions: upstream.sessions.size }
    print(row)
    return row
  }
  await sample('start', await wave(gateway, 4))
  const rows: Row[] = []
  for (let number = 1; number <= WAVES; number++) {
    rows.push(await sample(`wave ${number}`, await wave(gateway, SESSIONS)))
  }
  return faults(baseline, rows)
}

const upstream = await startSoakUpstream()
const gateway = await startGatewayProcess({
  limits: { sessionIdleMs: IDLE_MS, orphanMs: 1_000, keepAliveMs: 1_000 },
  mcpServers: { builtin: { builtin: 'demo' }, remote: { url: upstream.url, era: 'legacy' } },
})
try {
  const found = await soak(gateway, upstream)
  for (const fault of found) console.log(`FAILED: ${fault}`)
  if (found.length === 0) console.log(`passed: ${WAVES} waves of ${SESSIONS} sessions left nothing behind`)
  process.exitCode = found.length === 0 ? 0 : 1
} finally {
  await gateway.stop()
  upstream.close()
}
