import type { Peer } from '../peer.ts'
import { startDragoman } from '../start-dragoman.ts'

export const peer: Peer = {
  about: 'this gateway: 2025-11-25 sessions on both sides',
  dialect: 'legacy',
  start: upstream => startDragoman({ url: upstream.url, era: 'legacy' }),
}
