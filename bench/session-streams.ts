// The process of clients that open sessions, each with a GET stream if wanted, and say nothing more.
import { Agent, type ClientRequest, request } from 'node:http'
import { serveJobs } from './jobs.ts'

/** Open so many sessions at that URL; with `url` undefined, close all streams. */
export type SessionJob =
  | { readonly url: string; readonly count: number; readonly withStream: boolean }
  | { readonly url: undefined }

const AT_ONCE = 50
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'idle', version: '1.0.0' } },
})

const posts = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
const streams = new Set<ClientRequest>()

const open = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const outgoing = request(url, { method: 'POST', agent: posts, headers: HEADERS })
    outgoing.on('error', reject)
    outgoing.on('response', response => {
      response.resume()
      const session = response.headers['mcp-session-id']
      if (typeof session === 'string') response.once('end', () => resolve(session))
      else reject(new Error(`initialize was answered ${response.statusCode}`))
    })
    outgoing.end(INITIALIZE)
  })

const listen = (url: string, session: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = { accept: 'text/event-stream', 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
    const outgoing = request(url, { method: 'GET', agent: false, headers })
    streams.add(outgoing)
    outgoing.on('error', reject)
    outgoing.on('response', response => {
      response.on('error', () => {})
      response.resume()
      if (response.statusCode === 200) resolve()
      else reject(new Error(`a stream was answered ${response.statusCode}`))
    })
    outgoing.end()
  })

serveJobs<SessionJob, number>(async job => {
  if (job.url === undefined) {
    for (const stream of streams) stream.destroy()
    streams.clear()
    return 0
  }
  const { url, count, withStream } = job
  let begun = 0
  const work = async (): Promise<void> => {
    while (begun++ < count) {
      const session = await open(url)
      if (withStream) await listen(url, session)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return count
})
