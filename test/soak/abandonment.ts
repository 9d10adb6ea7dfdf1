import { setTimeout as sleep } from 'node:timers/promises'
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts'
import type { Figures } from './harness.ts'
import { type HttpClient, httpClient, messageOf } from './http-client.ts'
import { type SoakUpstream, startSoakUpstream } from './upstream.ts'

/** How often each kind of client comes and leaves without a word. */
export interface AbandonmentOptions {
  readonly warmUp: number
  readonly times: number
  readonly capabilitySets: number
  readonly report?: (line: string) => void
}

const MOST_GROWTH = 1.1
const AT_ONCE = 20
const IDLE_MS = 1_500 // until the gateway gives up what was abandoned
const SETTLE_MS = 40_000 // at most, until nothing is left of a kind; buffers are freed a while after their owners
const POLL_MS = 250
const INFO = { name: 'soak', version: '1.0.0' }
const PADDING = 'x'.repeat(100 * 1024) // part of a request that nothing may keep
const CAPABILITY_BYTES = 60 * 1024

type Abandon = (client: HttpClient, gateway: GatewayProcess, number: number) => Promise<void>

const expectStatus = (what: string, status: number, wanted: number): void => {
  if (status !== wanted) throw new Error(`${what} was answered ${status}`)
}

const initialize = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: INFO }

const abandonSession: Abandon = async (client, { origin }, number) => {
  const url = `${origin}/mcp/${number % 2 === 0 ? 'builtin' : 'remote'}`
  const answer = await client.post(url, { id: 0, method: 'initialize', params: initialize, pad: PADDING })
  expectStatus('initialize', answer.status, 200)
  const headers = { 'mcp-session-id': String(answer.headers['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' }
  await client.post(url, { method: 'notifications/initialized' }, headers)
  if (number % 4 === 0) expectStatus('a GET stream', await client.stream(url, headers), 200)
}

const abandonChannel: Abandon = async (client, { origin }) => {
  const { status, headers } = await client.open(`${origin}/mcp/builtin/sse`, {})
  expectStatus('a channel', status, 200)
  const session = { 'mcp-session-id': String(headers['mcp-session-id']) }
  const url = `${origin}/mcp/builtin`
  await client.post(url, { id: 0, method: 'initialize', params: initialize, pad: PADDING }, session)
}

const modern = (method: string, params: object, capabilities: object, pad = '') => ({
  headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
  message: {
    id: 1,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': INFO,
        'io.modelcontextprotocol/clientCapabilities': capabilities,
        ...(pad !== '' && { 'soak/pad': pad }),
      },
    },
  },
})

const abandonListener: Abandon = async (client, { origin }, number) => {
  const { headers, message } = modern(
    'subscriptions/listen',
    { notifications: { toolsListChanged: true } },
    {},
    PADDING,
  )
  const url = `${origin}/mcp/${number % 2 === 0 ? 'builtin' : 'remote'}`
  expectStatus('a listener', (await client.open(url, headers, message)).status, 200)
}

const abandonParkedCall: Abandon = async (client, { origin }) => {
  const params = { name: 'test_elicitation', arguments: { message: 'Who?' } }
  const { headers, message } = modern('tools/call', params, { elicitation: { form: {} } }, PADDING)
  const named = { ...headers, 'mcp-name': params.name }
  const answer = await client.post(`${origin}/mcp/builtin`, message, named)
  if (messageOf(answer).result?.resultType !== 'input_required') throw new Error(`a call was answered ${answer.body}`)
}

const listWithCapabilities: Abandon = async (client, { origin }, number) => {
  const capabilities = { experimental: { [`set${number}`]: { pad: 'x'.repeat(CAPABILITY_BYTES) } } }
  const { headers, message } = modern('tools/list', {}, capabilities)
  for (const workspace of ['builtin', 'remote', 'both'])
    expectStatus('a list', (await client.post(`${origin}/mcp/${workspace}`, message, headers)).status, 200)
}

