import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type StartedDragoman, startWith } from './start-dragoman.ts'

const SESSIONS = 25
const RETRY_MS = 10
const MOST_MS = 30_000
const LEGACY = '2025-11-25'
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

const post = (url: string, message: object, session?: string): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { ...HEADERS, ...(session && { 'mcp-session-id': session, 'mcp-protocol-version': LEGACY }) },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })

const openSession = async (url: string): Promise<string> => {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'takeover', version: '1.0.0' } }
  const response = await post(url, { id: 0, method: 'initialize', params })
  await response.text()
  const session = response.headers.get('mcp-session-id')
  if (!session) throw new Error(`initialize was answered ${response.status}`)
  return session
}

/** Milliseconds until a call of that session is answered with a result there; errors are tried again. */
const untilAnswered = async (url: string, session: string): Promise<number> => {
  const begun = performance.now()
  for (let id = 1; performance.now() - begun < MOST_MS; id++) {
    const params = { name: 'echo', arguments: { text: 'again' } }
    const response = await post(url, { id, method: 'tools/call', params }, session)
    const text = await response.text()
    if (response.status === 404) throw new Error(`the session was lost: ${text}`)
    if (text.includes('"result"')) return performance.now() - begun
    await sleep(RETRY_MS)
  }
  throw new Error('no answer')
}

/** Ends one of two replicas and times the next answer to each of its sessions at the other. */
export const timeTakeovers = async (
  config: Parameters<typeof startWith>[0],
  workspace: string,
  other: StartedDragoman,
  signal: 'SIGKILL' | 'SIGSTOP',
): Promise<number[]> => {
  const home = await startWith(config, [])
  const urlOf = ({ url }: StartedDragoman): string => `${url}/${workspace}`
  const sessions: string[] = []
  for (let at = 0; at < SESSIONS; at++) sessions.push(await openSession(urlOf(home)))
  for (const session of sessions) await untilAnswered(urlOf(other), session) // forwarded
  home.child.kill(signal)
  try {
    return await Promise.all(sessions.map(session => untilAnswered(urlOf(other), session)))
  } finally {
    const ended = home.child.exitCode === null && home.child.signalCode === null ? once(home.child, 'exit') : undefined
    home.child.kill('SIGKILL')
    await ended
  }
}
