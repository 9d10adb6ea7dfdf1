import { createClientCommand } from './client/client-command.ts'
import { listCommand } from './client/list-command.ts'
import type { Run } from './command.ts'

const list = createClientCommand({
  usage: ['tools [TARGET]', 'tools -- COMMAND…', 'tools --pick [--workspace NAME]'],
  about: `Lists the tools of every server as clients see them, or all tools of one. A budget of the workspace may leave out most of
them: --all lists these, too.`,
  examples: [
    ['dragoman tools', 'the tools of the running daemon, or of the configuration'],
    ['dragoman tools demo', 'of one server'],
    ['dragoman tools https://example.com/mcp', 'of the server at a URL'],
    ['dragoman tools -- npx -y @modelcontextprotocol/server-everything', 'of a server that a command starts'],
  ],
  flags: {
    all: { help: 'also list the tools that the budget of a workspace leaves out' },
    pick: { help: 'choose tools of a workspace, and write them into the configuration file' },
  },
  words: [0, 1],
  hasServerWord: true,
  run: client => listCommand(client, ['tools']),
})

/** Lists tools, or lets the user choose some. */
export const run: Run = async (args, context) => {
  const end = args.indexOf('--')
  if (!args.slice(0, end < 0 ? args.length : end).includes('--pick')) return list(args, context)
  const { pickTools } = await import('./pick/pick-tools.ts')
  return pickTools(args, context)
}