const KINDS: readonly (readonly [string, Abandon])[] = [
  ['sessions', abandonSession],
  ['channels', abandonChannel],
  ['listeners', abandonListener],
  ['parked calls', abandonParkedCall],
  ['capability sets', listWithCapabilities],
]

let next = 0

/** Every client is another one, and is cut off as soon as it has done its part. */
const repeat = async (gateway: GatewayProcess, times: number, abandon: Abandon): Promise<void> => {
  const end = next + times
  const worker = async (): Promise<void> => {
    while (next < end) {
      const client = httpClient()
      await abandon(client, gateway, next++)
      client.leave()
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(2)

const faultsOf = (what: string, before: Figures, after: Figures): string[] => {
  const faults: string[] = []
  if (Object.values(after.load).some(count => count > 0))
    faults.push(`after ${what} the gateway holds ${JSON.stringify(after.load)}`)
  if (after.heapBytes > before.heapBytes * MOST_GROWTH)
    faults.push(`${what} grew the heap from ${mebibytes(before.heapBytes)} to ${mebibytes(after.heapBytes)} MiB`)
  if (after.externalBytes > before.externalBytes + before.heapBytes * (MOST_GROWTH - 1))
    faults.push(`${what} left ${mebibytes(after.externalBytes - before.externalBytes)} MiB of buffers behind`)
  return faults
}

/** The figures once they have no faults, or when the time for that is over. */
const settle = async (gateway: GatewayProcess, findFaults: (now: Figures) => string[]) => {
  const deadline = Date.now() + SETTLE_MS
  for (;;) {
    const figures = await gateway.figures()
    const faults = findFaults(figures)
    if (faults.length === 0 || Date.now() > deadline) return { figures, faults }
    await sleep(POLL_MS)
  }
}

/** The figures after the first clients, once nothing is held and the heap has stopped shrinking. */
const baseline = async (gateway: GatewayProcess): Promise<Figures> => {
  let last = Number.POSITIVE_INFINITY
  const { figures } = await settle(gateway, now => {
    const isShrinking = now.heapBytes < last * 0.995
    last = now.heapBytes
    return isShrinking ? ['the heap shrinks'] : faultsOf('the first clients', now, now)
  })
  return figures
}

const measure = async (gateway: GatewayProcess, options: AbandonmentOptions): Promise<string[]> => {
  const { warmUp, times, capabilitySets, report = () => {} } = options
  for (const [, abandon] of KINDS) await repeat(gateway, warmUp, abandon)
  const before = await baseline(gateway)
  const found: string[] = []
  report(`before: heap ${mebibytes(before.heapBytes)} MiB, buffers ${mebibytes(before.externalBytes)} MiB`)
  for (const [kind, abandon] of KINDS) {
    const count = abandon === listWithCapabilities ? capabilitySets : times
    await repeat(gateway, count, abandon)
    const what = `${count} ${kind}`
    const { figures: after, faults } = await settle(gateway, now => faultsOf(what, before, now))
    report(`after ${what}: heap ${mebibytes(after.heapBytes)} MiB, buffers ${mebibytes(after.externalBytes)} MiB`)
    found.push(...faults)
  }
  return found
}

/** Says what is left of clients that came and left without a word; empty if nothing is. */
export const soakAbandonment = async (options: AbandonmentOptions): Promise<string[]> => {
  const upstream: SoakUpstream = await startSoakUpstream()
  const gateway = await startGatewayProcess({
    limits: { sessionIdleMs: IDLE_MS, questionTtlMs: IDLE_MS, orphanMs: IDLE_MS, keepAliveMs: 500 },
    mcpServers: { builtin: { builtin: 'demo' }, remote: { url: upstream.url, era: 'legacy' } },
    workspaces: {
      builtin: { servers: ['builtin'] },
      remote: { servers: ['remote'] },
      both: { servers: ['builtin', 'remote'] },
    },
  })
  try {
    return await measure(gateway, options)
  } finally {
    await gateway.stop()
    upstream.close()
  }
}
