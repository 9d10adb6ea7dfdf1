import { createClientCommand } from './client/client-command.ts'
import { listCommand } from './client/list-command.ts'

/** Lists resources and resource templates. */
export const run = createClientCommand({
  usage: ['resources [TARGET]', 'resources -- COMMAND…'],
  about: 'Lists the resources of every server, or of one, and the templates of further ones.',
  examples: [
    ['dragoman resources', 'the resources of the running daemon, or of the configuration'],
    ['dragoman resources https://example.com/mcp', 'of the server at a URL'],
  ],
  words: [0, 1],
  hasServerWord: true,
  run: client => listCommand(client, ['resources', 'templates']),
})
