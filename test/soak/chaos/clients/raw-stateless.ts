import { Agent } from 'node:http'
import { modern } from '../../../support/raw.ts'
import type { NumberedCall, Outcome } from '../ledger.ts'
import { answerTo, argumentsOf, type Connect, outcomeOf, outcomeOfConnection, SILENT_MS, urlOf } from './client.ts'
import { isNoReplica, type Message, open } from './http.ts'

const CAPABILITIES = { elicitation: { form: {} } }

/** What a call goes on with once its questions are answered. */
const answered = (result: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const asked = Object.entries((result.inputRequests ?? {}) as Record<string, { params?: { message?: string } }>)
  const inputResponses = Object.fromEntries(asked.map(([key, { params }]) => [key, answerTo(params?.message)]))
  return { inputResponses, ...(result.requestState !== undefined && { requestState: result.requestState }) }
}

/** A 2026-07-28 client without an SDK: every call is one POST, and one more for each round of questions. */
export const connectRawStateless: Connect = async context => {
  const { ledger, name } = context
  const agent = new Agent({ keepAlive: true })

  const send = async (call: NumberedCall, id: string, more: Record<string, unknown>): Promise<Message | Outcome> => {
    const params = { name: context.toolName(call.tool), arguments: argumentsOf(call), ...more }
    const meta = call.events > 0 ? { progressToken: call.number } : {}
    const { headers, body } = modern(id, 'tools/call', params, { capabilities: CAPABILITIES, meta })
    const answer = await open(urlOf(context), { agent, headers, body })
    if (isNoReplica(answer)) return { kind: 'refused' }
    let response: Message | undefined
    let lastProgress = 0
    await answer.read(message => {
      if (message.method === 'notifications/progress') {
        const value = Number(message.params?.progress)
        if (value <= lastProgress) ledger.repeated(name, `progress ${value} of call ${call.number}`)
        lastProgress = value
      } else if (message.method === undefined) {
        if (response) ledger.repeated(name, `the response to call ${call.number}`)
        response = message
      }
    })
    return response ?? { kind: 'silent', why: `${answer.status} without a message` }
  }

  const call = async (numbered: NumberedCall): Promise<Outcome> => {
    let more: Record<string, unknown> = {}
    for (let round = 0; ; round++) {
      const message = await send(numbered, `${numbered.number}/${round}`, more)
      if ('kind' in message) return message
      if (message.result?.resultType !== 'input_required') return outcomeOf(message)
      more = answered(message.result)
    }
  }

  return {
    call: async numbered => {
      const timeout = new Promise<Outcome>(resolve => {
        const timer = setTimeout(() => resolve({ kind: 'silent', why: 'no response in time' }), SILENT_MS)
        timer.unref()
      })
      try {
        return await Promise.race([call(numbered), timeout])
      } catch (error) {
        const outcome = outcomeOfConnection(error)
        if (outcome) return outcome
        throw error
      }
    },
    whyDead: async () => undefined,
    close: async () => agent.destroy(),
  }
}
