import { installedPeer } from '../peer-programs.ts'
import { programPeer, stdioUpstream } from '../start-program.ts'

export const peer = programPeer({
  about: 'mcp-proxy (npm): 2025-11-25 sessions, a 2025-11-25 server over stdio',
  dialect: 'legacy',
  program: installedPeer('npm/node_modules/.bin/mcp-proxy'),
  args: ({ port }) => [
    '--host',
    '127.0.0.1',
    ...['--port', String(port), '--server', 'stream', '--', ...stdioUpstream('legacy')],
  ],
})
