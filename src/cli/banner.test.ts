import type { NetworkInterfaceInfo } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { WorkspaceStatus } from '../protocol/status.ts'
import { COLOURED, consoleLine, listeningLines, networkLine, PLAIN, serverLines, waitingLine } from './banner.ts'

const workspace = (name: string, server: Partial<WorkspaceStatus['servers'][0]>): WorkspaceStatus => ({
  name,
  url: `http://127.0.0.1:1/mcp/${name}`,
  servers: [{ name: `${name}-server`, state: 'ready', ...server }],
})

describe('the lines printed at startup', () => {
  it('name the version, the configuration and the URL of every workspace', () => {
    const started = { version: '1.2.3', origin: 'http://127.0.0.1:1', file: '/home/ann/mcp.json' }
    expect(listeningLines(started, [workspace('a', {}), workspace('long', {})], PLAIN)).toBe(
      'dragoman 1.2.3 listening on http://127.0.0.1:1\n' +
        'configuration /home/ann/mcp.json\n' +
        '  a     http://127.0.0.1:1/mcp/a\n' +
        '  long  http://127.0.0.1:1/mcp/long\n',
    )
  })

  it('name the console; in a terminal with a link that signs in', () => {
    const origin = 'http://127.0.0.1:1'
    expect(consoleLine(origin, undefined, PLAIN)).toBe('\nConsole: http://127.0.0.1:1/\n')
    expect(consoleLine(origin, `${origin}/#/overview?code=x`, PLAIN)).toContain('http://127.0.0.1:1/#/overview?code=x')
  })

  it('name an address for other machines if the gateway listens on all addresses', () => {
    const interfaces = {
      lo: [{ family: 'IPv4', internal: true, address: '127.0.0.1' }],
      eth0: [{ family: 'IPv4', internal: false, address: '192.0.2.7' }],
    } as unknown as NodeJS.Dict<NetworkInterfaceInfo[]>
    for (const [host, url] of [
      ['0.0.0.0', 'http://127.0.0.1:1/mcp'],
      ['::', 'http://[::1]:1/mcp'],
    ] as const)
      expect(networkLine(host, url, interfaces)).toBe('\nOther machines reach it at http://192.0.2.7:1/mcp\n')
    expect(networkLine('127.0.0.1', 'http://127.0.0.1:1/mcp', interfaces)).toBe('')
    expect(networkLine('0.0.0.0', 'http://127.0.0.1:1/mcp', {})).toBe('')
  })

  it('show the state of every server, with the reason where it is not ready', () => {
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

  it('name a server once, also if it is in several workspaces', () => {
    const shared = { name: 'shared', tools: 2 }
    const lines = serverLines([workspace('a', shared), workspace('b', shared), workspace('c', {})], PLAIN)
    expect(lines.split('\n')).toEqual(['', '  shared    connected, 2 tools', '  c-server  connected', ''])
  })

  it('name the servers that are slow to connect', () => {
    const late = workspace('a', { name: 'late', state: 'connecting' })
    expect(waitingLine([late, workspace('b', {}), late])).toBe('\nWaiting for late ...\n')
    expect(waitingLine([workspace('b', {})])).toBe('')
  })

  it('are coloured only on request', () => {
    expect(serverLines([workspace('a', {})], COLOURED)).toContain('\u001b[32mconnected\u001b[39m')
    expect(serverLines([workspace('a', {})], PLAIN)).not.toContain('\u001b')
  })
})
