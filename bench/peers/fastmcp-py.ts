import { installedPeer } from '../peer-programs.ts'
import { programPeer } from '../start-program.ts'

export const peer = programPeer({
  about: 'fastmcp run <url> (Python): 2025-11-25 sessions, the HTTP upstream',
  dialect: 'legacy',
  program: installedPeer('python/fastmcp/bin/fastmcp'),
  args: ({ upstream, port }) => [
    ...['run', upstream, '--transport', 'http', '--host', '127.0.0.1', '--port', String(port)],
    ...['--no-banner', '--log-level', 'CRITICAL'],
  ],
})
