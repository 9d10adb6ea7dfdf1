// A legacy server on stdio with the numbered tools, in plain JavaScript so that it starts quickly. Every number it
// executes is a line of the file it is given: `node stdio-server.mjs FILE`.
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const [file] = process.argv.slice(2)
const waiting = new Map()
let lastId = 0

const write = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

const text = value => ({ content: [{ type: 'text', text: value }] })

const askForNumber = number =>
  new Promise(resolve => {
    const id = `q${++lastId}`
    waiting.set(id, resolve)
    const properties = { number: { type: 'integer' } }
    const requestedSchema = { type: 'object', properties, required: ['number'] }
    write({ id, method: 'elicitation/create', params: { message: `number ${number}`, requestedSchema } })
  })

const tools = {
  work: async ({ number, ms = 0, events = 0 }, progressToken) => {
    appendFileSync(file, `${number}\n`)
    for (let event = 1; event <= events; event++) {
      await sleep(ms / (events + 1))
      if (progressToken === undefined) continue
      const params = { progressToken, progress: event, total: events, message: `event ${event}` }
      write({ method: 'notifications/progress', params })
    }
    if (ms > 0) await sleep(ms / (events + 1))
    return text(`work ${number} done`)
  },
  ask: async ({ number }) => {
    const answer = await askForNumber(number)
    appendFileSync(file, `${number}\n`)
    return text(answer?.content?.number === number ? `ask ${number} done` : `the answer was ${JSON.stringify(answer)}`)
  },
}

const schema = { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] }

const methods = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'chaos-stdio', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: Object.keys(tools).map(name => ({ name, description: name, inputSchema: schema })) }),
  'tools/call': ({ name, arguments: given, _meta }) => tools[name](given, _meta?.progressToken),
}

const receive = async ({ id, method, params, result, error }) => {
  if (method === undefined) {
    waiting.get(id)?.(result ?? error)
    waiting.delete(id)
    return
  }
  if (id === undefined) return
  const run = methods[method]
  if (!run) write({ id, error: { code: -32601, message: `Method not found: ${method}` } })
  else write({ id, result: await run(params ?? {}) })
}

createInterface({ input: process.stdin }).on('line', line => void receive(JSON.parse(line)))
process.stdin.once('end', () => process.exit())
