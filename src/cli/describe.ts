import { Json } from '../wire/json/json.ts'
import { createClientCommand } from './client/client-command.ts'
import { describeServer } from './client/describe-server.ts'
import { describeTool } from './client/describe-tool.ts'
import { EXIT } from './client/exit-codes.ts'
import { chooseItem, findItems } from './client/items.ts'
import { prettyJson } from './client/render.ts'
import { UsageError } from './usage.ts'

/** Describes one tool. */
export const run = createClientCommand({
  usage: ['describe SERVER[/TOOL]', 'describe URL [TOOL]', 'describe [TOOL] -- COMMAND…'],
  about: `Shows the signature of a tool, its arguments and an example call; without a tool, what the server says about itself.`,
  examples: [
    ['dragoman describe demo/example-echo', 'a tool of the daemon or the configuration'],
    ['dragoman describe https://example.com/mcp example-echo', 'a tool of the server at a URL'],
    ['dragoman describe demo/example-echo --schema', 'with its schemas'],
    ['dragoman describe https://example.com/mcp', 'the server: name, instructions, capabilities'],
  ],
  flags: { schema: { help: 'print the input and output schema' } },
  words: [0, 1],
  hasServerWord: true,
  run: async client => {
    const { item, server, all } = client.sources
    if (item === undefined && server === undefined && all[0]?.servers.length !== 0)
      throw new UsageError('expected dragoman describe SERVER/TOOL')
    if (item === undefined) {
      await describeServer(client)
      return EXIT.ok
    }
    const tool = chooseItem(client, 'tools', await findItems(client, ['tools']))
    const { definition } = tool
    if (client.isJson) client.write(`${definition}\n`)
    else if (client.flags.schema) {
      const output = definition.get('outputSchema')
      const schemas = Json.of({
        inputSchema: definition.get('inputSchema') ?? Json.empty,
        ...(output && { outputSchema: output }),
      })
      client.write(`${prettyJson(schemas)}\n`)
    } else client.write(describeTool(tool, client))
    return EXIT.ok
  },
})
