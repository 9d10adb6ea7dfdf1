import { setTimeout as pause } from 'node:timers/promises'
import type { Call } from '../define/call.ts'
import { failure } from '../define/failures.ts'
import { elicit } from '../define/questions.ts'
import { type Tool, tool } from '../define/tools.ts'

const CONFIRM = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] } as const
const NAME = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const
const STEPS = 10

/** Waits, and tells how far it is; ends at once with the call. */
const work = async (seconds: number, call: Call): Promise<void> => {
  const stopped = new AbortController()
  const stopListening = call.signal.onAbort(() => stopped.abort())
  try {
    for (let step = 1; step <= STEPS; step++) {
      await pause((seconds * 1000) / STEPS, undefined, { signal: stopped.signal })
      await call.progress(step, STEPS, `Step ${step} of ${STEPS}`)
    }
  } finally {
    stopListening()
  }
}

/** Tools that run as tasks, as the conformance suite names them. */
export const taskTools: readonly Tool[] = [
  tool({
    name: 'greet',
    description: 'Greets at once, never as a task',
    input: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    run: ({ name }) => `Hello, ${name}!`,
  }),
  tool({
    name: 'slow_compute',
    description: 'Works for some seconds; a task for clients that can have one',
    input: {
      type: 'object',
      properties: { seconds: { type: 'number', minimum: 0, maximum: 3600 }, label: { type: 'string' } },
      required: ['seconds'],
    },
    task: 'optional',
    run: async ({ seconds, label }, call) => {
      await work(seconds, call)
      return `Computed ${label ?? 'it'} in ${seconds} seconds`
    },
  }),
  tool({
    name: 'failing_job',
    description: 'Fails after a second; only as a task',
    task: 'required',
    run: async (_args, call) => {
      await work(1, call)
      throw new Error('The job failed, as it always does')
    },
  }),
  tool({
    name: 'protocol_error_job',
    description: 'Ends with a protocol error; a task for clients that can have one',
    task: 'optional',
    run: async (_args, call) => {
      await work(0.2, call)
      throw failure('internal', 'The job met an internal error, as it always does')
    },
  }),
  tool({
    name: 'confirm_delete',
    description: 'Asks for a confirmation; a task for clients that can have one',
    input: { type: 'object', properties: { filename: { type: 'string' } }, required: ['filename'] },
    task: 'optional',
    run: async ({ filename }, call) => {
      const { content } = await call.ask('confirm', elicit(`Delete ${filename}?`, CONFIRM))
      return content?.confirm ? `Deleted ${filename}` : `Kept ${filename}`
    },
  }),
  tool({
    name: 'multi_input',
    description: 'Asks two questions at once; a task for clients that can have one',
    task: 'optional',
    run: async (_args, call) => {
      const answers = await Promise.all([
        call.ask('first', elicit('What is your first name?', NAME)),
        call.ask('second', elicit('What is your second name?', NAME)),
      ])
      return `Hello, ${answers.map(({ content }) => content?.name ?? 'no one').join(' ')}!`
    },
  }),
  tool({
    name: 'test_tool_with_task',
    description: 'Asks for a name, and then goes on as a task',
    run: async (_args, call) => {
      const { content } = await call.ask('user_name', elicit('What is your name?', NAME))
      call.becomeTask('required')
      await work(0.2, call)
      return `Hello, ${content?.name ?? 'stranger'}, from a task!`
    },
  }),
]
