import { createClientCommand } from './client/client-command.ts'
import { listCommand } from './client/list-command.ts'

/** Lists tools. */
export const run = createClientCommand({
  usage: ['tools [TARGET]', 'tools -- COMMAND…'],
  about: `Lists the tools of every server as clients see them, or all tools of one. A budget of the workspace may leave out most of
them: --all lists these, too.`,
  examples: [
    ['dragoman tools', 'the tools of the running daemon, or of the configuration'],
    ['dragoman tools demo', 'of one server'],
    ['dragoman tools https://example.com/mcp', 'of the server at a URL'],
    ['dragoman tools -- npx -y @modelcontextprotocol/server-everything', 'of a server that a command starts'],
  ],
  flags: { all: { help: 'also list the tools that the budget of a workspace leaves out' } },
  words: [0, 1],
  hasServerWord: true,
  run: client => listCommand(client, ['tools']),
})
