import { installedPeer } from '../peer-programs.ts'
import { programPeer, stdioUpstream } from '../start-program.ts'

export const peer = programPeer({
  about: 'supergateway --stateful (npm): 2025-11-25 sessions, each with a 2025-11-25 server over stdio',
  dialect: 'legacy',
  program: installedPeer('npm/node_modules/.bin/supergateway'),
  args: ({ port }) => [
    ...['--stdio', stdioUpstream('legacy').join(' '), '--outputTransport', 'streamableHttp', '--stateful'],
    ...['--port', String(port), '--logLevel', 'none'],
  ],
})
