import type { Peer } from '../peer.ts'
import { startConfigured } from '../start-dragoman.ts'

export const peer: Peer = {
  about: 'this gateway: 2025-11-25 sessions on both sides, and room for 30,000',
  dialect: 'legacy',
  start: upstream =>
    startConfigured({
      limits: { principalSessions: 30_000 },
      mcpServers: { upstream: { url: upstream.url, era: 'legacy' } },
    }),
}
