import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { NumberedCall, Outcome } from '../ledger.ts'
import { answerTo, argumentsOf, type Connect, outcomeOf, outcomeOfConnection, SILENT_MS, urlOf } from './client.ts'
import { isNoReplica, type Message, type OpenAnswer, open } from './http.ts'

const REVISION = '2025-11-25'
const RESUME_MS = 100
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

/** What a client has of a call whose stream may break: what it saw, and where it goes on. */
interface Progress {
  readonly call: NumberedCall
  eventId: string | undefined
  lastProgress: number
  resumes: number
  outcome: Outcome | undefined
}

/** A 2025-11-25 session without an SDK, which resumes every stream that breaks. */
export const connectRawSession: Connect = async context => {
  const { ledger, name } = context
  const url = urlOf(context)
  const agent = new Agent({ keepAlive: true })
  let session = ''

  const headers = (): Record<string, string> => ({ 'mcp-session-id': session, 'mcp-protocol-version': REVISION })

  const initialize = async (): Promise<void> => {
    const answer = await open(url, { agent, body: INITIALIZE })
    await answer.read(() => {})
    const id = answer.headers['mcp-session-id']
    if (answer.status !== 200 || typeof id !== 'string') throw new Error(`initialize was answered ${answer.status}`)
    session = id
    await post({ method: 'notifications/initialized' })
  }

  /** Tries until a gateway answers; the session is new then. */
  const initializeAgain = async (): Promise<void> => {
    for (;;) {
      try {
        return await initialize()
      } catch {
        await sleep(RESUME_MS)
      }
    }
  }

  const lose = async (): Promise<void> => {
    ledger.sessionLost(name, session)
    await initializeAgain()
  }

  /** A message without an answer of its own, sent until a gateway accepts it. */
  const post = async (message: object): Promise<void> => {
    const deadline = Date.now() + SILENT_MS
    while (Date.now() < deadline) {
      try {
        const answer = await open(url, { agent, headers: headers(), body: { jsonrpc: '2.0', ...message } })
        await answer.read(() => {})
        if (answer.status < 500) return
      } catch (error) {
        if (!outcomeOfConnection(error)) throw error
      }
      await sleep(RESUME_MS)
    }
  }

  const take = (progress: Progress, message: Message): void => {
    const { number } = progress.call
    if (message.method === 'elicitation/create') {
      void post({ id: message.id, result: answerTo(message.params?.message) })
    } else if (message.method === 'notifications/progress') {
      const value = Number(message.params?.progress)
      if (value <= progress.lastProgress) ledger.repeated(name, `progress ${value} of call ${number}`)
      progress.lastProgress = value
    } else if (message.method === undefined && (message.id === number || message.error)) {
      if (progress.outcome) ledger.repeated(name, `the response to call ${number}`)
      progress.outcome = outcomeOf(message, progress.resumes > 0)
    }
  }

  const read = async (answer: OpenAnswer, progress: Progress): Promise<void> => {
    if (answer.status === 404) {
      await answer.read(() => {})
      progress.outcome = { kind: 'error', reason: 'session lost' }
      return lose()
    }
    if (isNoReplica(answer)) {
      if (progress.resumes === 0) progress.outcome = { kind: 'refused' }
      return
    }
    await answer.read(
      message => take(progress, message),
      id => {
        progress.eventId = id
      },
    )
    if (!answer.isStream && !progress.outcome)
      progress.outcome = { kind: 'silent', why: `${answer.status} without a message` }
  }

  const resume = (eventId: string): Promise<OpenAnswer> =>
    open(url, { agent, method: 'GET', headers: { ...headers(), 'last-event-id': eventId } })

  const call = async (numbered: NumberedCall): Promise<Outcome> => {
    const progress: Progress = { call: numbered, eventId: undefined, lastProgress: 0, resumes: 0, outcome: undefined }
    const params = {
      name: context.toolName(numbered.tool),
      arguments: argumentsOf(numbered),
      ...(numbered.events > 0 && { _meta: { progressToken: numbered.number } }),
    }
    const body = { jsonrpc: '2.0', id: numbered.number, method: 'tools/call', params }
    const deadline = Date.now() + SILENT_MS
    let failure: Outcome | undefined
    while (!progress.outcome && Date.now() < deadline) {
      try {
        if (!failure) {
          failure = { kind: 'cut' } // if nothing else is heard
          await read(await open(url, { agent, headers: headers(), body }), progress)
        } else if (progress.eventId !== undefined) {
          progress.resumes++
          await read(await resume(progress.eventId), progress)
        } else return failure
      } catch (error) {
        const outcome = outcomeOfConnection(error)
        if (!outcome) throw error
        if (progress.resumes === 0) failure = outcome
      }
      if (!progress.outcome) await sleep(RESUME_MS)
    }
    return progress.outcome ?? { kind: 'silent', why: `no response after ${progress.resumes} resumes` }
  }

  await initializeAgain()
  return {
    call,
    whyDead: async () => {
      const body = { jsonrpc: '2.0', id: 'end', method: 'ping' }
      for (let attempt = 0; attempt < PINGS; attempt++)
        try {
          const answer = await open(url, { agent, headers: headers(), body })
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
