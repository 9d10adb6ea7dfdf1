import { type DefinedServer, defineServer } from '../define/define.ts'
import type { Tool } from '../define/tools.ts'
import { changeTools, changingTool, noticeTools } from './notices.ts'
import { demoPrompts } from './prompts.ts'
import { formTools, inputRequiredTools, questionTools } from './questions.ts'
import { createState, demoResources, demoTemplates } from './resources.ts'
import { taskTools } from './tasks.ts'
import { resultTools } from './tools.ts'

/** A server with an example of every protocol feature, named as the official conformance suite expects. */
export const demo = (version: string): DefinedServer => {
  const state = createState()
  const always: readonly Tool[] = [
    ...resultTools,
    ...noticeTools,
    ...changeTools(state),
    ...questionTools,
    ...formTools,
    ...inputRequiredTools,
    ...taskTools,
  ]
  const more = [...always, changingTool]
  return defineServer({
    name: 'demo',
    title: 'Demo',
    version,
    description: 'An example of every protocol feature',
    instructions: 'Call example-ping to test the connection. Every other tool shows one feature of the protocol.',
    hasTasks: true,
    tools: () => (state.extras.tool ? more : always),
    prompts: demoPrompts(state),
    resources: demoResources(state),
    templates: demoTemplates,
  })
}
