import { describe, expect, it } from 'vitest'
import type { WorkspaceStatus } from '../protocol/status.ts'
import { COLOURED, doorLines, PLAIN, serverLines, waitingLine } from './banner.ts'

const workspace = (name: string, server: Partial<WorkspaceStatus['servers'][0]>): WorkspaceStatus => ({
  name,
  url: `http://127.0.0.1:1/mcp/${name}`,
  servers: [{ name: `${name}-server`, state: 'ready', ...server }],
})

describe('the lines at start', () => {
  it('name the version and every door', () => {
    expect(doorLines('1.2.3', 'http://127.0.0.1:1', [workspace('a', {}), workspace('long', {})], PLAIN)).toBe(
      'dragoman 1.2.3 listening on http://127.0.0.1:1\n' +
        '  a     http://127.0.0.1:1/mcp/a\n' +
        '  long  http://127.0.0.1:1/mcp/long\n',
    )
  })

  it('say of every server whether it is there, or what is the matter', () => {
    const lines = serverLines(
      [
        workspace('a', { revision: '2026-07-28', tools: 1 }),
        workspace('b', { revision: '2024-11-05', tools: 12 }),
        workspace('c', { state: 'down', reason: 'connection refused' }),
        workspace('d', { state: 'disabled' }),
        workspace('e', { state: 'unavailable', reason: 'the variable KEY is not set' }),
        workspace('f', { state: 'connecting' }),
      ],
      PLAIN,
    )
    expect(lines.split('\n')).toEqual([
      '',
      '  a-server  connected, 2026-07-28 (modern), 1 tool',
      '  b-server  connected, 2024-11-05 (legacy), 12 tools',
      '  c-server  down: connection refused',
      '  d-server  disabled',
      '  e-server  unavailable: the variable KEY is not set',
      '  f-server  connecting',
      '',
    ])
  })

  it('name a server once, however many workspaces it is in', () => {
    const shared = { name: 'shared', tools: 2 }
    const lines = serverLines([workspace('a', shared), workspace('b', shared), workspace('c', {})], PLAIN)
    expect(lines.split('\n')).toEqual(['', '  shared    connected, 2 tools', '  c-server  connected', ''])
  })

  it('name whoever takes long', () => {
    const late = workspace('a', { name: 'late', state: 'connecting' })
    expect(waitingLine([late, workspace('b', {}), late])).toBe('\nWaiting for late ...\n')
    expect(waitingLine([workspace('b', {})])).toBe('')
  })

  it('are coloured only when asked', () => {
    expect(serverLines([workspace('a', {})], COLOURED)).toContain('\u001b[32mconnected\u001b[39m')
    expect(serverLines([workspace('a', {})], PLAIN)).not.toContain('\u001b')
  })
})
