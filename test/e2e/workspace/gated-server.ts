import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { DEFAULT_TIMEOUT_MS, type ServerConfig } from '../../../src/config/snapshot.ts'

interface Request {
  readonly id?: number
  readonly method: string
  readonly params?: { readonly capabilities?: object }
}

/** A legacy stdio server whose processes answer nothing while the gate is closed, as if they were still starting. */
export interface GatedServer {
  readonly config: ServerConfig
  readonly tools: string[] // clients with sampling get one more, and a process that was called has its own
  readonly asked: string[] // methods in order of arrival
  open(): void
  close(): void
  /** The number of processes that have connected. */
  processes(): number
  end(): Promise<void>
}

const RELAY = fileURLToPath(new URL('../../matrix/relay.mjs', import.meta.url))

export const startGated = async (name: string, ...tools: string[]): Promise<GatedServer> => {
  const asked: string[] = []
  const sockets = new Set<Socket>()
  const held: (() => void)[] = []
  let isOpen = true
  let processes = 0

  const server = createServer(socket => {
    const number = ++processes
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    let canSample = false
    let own: string[] = []
    const answer = ({ id, method, params }: Request): void => {
      if (method === 'initialize') canSample = 'sampling' in (params?.capabilities ?? {})
      if (method === 'tools/call') own = [`made_by_process_${number}`]
      const names = [...tools, ...(canSample ? ['sample'] : []), ...own]
      const results: Record<string, object> = {
        initialize: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name, version: '1' },
          instructions: `Use ${name}.`,
        },
        ping: {},
        'tools/list': { tools: names.map(tool => ({ name: tool, inputSchema: { type: 'object' } })) },
        'tools/call': { content: [{ type: 'text', text: `called ${name}` }] },
      }
      const error = { code: -32601, message: 'Method not found' }
      const reply = results[method] ? { result: results[method] } : { error }
      socket.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...reply })}\n`)
    }
    createInterface({ input: socket }).on('line', line => {
      const request = JSON.parse(line) as Request
      asked.push(request.method)
      if (request.id === undefined) return
      if (isOpen) answer(request)
      else held.push(() => answer(request))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))

  return {
    config: {
      name,
      disabled: false,
      kind: 'process',
      command: process.execPath,
      args: [RELAY, String((server.address() as AddressInfo).port)],
      cwd: undefined,
      env: {},
      era: 'legacy',
      timeoutMs: DEFAULT_TIMEOUT_MS,
    },
    tools,
    asked,
    open: () => {
      isOpen = true
      for (const answer of held.splice(0)) answer()
    },
    close: () => {
      isOpen = false
    },
    processes: () => processes,
    end: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
