/** A legacy server on SDK v1 over stdio with one tool, which reports progress, asks a question, and answers, or fails, or exits. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ElicitResultSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const server = new Server({ name: 'booking', version: '1.0.0' }, { capabilities: { tools: {}, logging: {} } })
const inputSchema = { type: 'object', properties: { city: { type: 'string' }, password: { type: 'string' } } }
const requestedSchema = { type: 'object', properties: { nights: { type: 'integer' } }, required: ['nights'] }

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [{ name: 'book', description: 'Books a room', inputSchema }],
}))
server.setRequestHandler(CallToolRequestSchema, async ({ params }, { _meta, sendNotification, sendRequest }) => {
  const { city, fails, exits, rejects } = params.arguments ?? {}
  if (exits) process.exit(3)
  if (rejects) throw Object.assign(new Error(`There is no city ${city}`), { code: -32050 })
  if (fails) return { content: [{ type: 'text', text: `No rooms in ${city}` }], isError: true }
  const progress = value =>
    _meta?.progressToken === undefined
      ? undefined
      : sendNotification({
          method: 'notifications/progress',
          params: { progressToken: _meta.progressToken, progress: value, total: 2 },
        })
  await progress(1)
  const asked = { method: 'elicitation/create', params: { message: `How many nights in ${city}?`, requestedSchema } }
  const { action, content } = await sendRequest(asked, ElicitResultSchema)
  await progress(2)
  const text = action === 'accept' ? `${content?.nights} nights in ${city}` : `not booked: ${action}`
  return { content: [{ type: 'text', text }] }
})
await server.connect(new StdioServerTransport())
