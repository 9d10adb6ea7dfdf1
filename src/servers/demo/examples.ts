import { type Tool, tool } from '../define/tools.ts'

/** The two tools everybody tries first. */
export const exampleTools: readonly Tool[] = [
  tool({
    name: 'example-ping',
    title: 'Ping',
    description: 'Returns a simple pong response',
    annotations: { readOnlyHint: true },
    run: () => 'pong',
  }),
  tool({
    name: 'example-echo',
    title: 'Echo',
    description: 'Echoes back the provided message',
    input: {
      type: 'object',
      properties: { message: { type: 'string', description: 'The message to echo back' } },
      required: ['message'],
    },
    annotations: { readOnlyHint: true },
    run: ({ message }) => `Echo: ${message}`,
  }),
]
