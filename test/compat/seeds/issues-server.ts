import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { z } from 'zod'
import { type Endpoint, listen } from '../../support/servers/http.ts'

/** A server with the one tool of seed 004, which keeps the names it was called by. */
export const startIssues = async (): Promise<Endpoint & { readonly calls: string[] }> => {
  const calls: string[] = []
  const endpoint = await listen(async request => {
    const server = new McpServer({ name: 'github', version: '1.0.0' })
    server.registerTool(
      'list_issues',
      { description: 'List GitHub issues', inputSchema: { repo: z.string() } },
      ({ repo }) => {
        calls.push('list_issues')
        return { content: [{ type: 'text', text: `Issue list: ${repo}` }] }
      },
    )
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
    await server.connect(transport)
    return transport.handleRequest(request)
  })
  return { ...endpoint, calls }
}
