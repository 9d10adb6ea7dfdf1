import { installedPeer } from '../peer-programs.ts'
import { programPeer } from '../start-program.ts'

const config = (upstream: string, port: number): string =>
  JSON.stringify({
    mcpProxy: {
      baseURL: `http://127.0.0.1:${port}`,
      addr: `127.0.0.1:${port}`,
      name: 'bench',
      version: '1.0.0',
      type: 'streamable-http',
      options: { logEnabled: false },
    },
    mcpServers: { upstream: { transportType: 'streamable-http', url: upstream } },
  })

export const peer = programPeer({
  about: 'mcp-proxy of TBXark (Go): 2025-06-18 without sessions, the HTTP upstream',
  dialect: 'legacy',
  path: '/upstream/',
  program: installedPeer('go/mcp-proxy'),
  args: ({ upstream, port, config: write }) => ['--config', write(config(upstream, port))],
})
