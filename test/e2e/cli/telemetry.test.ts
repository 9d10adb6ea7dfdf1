import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { startOtlpReceiver } from '../../support/otlp-receiver.ts'
import { endPrograms, startServe } from './program.ts'

afterAll(endPrograms)

/** The bundled program: what is bundled may lack what a test of the source finds. */
test('the program exports traces and metrics', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-telemetry-'))
  const collector = await startOtlpReceiver()
  onTestFinished(async () => {
    await collector.close()
    await rm(folder, { recursive: true, force: true })
  })
  const file = join(folder, 'mcp.json')
  await writeFile(
    file,
    JSON.stringify({ mcpServers: { demo: { builtin: 'demo' } }, telemetry: { endpoint: collector.url } }),
  )
  const env = { OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_METRIC_EXPORT_INTERVAL: '200' }
  const program = await startServe(['--config', file, '--data', folder], env)
  const response = await fetch(`${program.origin}/actions/default/example-ping`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  expect(response.status).toBe(200)
  const hasSpan = (): boolean => collector.spans.some(({ name }) => name === 'tools/call example-ping')
  await collector.until(() => hasSpan() && collector.metrics.length > 0)
  program.signal('SIGTERM')
  expect(await program.ended).toBe(0)
  expect(collector.problems).toEqual([])
})
