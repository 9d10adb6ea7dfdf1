import { sleep } from '../../std/time.ts'
import { type Tool, tool } from '../define/tools.ts'
import { type DemoState, WATCHED } from './resources.ts'

const STEP_MS = 50
const RETRY_MS = 100

/** Tools that send progress or log messages while they run. */
export const noticeTools: readonly Tool[] = [
  tool({
    name: 'test_tool_with_progress',
    description: 'Reports progress 0, 50 and 100 of 100',
    run: async (_args, call) => {
      for (const done of [0, 50, 100]) {
        if (done > 0) await sleep(STEP_MS, call.signal)
        await call.progress(done, 100, `Completed step ${done} of 100`)
      }
      return 'Tool with progress executed successfully'
    },
  }),
  tool({
    name: 'test_tool_with_logging',
    description: 'Logs three messages at level info',
    run: async (_args, call) => {
      await call.log('info', 'Tool execution started')
      await sleep(STEP_MS, call.signal)
      await call.log('info', 'Tool processing data')
      await sleep(STEP_MS, call.signal)
      await call.log('info', 'Tool execution completed')
      return 'Tool with logging executed successfully'
    },
  }),
  tool({
    name: 'test_logging_tool',
    description: 'Logs one message at level info',
    run: async (_args, call) => {
      await call.log('info', { message: 'test_logging_tool was called' }, 'demo')
      return 'Logged, if the client asked for this level'
    },
  }),
  tool({
    name: 'test_reconnection',
    description: 'Ends its response stream during the call, so that the client resumes it for the result',
    run: async (_args, call) => {
      await sleep(STEP_MS, call.signal)
      call.closeStream(RETRY_MS)
      await sleep(3 * STEP_MS, call.signal)
      return 'Reconnection test completed successfully'
    },
  }),
]

/** Tools that change what this server offers, and announce the change. */
export const changeTools = (state: DemoState): readonly Tool[] => {
  const toggle = (kind: keyof DemoState['extras'], name: string, announce: 'tools' | 'prompts' | 'resources'): Tool =>
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
      description: `Changes ${WATCHED} and announces the update`,
      run: (_args, call) => {
        state.updates += 1
        call.changed.updated(WATCHED)
        return `${WATCHED} was updated`
      },
    }),
  ]
}

/** Listed and unlisted by test_trigger_tool_change. */
export const changingTool = tool({
  name: 'test_changing_tool',
  description: 'Listed and unlisted by test_trigger_tool_change',
  run: () => 'Here for now',
})
