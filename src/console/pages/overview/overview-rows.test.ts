import { expect, test } from 'vitest'
import type { GatewayStatus, ServerStatus } from '../../../protocol/status.ts'
import { byUrgency, errorShare, filterServers, overviewRows } from './overview-rows.ts'

const activity = {
  calls: 100,
  errors: 9,
  lastError: { at: 1, message: 'it failed once' },
  history: { calls: [1, 0, 3], errors: [0, 0, 1], ms: [8, null, 4] },
}
const SERVERS: readonly ServerStatus[] = [
  { name: 'files', state: 'ready', transport: 'built-in', revision: '2026-07-28', activity },
  { name: 'web', state: 'down', transport: 'http', reason: 'connection refused' },
  { name: 'old', state: 'disabled', transport: 'stdio', isStopped: true, reason: 'stopped by the owner' },
]
const status = {
  servers: SERVERS,
  workspaces: [
    { name: 'default', url: '', servers: SERVERS },
    { name: 'code', url: '', servers: SERVERS.slice(0, 1) },
  ],
} as unknown as GatewayStatus

test('a row has the figures of the last ten minutes, and the workspaces of the server', () => {
  const [files, web, old] = overviewRows(status)
  expect(files).toMatchObject({
    word: 'Ready',
    dot: 'ok',
    workspaces: ['default', 'code'],
    calls: 4,
    errors: 1,
    meanMs: 5,
  })
  expect(files?.problem).toBe('it failed once')
  expect(web).toMatchObject({ word: 'Down', dot: 'error', calls: 0, meanMs: undefined, problem: 'connection refused' })
  expect(old).toMatchObject({ word: 'Stopped', dot: 'off' })
  expect([files, web].map(row => row && errorShare(row))).toEqual([0.25, undefined])
})

test('rows are found by workspace and by what they show', () => {
  const rows = overviewRows(status)
  const names = (text: string, workspace?: string) => filterServers(rows, { text, workspace }).map(({ name }) => name)
  expect(names('', 'code')).toEqual(['files'])
  expect(names(' REFUSED ')).toEqual(['web'])
  expect(names('stdio')).toEqual(['old'])
  expect(names('nothing')).toEqual([])
})

test('servers that need attention come first', () => {
  expect(
    overviewRows(status)
      .toSorted(byUrgency)
      .map(({ name }) => name),
  ).toEqual(['web', 'old', 'files'])
})
