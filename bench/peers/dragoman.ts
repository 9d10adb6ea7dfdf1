import type { Peer } from '../peer.ts'
import { startDragoman } from '../start-dragoman.ts'

export const peer: Peer = {
  about: 'this gateway: a 2026-07-28 client, a 2026-07-28 server',
  dialect: 'modern',
  start: upstream => startDragoman({ url: upstream.url, era: 'modern' }),
}
