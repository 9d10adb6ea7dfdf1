import { Agent } from 'node:http'
import { TASKS_EXTENSION } from '../../../../src/protocol/meta.ts'
import { modern } from '../../../support/raw.ts'
import type { NumberedCall, Outcome } from '../ledger.ts'
import { argumentsOf, type ClientContext, type Connect, outcomeOf, outcomeOfConnection, urlOf } from './client.ts'
import { type Ask, followTask } from './follow-task.ts'
import { isNoReplica, type Message, type OpenAnswer, open } from './http.ts'
import { openSession } from './session-endpoint.ts'

const CAPABILITIES = { elicitation: { form: {} }, extensions: { [TASKS_EXTENSION]: {} } }

/** The answer to one request, in whatever form it is sent. */
const answerIn = async (answer: OpenAnswer): Promise<Message | undefined> => {
  if (isNoReplica(answer)) return undefined
  let response: Message | undefined
  await answer.read(message => {
    if (message.method === undefined) response = message
  })
  if (!response) throw Object.assign(new Error('the stream ended without an answer'), { code: 'ECONNRESET' })
  return response
}

/** Calls a tool, and follows the task that the call becomes. */
const callAndFollow = async (
  ask: Ask,
  call: NumberedCall,
  context: ClientContext,
  wish: Readonly<Record<string, unknown>>,
): Promise<Outcome> => {
  try {
    const message = await ask('tools/call', {
      name: context.toolName(call.tool),
      arguments: argumentsOf(call),
      ...wish,
    })
    if (!message) return { kind: 'refused' }
    const task = (message.result?.task ?? message.result) as { readonly taskId?: unknown } | undefined
    return task?.taskId === undefined ? outcomeOf(message) : await followTask(ask, task.taskId, call, context)
  } catch (error) {
    const outcome = outcomeOfConnection(error)
    if (outcome) return outcome
    throw error
  }
}

/** A 2025-11-25 session whose calls are all tasks. */
export const connectTaskSession: Connect = async context => {
  const session = await openSession(context)
  let lastId = 0
  const ask: Ask = async (method, params) => {
    const answer = await session.send({ jsonrpc: '2.0', id: `t${++lastId}`, method, params })
    if (answer.status === 404) await session.lose()
    return answerIn(answer)
  }
  return {
    call: call => callAndFollow(ask, call, context, { task: {} }),
    whyDead: session.whyDead,
    close: session.close,
  }
}

/** A 2026-07-28 client with the tasks extension: long calls become tasks, and those of tools that need one. */
export const connectTaskStateless: Connect = async context => {
  const agent = new Agent({ keepAlive: true })
  let lastId = 0
  const ask: Ask = async (method, params) => {
    const { headers, body } = modern(++lastId, method, params, { capabilities: CAPABILITIES })
    return answerIn(await open(urlOf(context), { agent, headers, body }))
  }
  return {
    call: call => callAndFollow(ask, call, context, {}),
    whyDead: async () => undefined,
    close: async () => agent.destroy(),
  }
}
