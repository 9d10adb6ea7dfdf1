import { setTimeout as sleep } from 'node:timers/promises'
import type { NumberedCall, Outcome } from '../ledger.ts'
import { answerTo, argumentsOf, type Connect, outcomeOf, outcomeOfConnection, SILENT_MS } from './client.ts'
import { isNoReplica, type Message, type OpenAnswer } from './http.ts'
import { openSession, RETRY_MS } from './session-endpoint.ts'

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
  const session = await openSession(context)

  const take = (progress: Progress, message: Message): void => {
    const { number } = progress.call
    if (message.method === 'elicitation/create') {
      void session.post({ id: message.id, result: answerTo(message.params?.message) })
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
      return session.lose()
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
          await read(await session.send(body), progress)
        } else if (progress.eventId !== undefined) {
          progress.resumes++
          await read(await session.resume(progress.eventId), progress)
        } else return failure
      } catch (error) {
        const outcome = outcomeOfConnection(error)
        if (!outcome) throw error
        if (progress.resumes === 0) failure = outcome
      }
      if (!progress.outcome) await sleep(RETRY_MS)
    }
    return progress.outcome ?? { kind: 'silent', why: `no response after ${progress.resumes} resumes` }
  }

  return { call, whyDead: session.whyDead, close: session.close }
}
