import { expect, test } from 'vitest'
import type { Caller, Peer } from '../protocol/exchange.ts'
import type { Revision } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { ConnectedPeers } from './connected-peers.ts'

const callerOf = (revision: Revision, capabilities: object = {}): Caller => ({
  workspace: 'default',
  principal: undefined,
  revision,
  capabilities: Json.parse(Buffer.from(JSON.stringify(capabilities))),
  headers: new Map(),
})
const peerOf = (revision: Revision, asks = false): Peer & { revision: Revision; asks: boolean } => ({
  revision,
  asks,
  dispatch: () => {},
})
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

test('finds what was built for a caller of the same kind, and for no other', () => {
  const peers = new ConnectedPeers()
  const peer = peerOf('2025-11-25')
  const built = peerOf('2026-07-28')
  expect(peers.find(callerOf('2026-07-28'), peer)).toBeUndefined()
  expect(peers.add(callerOf('2026-07-28'), peer, built)).toBe(built)
  expect(peers.find(callerOf('2026-07-28', { sampling: {} }), peer)).toBe(built)
  expect(peers.find(callerOf('2026-07-28', TASKS), peer)).toBeUndefined()
  expect(peers.find(callerOf('2025-06-18'), peer)).toBeUndefined()
  expect(peers.find(callerOf('2026-07-28'), peerOf('2025-11-25'))).toBeUndefined()
})

test('forgets it when the session behind the peer has changed', () => {
  const peers = new ConnectedPeers()
  const peer = peerOf('2025-11-25')
  peers.add(callerOf('2026-07-28'), peer, peer)
  peer.revision = '2025-03-26'
  expect(peers.find(callerOf('2026-07-28'), peer)).toBeUndefined()
  peer.revision = '2025-11-25'
  peer.asks = true
  expect(peers.find(callerOf('2026-07-28'), peer)).toBeUndefined()
})
