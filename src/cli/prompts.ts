import { createClientCommand } from './client/client-command.ts'
import { listCommand } from './client/list-command.ts'

/** Lists prompts. */
export const run = createClientCommand({
  usage: ['prompts [TARGET]', 'prompts -- COMMAND…'],
  about: 'Lists the prompts of every server, or of one, with their arguments.',
  examples: [
    ['dragoman prompts', 'the prompts of the running daemon, or of the configuration'],
    ['dragoman prompts https://example.com/mcp', 'of the server at a URL'],
  ],
  words: [0, 1],
  hasServerWord: true,
  run: client => listCommand(client, ['prompts']),
})
