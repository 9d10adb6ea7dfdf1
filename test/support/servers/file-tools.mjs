// A legacy stdio server whose tools are those of a JSON file, read again for each list. A call returns the name and the
// arguments. The file is watched: a change is announced, unless it has `"silent": true`.
import { readFileSync, watchFile } from 'node:fs'
import { createInterface } from 'node:readline'

const [file] = process.argv.slice(2)
const read = () => JSON.parse(readFileSync(file, 'utf8'))
const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

const page = ({ tools, pageSize = tools.length }, cursor) => {
  const start = Number(cursor ?? 0)
  const end = start + Math.max(1, pageSize)
  return { tools: tools.slice(start, end), ...(end < tools.length && { nextCursor: String(end) }) }
}

let client = {}
const HANDLERS = {
  initialize: ({ protocolVersion, capabilities }) => {
    client = capabilities ?? {}
    return {
      protocolVersion,
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'file-tools', version: '1' },
    }
  },
  ping: () => ({}),
  'tools/list': params => {
    const state = read()
    const more = client.sampling ? (state.sampling ?? []) : []
    return page({ ...state, tools: [...state.tools, ...more] }, params?.cursor)
  },
  'tools/call': ({ name, arguments: given }) => ({
    content: [{ type: 'text', text: JSON.stringify({ name, given, pid: process.pid }) }],
  }),
}

createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const handle = Object.hasOwn(HANDLERS, method) ? HANDLERS[method] : undefined
  if (!handle) return send({ id, error: { code: -32601, message: 'Method not found' } })
  send({ id, result: handle(params) })
})

watchFile(file, { interval: 30 }, () => {
  if (!read().silent) send({ method: 'notifications/tools/list_changed' })
})
