import { startWorkspace } from '../many-servers.ts'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  about: 'one server with 10,000 tools',
  dialect: 'modern',
  start: upstream => startWorkspace(upstream, 1, 'prefix'),
}
