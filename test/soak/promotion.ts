import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { startServe } from '../e2e/cli/program.ts'
import { modern, openSession } from '../support/raw.ts'
import { startSoakUpstream } from './upstream.ts'

/** What is measured: calls of one kind of client to one kind of server. */
export interface PromotionCase {
  readonly client: 'modern' | 'session'
  readonly server: 'modern' | 'legacy'
  readonly warmUp: number // calls before those that are counted
  readonly calls: number
}

/** Bytes that reached the old generation of the gateway. */
export interface Promotion {
  readonly scavenges: number
  readonly promotedPerCall: number // moved there by a scavenge
  readonly allocatedPerCall: number // allocated there
}

const COUNTER = new URL('./count-promoted.mjs', import.meta.url).href
const CONNECTIONS = 16
const TEXT = 'x'.repeat(100)
const HEADERS = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

/** Sends small calls over 16 connections to the built program; in a session, if it is one, that they all share. */
export const measurePromotion = async ({ client, server, warmUp, calls }: PromotionCase): Promise<Promotion> => {
  const upstream = await startSoakUpstream()
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-promotion-'))
  const file = join(folder, 'config.json')
  await writeFile(file, JSON.stringify({ mcpServers: { upstream: { url: upstream.url, era: server } } }))
  const gateway = await startServe(['--config', file], { NODE_OPTIONS: `--import=${COUNTER}` })
  const pool = new Pool(gateway.origin, { connections: CONNECTIONS + 1, pipelining: 1 })
  const session = client === 'session' ? await openSession(`${gateway.origin}/mcp`) : undefined
  let lastId = 0
  let reports = 0

  const call = async (name = 'echo'): Promise<void> => {
    const id = ++lastId
    const params = { name, arguments: { text: TEXT } }
    const inSession = { jsonrpc: '2.0', id, method: 'tools/call', params: { ...params, _meta: { progressToken: id } } }
    const { headers, body } = session ? { headers: session.headers, body: inSession } : modern(id, 'tools/call', params)
    const all = { ...HEADERS, ...headers }
    const reply = await pool.request({ method: 'POST', path: '/mcp', headers: all, body: JSON.stringify(body) })
    const text = await reply.body.text()
    if (reply.statusCode !== 200 || !text.includes('"result"')) throw new Error(`answered ${reply.statusCode}: ${text}`)
  }
  const run = async (count: number): Promise<void> => {
    const end = lastId + count
    const loop = async (): Promise<void> => {
      while (lastId < end) await call()
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, loop))
  }
  const count = async (): Promise<Record<'scavenges' | 'promoted' | 'allocated', number>> => {
    gateway.signal('SIGUSR2')
    const [, counts = ''] = await gateway.saw(new RegExp(`report ${++reports}: (.*)\n`), 'stderr')
    return JSON.parse(counts)
  }

  try {
    call('held').catch(() => {}) // as long as it lasts, nothing that holds calls is ever empty
    await run(warmUp)
    await count()
    await run(calls)
    const { scavenges, promoted, allocated } = await count()
    return { scavenges, promotedPerCall: promoted / calls, allocatedPerCall: allocated / calls }
  } finally {
    await pool.destroy()
    gateway.signal('SIGKILL')
    await gateway.ended
    upstream.close()
    await rm(folder, { recursive: true })
  }
}
