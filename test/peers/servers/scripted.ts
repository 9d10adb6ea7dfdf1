/**
 * A server on SDK v1 over stdio (2025-11-25 and older) that pages its tools.
 * `scripted.ts JOURNAL all` serves everything the checks call; `scripted.ts JOURNAL extra` only what the demo server lacks.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js'
import {
  type Call,
  NOTHING,
  type Question,
  type ToolDefinition,
  text,
} from '../../support/servers/everything/define.ts'
import { createEverything } from '../../support/servers/everything/everything.ts'
import { WATCHED } from '../../support/servers/everything/resources.ts'
import { createJournal } from '../../support/servers/journal.ts'
import { createServer, serveEverything } from '../../support/servers/sdk-v1-handlers.ts'
import { extraTools } from './extra-tools.ts'

const PAGE = 60
const WEATHER = { temperature: 22.5, conditions: 'sunny' }

/** Tools of the demo server that the shared fixture has under other names, or not at all. */
const demoTools: readonly (ToolDefinition & { readonly outputSchema?: object })[] = [
  {
    name: 'example-echo',
    description: 'Answers with the message',
    inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
    run: ({ arguments: { message } }) => text(`Echo: ${String(message)}`),
  },
  {
    name: 'test_structured_content',
    description: 'Answers with structured content',
    inputSchema: NOTHING,
    outputSchema: {
      type: 'object',
      properties: { temperature: { type: 'number' }, conditions: { type: 'string' } },
      required: ['temperature', 'conditions'],
    },
    run: () => Object.assign(text(JSON.stringify(WEATHER)), { structuredContent: WEATHER }),
  },
  {
    name: 'test_trigger_resource_update',
    description: `Changes ${WATCHED} and tells its subscribers`,
    inputSchema: NOTHING,
    run: call => {
      call.announce({ kind: 'resource', uri: WATCHED })
      return text(`${WATCHED} was updated`)
    },
  },
]

/** The shared fixture asks with forms only. */
const VISIT = {
  method: 'elicitation/create',
  params: { mode: 'url', message: 'Please sign in', url: 'https://example.com/sign-in', elicitationId: 'visit-1' },
} as unknown as Question

const visitTool: ToolDefinition = {
  name: 'ask_to_visit',
  description: 'Sends the user to a page',
  inputSchema: NOTHING,
  run: async call => text(JSON.stringify((await call.ask({ visit: VISIT })).visit)),
}

const [journal = '', offer] = process.argv.slice(2)

/** Everything the checks call, for a workspace of this server alone. */
const serveAll = (): [Server, readonly ToolDefinition[]] => {
  const base = createEverything()
  const tools = [...demoTools, visitTool, ...base.tools(), ...extraTools(journal)]
  const server = createServer()
  const announce = serveEverything(server, { ...base, tools: () => tools }, createJournal(), change => announce(change))
  return [server, tools]
}

/** The tools that the demo server lacks, for a workspace of both. */
const serveExtra = (): [Server, readonly ToolDefinition[]] => {
  const tools = extraTools(journal)
  const server = new Server({ name: 'scripted-extra', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal, _meta, sendNotification }) => {
    const tool = tools.find(({ name }) => name === params.name)
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `Unknown tool: ${params.name}`)
    const progressToken = _meta?.progressToken
    const progress: Call['progress'] = async (done, total, message) => {
      if (progressToken === undefined) return
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress: done, total, message },
      })
    }
    return tool.run({ arguments: params.arguments ?? {}, signal, progress } as Call) // these tools use nothing else
  })
  return [server, tools]
}

const [server, tools] = offer === 'extra' ? serveExtra() : serveAll()

server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
  const from = Number(params?.cursor ?? 0)
  const page = tools.slice(from, from + PAGE).map(({ run, ...tool }) => tool)
  return { tools: page, ...(from + PAGE < tools.length && { nextCursor: String(from + PAGE) }) }
})

// The SDK's own class does not fit its own interface under `exactOptionalPropertyTypes`.
await server.connect(new StdioServerTransport() as Transport)
