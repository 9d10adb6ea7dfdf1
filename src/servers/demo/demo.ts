import { type DefinedServer, defineServer } from '../define/define.ts'
import type { Tool } from '../define/tools.ts'
import { contentTools } from './content.ts'
import { exampleTools } from './examples.ts'
import { formTools } from './forms.ts'
import { changeTools, changingTool, noticeTools } from './notices.ts'
import { demoPrompts } from './prompts.ts'
import { inputRequiredTools, questionTools } from './questions.ts'
import { demoResources, demoTemplates } from './resources.ts'
import { schemaTools } from './schemas.ts'
import { createState } from './state.ts'

/** A server with one specimen of every protocol feature, named as the official conformance suite wants them. */
export const demo = (version: string): DefinedServer => {
  const state = createState()
  const always: readonly Tool[] = [
    ...exampleTools,
    ...contentTools,
    ...noticeTools,
    ...changeTools(state),
    ...questionTools,
    ...formTools,
    ...inputRequiredTools,
    ...schemaTools,
  ]
  const more = [...always, changingTool]
  return defineServer({
    name: 'demo',
    title: 'Demo',
    version,
    description: 'One specimen of every protocol feature',
    instructions: 'Call example-ping to see that the line is open; every other tool shows one feature of the protocol.',
    tools: () => (state.extras.tool ? more : always),
    prompts: demoPrompts(state),
    resources: demoResources(state),
    templates: demoTemplates,
  })
}
