import { type Tool, tool } from '../define/tools.ts'
import { pause } from './pause.ts'
import { WATCHED } from './resources.ts'
import type { DemoState } from './state.ts'

const STEP_MS = 50

/** Tools that talk while they work. */
export const noticeTools: readonly Tool[] = [
  tool({
    name: 'test_tool_with_progress',
    description: 'Reports progress 0, 50 and 100 of 100',
    run: async (_args, call) => {
      for (const done of [0, 50, 100]) {
        if (done > 0) await pause(STEP_MS, call.signal)
        await call.progress(done, 100, `Completed step ${done} of 100`)
      }
      return 'Tool with progress executed successfully'
    },
  }),
  tool({
    name: 'test_tool_with_logging',
    description: 'Logs three lines at level info',
    run: async (_args, call) => {
      await call.log('info', 'Tool execution started')
      await pause(STEP_MS, call.signal)
      await call.log('info', 'Tool processing data')
      await pause(STEP_MS, call.signal)
      await call.log('info', 'Tool execution completed')
      return 'Tool with logging executed successfully'
    },
  }),
  tool({
    name: 'test_logging_tool',
    description: 'Logs one line at level info, to callers that asked for logs',
    run: async (_args, call) => {
      await call.log('info', { message: 'test_logging_tool was called' }, 'demo')
      return 'Logged, if you wanted it'
    },
  }),
  tool({
    name: 'test_reconnection',
    description: 'Takes a while, so that a client can lose its stream and come back for the result',
    run: async (_args, call) => {
      await pause(4 * STEP_MS, call.signal)
      return 'Reconnection test completed successfully'
    },
  }),
]

type Kind = keyof DemoState['extras']

/** Tools that change what this server offers, and say so to whoever listens. */
export const changeTools = (state: DemoState): readonly Tool[] => {
  const toggle = (kind: Kind, name: string, announce: 'tools' | 'prompts' | 'resources'): Tool =>
    tool({
      name: `test_trigger_${kind}_change`,
      description: `Lists or unlists ${name} and announces that the ${announce} have changed`,
      run: (_args, call) => {
        state.extras[kind] = !state.extras[kind]
        call.changed[announce]()
        return `${name} is ${state.extras[kind] ? 'listed' : 'no longer listed'}`
      },
    })
  return [
    toggle('tool', 'test_changing_tool', 'tools'),
    toggle('prompt', 'test_changing_prompt', 'prompts'),
    toggle('resource', 'test://changing-resource', 'resources'),
    tool({
      name: 'test_trigger_resource_update',
      description: `Changes ${WATCHED} and announces it to whoever watches it`,
      run: (_args, call) => {
        state.updates += 1
        call.changed.updated(WATCHED)
        return `${WATCHED} was updated`
      },
    }),
  ]
}

/** Comes and goes with test_trigger_tool_change. */
export const changingTool = tool({
  name: 'test_changing_tool',
  description: 'Comes and goes with test_trigger_tool_change',
  run: () => 'Here for now',
})
