import { startWorkspace } from '../many-servers.ts'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  about: 'one server with 1,000 tools, its names as they are',
  dialect: 'modern',
  start: upstream => startWorkspace(upstream, 1, 'plain', 1_000),
}
