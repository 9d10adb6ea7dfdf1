import { fileURLToPath } from 'node:url'
import type { Peer } from '../peer.ts'
import { startDragoman } from '../start-dragoman.ts'

const PROGRAM = fileURLToPath(new URL('../stdio-upstream.js', import.meta.url))

export const peer: Peer = {
  about: 'this gateway: a 2026-07-28 client, a 2026-07-28 server over stdio (its CPU not counted)',
  dialect: 'modern',
  start: () => startDragoman({ command: process.execPath, args: [PROGRAM], era: 'modern' }),
}
