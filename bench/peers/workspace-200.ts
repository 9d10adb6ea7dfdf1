import { startWorkspace } from '../many-servers.ts'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  about: '200 servers, 10,000 tools together',
  dialect: 'modern',
  start: upstream => startWorkspace(upstream, 200, 'prefix'),
}
