import { type Call, pause, type Schema, type ToolDefinition, text } from '../../../support/servers/everything/define.ts'
import type { Everything } from '../../../support/servers/everything/everything.ts'
import { resultOf } from '../ledger.ts'

/** What the question of `ask` holds, and what its answer must. */
export const ANSWER = { number: { type: 'integer' } }

const SCHEMA: Schema = {
  type: 'object',
  properties: { number: { type: 'integer' }, ms: { type: 'integer' }, events: { type: 'integer' } },
  required: ['number'],
}

/** The numbered tools, which report each number they execute. */
export const numberedTools = (executed: (number: number) => void): Everything => {
  const tools: readonly ToolDefinition[] = [
    { name: 'work', description: 'Works for a while', inputSchema: SCHEMA, run: call => work(call, executed) },
    { name: 'ask', description: 'Asks for its own number', inputSchema: SCHEMA, run: call => ask(call, executed) },
  ]
  return { tools: () => tools, prompts: () => [], read: () => undefined }
}

const numberOf = ({ arguments: given }: Call): number => Number(given.number)

const work = async (call: Call, executed: (number: number) => void) => {
  const number = numberOf(call)
  executed(number)
  const events = Number(call.arguments.events ?? 0)
  const ms = Number(call.arguments.ms ?? 0)
  for (let event = 1; event <= events; event++) {
    await pause(ms / (events + 1), call.signal)
    await call.progress(event, events, `event ${event}`)
  }
  if (ms > 0) await pause(ms / (events + 1), call.signal)
  return text(resultOf({ tool: 'work', number }))
}

const ask = async (call: Call, executed: (number: number) => void) => {
  const number = numberOf(call)
  const { answer } = await call.ask({
    answer: {
      method: 'elicitation/create',
      params: {
        message: `number ${number}`,
        requestedSchema: { type: 'object', properties: ANSWER, required: ['number'] },
      },
    },
  })
  executed(number)
  const given = (answer.content as { number?: unknown } | undefined)?.number
  return text(given === number ? resultOf({ tool: 'ask', number }) : `the answer was ${JSON.stringify(answer)}`)
}
