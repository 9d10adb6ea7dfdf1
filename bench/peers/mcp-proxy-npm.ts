import { installedPeer } from '../peer-programs.ts'
import { programPeer, stdioUpstream } from '../start-program.ts'

export const peer = programPeer({
  about: 'mcp-proxy (npm): a 2026-07-28 client, a 2026-07-28 server over stdio',
  dialect: 'modern',
  program: installedPeer('npm/node_modules/.bin/mcp-proxy'),
  args: ({ port }) => [
    ...['--host', '127.0.0.1', '--port', String(port), '--server', 'stream', '--upstreamProtocol', 'modern', '--'],
    ...stdioUpstream('modern'),
  ],
})
