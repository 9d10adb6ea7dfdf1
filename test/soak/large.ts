// A resource of 40 MiB through each front: it must arrive whole, and the gateway may not grow by three times its size.
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { startGatewayProcess } from './gateway-process.ts'
import { type Answer, type HttpClient, httpClient, messageOf } from './http-client.ts'
import { startSoakUpstream } from './upstream.ts'

const MIB = 2 ** 20
const SIZE = 40 * MIB
const MOST_GROWTH = 3
const CLIENT = { name: 'soak', version: '1.0.0' }
const URI = 'soak://blob'

type Front = 'modern' | 'legacy'
type Read = (client: HttpClient, url: string) => Promise<Answer>

const READ: Readonly<Record<Front, Read>> = {
  modern: (client, url) => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': CLIENT,
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'resources/read', 'mcp-name': URI }
    return client.post(url, { id: 1, method: 'resources/read', params: { uri: URI, _meta } }, headers)
  },
  legacy: async (client, url) => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT }
    const opened = await client.post(url, { id: 0, method: 'initialize', params })
    const headers = { 'mcp-protocol-version': '2025-11-25', 'mcp-session-id': String(opened.headers['mcp-session-id']) }
    await client.post(url, { method: 'notifications/initialized' }, headers)
    return client.post(url, { id: 1, method: 'resources/read', params: { uri: URI } }, headers)
  },
}

const hash = (text: unknown): string => createHash('sha256').update(String(text)).digest('hex')

const blobIn = (answer: Answer): unknown => {
  const contents = messageOf(answer).result?.contents as { blob?: string }[] | undefined
  return contents?.[0]?.blob
}

const memory = (pid: number, name: 'VmHWM' | 'VmRSS'): number => {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  return Number(kib) * 1024
}

const pass = async (front: Front, era: Front, blob: string): Promise<boolean> => {
  const upstream = await startSoakUpstream(blob)
  const gateway = await startGatewayProcess({ mcpServers: { remote: { url: upstream.url, era } } })
  const client = httpClient()
  try {
    await gateway.figures()
    const before = memory(gateway.pid, 'VmRSS')
    const arrived = blobIn(await READ[front](client, `${gateway.origin}/mcp`))
    const growth = (memory(gateway.pid, 'VmHWM') - before) / SIZE
    const isWhole = hash(arrived) === hash(blob)
    const verdict = isWhole && growth < MOST_GROWTH ? 'passed' : 'FAILED'
    console.log(
      `${verdict}: ${front} client, ${era} server: ${isWhole ? 'arrived whole' : 'was changed'}, ` +
        `RSS ${(before / MIB).toFixed(0)} MiB grew by ${growth.toFixed(2)} × its size (under ${MOST_GROWTH})`,
    )
    return verdict === 'passed'
  } finally {
    client.leave()
    await gateway.stop()
    upstream.close()
  }
}

const blob = randomBytes((SIZE / 4) * 3).toString('base64')
const verdicts: boolean[] = []
for (const [front, era] of [
  ['modern', 'modern'],
  ['legacy', 'legacy'],
  ['legacy', 'modern'],
  ['modern', 'legacy'],
] as const) {
  verdicts.push(await pass(front, era, blob))
}
process.exitCode = verdicts.every(Boolean) ? 0 : 1
