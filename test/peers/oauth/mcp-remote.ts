import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'

/** `mcp-remote` as a client that only knows stdio starts it. */
export interface RemoteBridge {
  readonly client: Client
  /** The link that it wants to be opened, or a later one. */
  link(number?: number): Promise<string>
  /** Resolves when it has logged in and the client is connected. */
  readonly connected: Promise<void>
  /** Everything it has printed. */
  output(): string
  close(): Promise<void>
}

const LINKS = /visiting:\s*(https?:\S+)/g

/** Starts mcp-remote of the installed folder before a URL; its logins are kept in `config`. */
export const startMcpRemote = (folder: string, url: string, port: number, config: string): RemoteBridge => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [
      join(folder, 'node_modules/mcp-remote/dist/proxy.js'),
      url,
      String(port),
      '--host',
      '127.0.0.1',
      '--transport',
      'http-only',
    ],
    env: { PATH: '/nonexistent', HOME: config, MCP_REMOTE_CONFIG_DIR: config }, // without a browser to start
    stderr: 'pipe',
  })
  const client = new Client({ name: 'stdio-client', version: '1.0.0' })
  let output = ''
  const waiting = new Set<() => void>()
  transport.stderr?.on('data', (chunk: Buffer) => {
    output += chunk
    for (const look of [...waiting]) look()
  })
  const link = (number = 0): Promise<string> =>
    new Promise(resolve => {
      const look = (): void => {
        const found = [...output.matchAll(LINKS)][number]?.[1]
        if (found === undefined) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    })
  const connected = client.connect(transport as Transport)
  connected.catch(() => undefined)
  return { client, link, connected, output: () => output, close: () => client.close() }
}
