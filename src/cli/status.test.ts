import { expect, it } from 'vitest'
import { logText } from './logs.ts'
import { describeStatus, durationText } from './status.ts'

it.each([
  [0, '0s'],
  [8200, '8s'],
  [310_000, '5m 10s'],
  [3_600_000, '1h'],
  [183_600_000, '2d 3h'],
  [-5, '0s'],
])('%d ms are %s', (ms, text) => {
  expect(durationText(ms)).toBe(text)
})

const STATUS = {
  version: '1.2.3',
  pid: 7,
  origin: 'http://127.0.0.1:1',
  startedAt: 0,
  memoryBytes: 50 * 1024 * 1024,
  sessions: 1,
  channels: 2,
  streams: 3,
  calls: 4,
  parkedCalls: 5,
  servers: [],
  workspaces: [],
}

it('shows why a server is down, and when it is tried again', () => {
  const down = { name: 'a', state: 'down', since: 1000, reason: 'connection refused', retryAt: 12_000 } as const
  const text = describeStatus({ ...STATUS, servers: [down] }, 10_000)
  expect(text).toContain('dragoman 1.2.3 at http://127.0.0.1:1, process 7, up 10s, 50 MB\nconfiguration: none\n')
  expect(text).toContain('sessions: 1  SSE channels: 2  streams: 3  calls: 4  parked: 5  tasks: 0\n')
  expect(text).toMatch(/^a +down +9s +- +- +- +- +connection refused \(next try in 2s\)$/m)
})

it('shows what the tools of servers and workspaces cost, and warns of a large list', () => {
  const size = { bytes: 90_000, tokens: 21_000 }
  const toolList = { tools: 60, all: size, listed: size, listedTools: 60, unknown: [] }
  const largestTools = [
    { name: 'big', bytes: 50_000, tokens: 12_000 },
    { name: 'small', bytes: 100, tokens: 30 },
  ]
  const server = { name: 'a', state: 'ready', tools: 60, toolSize: size, largestTools } as const
  const workspace = { name: 'w', url: 'http://x/mcp', servers: [server], toolList }
  const text = describeStatus({ ...STATUS, servers: [server], workspaces: [workspace] }, 0)
  expect(text).toMatch(/^a +ready +- +- +60 +21k +-$/m)
  expect(text).toMatch(/^w +1 +60 +60 +21k +http:\/\/x\/mcp$/m)
  expect(text).toContain('warning: the list of w has about 21k tokens in 60 tools')
  expect(text).toContain('its largest tools: a/big 12k, a/small 30\n')
})

it('shows the store, and the replicas if there are several', () => {
  const store = { engine: 'postgres', state: 'away', reason: 'no answer', claims: 3, queuedBytes: 1 } as const
  const [one, two] = [
    { name: 'r1', address: 'http://10.0.0.1:8766', labels: ['gpu'], isSelf: true },
    { name: 'r2', address: '', labels: [], isSelf: false },
  ]
  const textOf = (replicas: readonly (typeof one)[]) =>
    describeStatus({ ...STATUS, state: { ...store, journalBytes: 2 ** 20, forwards: 4, replicas } }, 0)
  expect(textOf([one])).toContain('store: postgres, away (no answer)  claims: 3  journal: 1 MB  forwards: 4\n')
  expect(textOf([one])).not.toContain('REPLICA')
  expect(textOf([one, two])).toMatch(/^r1 \(this one\) +http:\/\/10.0.0.1:8766 +gpu\nr2 +- +-$/m)
})

it('writes a line of the log with its time, level and server', () => {
  expect(logText({ time: 0, level: 'stderr', server: 'a', text: 'hello' })).toBe('00:00:00.000 stderr a: hello\n')
  expect(logText({ time: 0, level: 'info', text: 'closing' })).toBe('00:00:00.000 info   closing\n')
})
