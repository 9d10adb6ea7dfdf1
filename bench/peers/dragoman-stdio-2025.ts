import type { Peer } from '../peer.ts'
import { startDragoman } from '../start-dragoman.ts'
import { stdioUpstream } from '../start-program.ts'

const [command, ...args] = stdioUpstream('legacy')

export const peer: Peer = {
  about: 'this gateway: 2025-11-25 sessions, a 2025-11-25 server over stdio (its CPU not counted)',
  dialect: 'legacy',
  start: () => startDragoman({ command, args, era: 'legacy' }),
}
