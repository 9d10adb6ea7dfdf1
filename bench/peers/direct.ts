import type { Peer } from '../peer.ts'

export const peer: Peer = {
  about: 'no gateway: the client calls the upstream, and the CPU is the upstream’s own',
  dialect: 'modern',
  start: async upstream => upstream,
}
