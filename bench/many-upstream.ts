// Any number of servers of 2026-07-28 in one process: `/20/7` is the eighth of twenty, and has its share of the tools;
// `/1/0/10` is one server with ten.
import { createServer } from 'node:http'
import { TOOLS, toolsOf } from './many-servers.ts'
import { answerTo, type Request } from './mcp-answers.ts'
import { listening } from './peer.ts'

const HOUR = 3_600_000
const lists = new Map<string, string>()

const listOf = (servers: string, total: string): string => {
  const key = `${servers}/${total}`
  const known = lists.get(key)
  if (known) return known
  const inputSchema = { type: 'object', properties: { text: { type: 'string', description: 'What to say' } } }
  const tools = toolsOf(Number(servers), Number(total)).map(name => ({
    name,
    description: `Says again what ${name} is told`,
    inputSchema,
  }))
  const list = JSON.stringify({ resultType: 'complete', tools, ttlMs: HOUR, cacheScope: 'public' })
  lists.set(key, list)
  return list
}

/** Every tool says again what it is told. */
const asEcho = (request: Request): Request => ({ ...request, params: { ...request.params, name: 'echo' } })

const server = createServer((request, response) => {
  const [, servers = '1', , total = String(TOOLS)] = (request.url ?? '').split('/')
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const message = JSON.parse(Buffer.concat(chunks).toString()) as Request
    if (message.id === undefined) return void response.writeHead(202).end()
    const { isKnown, text } =
      message.method === 'tools/list'
        ? {
            isKnown: true,
            text: `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${listOf(servers, total)}}`,
          }
        : answerTo('modern', asEcho(message))
    response.writeHead(isKnown ? 200 : 404, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(text),
    })
    response.end(text)
  })
})

process.once('disconnect', () => process.exit())
process.send?.(await listening(server))
