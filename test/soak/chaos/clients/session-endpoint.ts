import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ClientContext, outcomeOfConnection, SILENT_MS, urlOf } from './client.ts'
import { type OpenAnswer, open } from './http.ts'

const REVISION = '2025-11-25'
const PINGS = 3

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: REVISION,
    capabilities: { elicitation: {} },
    clientInfo: { name: 'chaos-raw', version: '1.0.0' },
  },
}

/** Until a client that found no gateway, or lost its connection, tries again. */
export const RETRY_MS = 100

/** One session of 2025-11-25, without an SDK. */
export interface SessionEndpoint {
  /** Sends a message of the session; rejects when the connection fails. */
  send(body: object): Promise<OpenAnswer>
  /** Resumes a stream after that event. */
  resume(eventId: string): Promise<OpenAnswer>
  /** Sends a message without an answer of its own until a gateway accepts it. */
  post(message: object): Promise<void>
  /** The session id was unknown: that is noted, and a new session begins. */
  lose(): Promise<void>
  whyDead(): Promise<string | undefined>
  close(): Promise<void>
}

/** Opens a session; tries until a gateway answers. */
export const openSession = async (context: ClientContext): Promise<SessionEndpoint> => {
  const url = urlOf(context)
  const agent = new Agent({ keepAlive: true })
  let session = ''

  const headers = (): Record<string, string> => ({ 'mcp-session-id': session, 'mcp-protocol-version': REVISION })
  const send = (body: object): Promise<OpenAnswer> => open(url, { agent, headers: headers(), body })

  const post = async (message: object): Promise<void> => {
    const deadline = Date.now() + SILENT_MS
    while (Date.now() < deadline) {
      try {
        const answer = await send({ jsonrpc: '2.0', ...message })
        await answer.read(() => {})
        if (answer.status < 500) return
      } catch (error) {
        if (!outcomeOfConnection(error)) throw error
      }
      await sleep(RETRY_MS)
    }
  }

  const initialize = async (): Promise<void> => {
    const answer = await open(url, { agent, body: INITIALIZE })
    await answer.read(() => {})
    const id = answer.headers['mcp-session-id']
    if (answer.status !== 200 || typeof id !== 'string') throw new Error(`initialize was answered ${answer.status}`)
    session = id
    await post({ method: 'notifications/initialized' })
  }

  const initializeAgain = async (): Promise<void> => {
    for (;;) {
      try {
        return await initialize()
      } catch {
        await sleep(RETRY_MS)
      }
    }
  }

  await initializeAgain()
  return {
    send,
    resume: eventId => open(url, { agent, method: 'GET', headers: { ...headers(), 'last-event-id': eventId } }),
    post,
    lose: () => {
      context.ledger.sessionLost(context.name, session)
      return initializeAgain()
    },
    whyDead: async () => {
      for (let attempt = 0; attempt < PINGS; attempt++)
        try {
          const answer = await send({ jsonrpc: '2.0', id: 'end', method: 'ping' })
          await answer.read(() => {})
          return answer.status === 200 ? undefined : `status ${answer.status}`
        } catch (error) {
          if (!outcomeOfConnection(error)) throw error // the kept connection may have ended with its gateway
        }
      return 'every connection was cut'
    },
    close: async () => {
      const answer = await open(url, { agent, method: 'DELETE', headers: headers() })
      await answer.read(() => {})
      agent.destroy()
    },
  }
}
