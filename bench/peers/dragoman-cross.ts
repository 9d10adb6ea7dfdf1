import type { Peer } from '../peer.ts'
import { startDragoman } from '../start-dragoman.ts'

export const peer: Peer = {
  about: 'this gateway: a 2025-11-25 session, a 2026-07-28 server',
  dialect: 'legacy',
  start: upstream => startDragoman({ url: upstream.url, era: 'modern' }),
}
