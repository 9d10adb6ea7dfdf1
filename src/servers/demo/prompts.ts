import { oneOf } from '../define/completion.ts'
import { embedded, image, text } from '../define/content.ts'
import { type Prompt, prompt, user } from '../define/prompts.ts'
import { elicit } from '../define/questions.ts'
import type { DemoState } from './resources.ts'
import { RED_PIXEL } from './tools.ts'

/** One prompt of each kind, and one that test_trigger_prompt_change lists and unlists. */
export const demoPrompts = (state: DemoState): (() => readonly Prompt[]) => {
  const more = [...always, extra]
  return () => (state.extras.prompt ? more : always)
}

const always: readonly Prompt[] = [
  prompt({
    name: 'test_simple_prompt',
    title: 'Simple',
    description: 'One message, no arguments',
    get: () => 'This is a simple prompt for testing.',
  }),
  prompt({
    name: 'test_prompt_with_arguments',
    title: 'With arguments',
    description: 'One message with two arguments in it',
    arguments: {
      arg1: { description: 'First test argument', required: true, complete: oneOf('test', 'testing', 'paris') },
      arg2: { description: 'Second test argument', required: true },
    },
    get: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  }),
  prompt({
    name: 'test_prompt_with_embedded_resource',
    title: 'With a resource',
    description: 'A resource with its contents, and a request about it',
    arguments: { resourceUri: { description: 'URI of the resource to embed', required: true } },
    get: ({ resourceUri }) => [
      user(embedded({ uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' })),
      user(text('Please process the embedded resource above.')),
    ],
  }),
  prompt({
    name: 'test_prompt_with_image',
    title: 'With an image',
    description: 'An image, and a request about it',
    get: () => [user(image(RED_PIXEL, 'image/png')), user(text('Please analyze the image above.'))],
  }),
  prompt({
    name: 'test_input_required_result_prompt',
    title: 'With a question',
    description: 'Asks the user before it answers',
    get: async (_args, call) => {
      const answer = await call.ask(
        'user_context',
        elicit('What context should the prompt use?', {
          type: 'object',
          properties: { context: { type: 'string' } },
          required: ['context'],
        }),
      )
      return `Use this context: ${answer.content?.context ?? 'none given'}`
    },
  }),
]

const extra = prompt({
  name: 'test_changing_prompt',
  description: 'Listed and unlisted by test_trigger_prompt_change',
  get: () => 'Here for now',
})
