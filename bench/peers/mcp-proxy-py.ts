import { installedPeer } from '../peer-programs.ts'
import { programPeer, stdioUpstream } from '../start-program.ts'

export const peer = programPeer({
  about: 'mcp-proxy of sparfenyuk (Python): 2025-11-25 sessions, a 2025-11-25 server over stdio',
  dialect: 'legacy',
  path: '/mcp/',
  program: installedPeer('python/mcp-proxy/bin/mcp-proxy'),
  args: ({ port }) => ['--port', String(port), '--log-level', 'CRITICAL', '--', ...stdioUpstream('legacy')],
})
