import { expect, test } from 'vitest'
import { DEFAULT_PROCESS_LIMITS, type ServerConfig } from '../../../src/config/snapshot.ts'
import { createHealth } from '../../../src/health/health.ts'
import { gatewayCaller } from '../../../src/health/probe-server.ts'
import type { RpcError, RpcFailure } from '../../../src/protocol/errors.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { connectProcess } from '../../../src/upstreams/connect-process.ts'
import { ProcessHost } from '../../../src/upstreams/process/process-host.ts'
import { Json } from '../../../src/wire/json/json.ts'

const CONFIG: ServerConfig & { kind: 'process' } = {
  name: 'broken',
  disabled: false,
  kind: 'process',
  command: process.execPath,
  args: ['-e', 'process.exit(1)'],
  env: {},
  cwd: undefined,
  era: 'legacy',
  timeoutMs: 1000,
  limits: DEFAULT_PROCESS_LIMITS,
}

test('the error of a process that is not started for a while says one time, the one after which it is tried', async () => {
  const identity = Json.of({ name: 'test', version: '1' })
  const health = createHealth(identity, SILENT)
  const upstream = health.add(
    CONFIG,
    connectProcess(CONFIG, { log: SILENT, host: new ProcessHost(1), breakAfter: 1, breakMs: 200_000 }),
  )
  const refused = (): Promise<RpcError> =>
    upstream.open(gatewayCaller(identity)).then(
      () => expect.unreachable(),
      (error: unknown) => (error as RpcFailure).error,
    )
  try {
    await health.probeAll()
    // The first refusal is of the crash itself; from the next try on the process is not started at all.
    await expect.poll(async () => (await refused()).message, { timeout: 5000 }).toContain('It failed 1 times')
    const { message, data } = await refused()
    const times = [...message.matchAll(/tried again in (\d+) s/g)].map(([, seconds]) => Number(seconds))
    expect(times, message).toHaveLength(1)
    expect(times[0]).toBeGreaterThan(60) // longer than the breaker alone would wait
    expect(data?.get('retryAfterMs')?.asNumber()).toBeGreaterThan((Number(times[0]) - 1) * 1000)
    const { reason, retryAt = 0 } = health.statusOf('broken')
    expect(reason).not.toContain('tried again')
    expect(retryAt - Date.now()).toBeGreaterThan(60_000)
  } finally {
    health.close()
    await upstream.close()
  }
})
