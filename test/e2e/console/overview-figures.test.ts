import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { GatewayStatus } from '../../../src/protocol/status.ts'
import { describeConsole } from '../../support/console.ts'
import { exhibit } from '../../support/exhibit-server.ts'
import { scriptedServer } from '../../support/scripted-server.ts'

const server = await scriptedServer(
  exhibit({
    tools: [
      { definition: { name: 'works', inputSchema: { type: 'object' } }, run: { content: [] } },
      {
        definition: { name: 'fails', inputSchema: { type: 'object' } },
        run: ({ fail }) => fail(-32000, 'Out of paper'),
      },
    ],
  }),
)
const folder = await mkdtemp(join(tmpdir(), 'dragoman-failing-'))
await writeFile(
  join(folder, 'failing.mjs'),
  'for (let line = 1; line <= 30; line++) process.stderr.write(`reason ${line}\\n`)\nprocess.exitCode = 3\n',
)
afterAll(() => Promise.all([server.close(), rm(folder, { recursive: true })]))

describeConsole(
  'the figures of Overview',
  site => {
    test('a pane draws latency, requests and errors, and shows the last error', async () => {
      for (const tool of ['works', 'works', 'fails'])
        await fetch(`${site.origin}/actions/printer/${tool}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{}',
        })
      const page = await site.openConsole('overview/printer')
      const pane = page.getByRole('region', { name: 'Server printer' })
      await pane.getByText('Out of paper').first().waitFor()
      const errors = pane.getByRole('img', { name: /^Errors in 10 s: \d+, at most 1$/ })
      expect(await errors.locator('path').last().getAttribute('d')).toMatch(/^M[\d.]+ [\d.]+/)
      await pane.getByRole('img', { name: /^Latency, 10 min: [\d.]+ ms, at most/ }).waitFor()
      await pane.getByRole('img', { name: /^Requests in 10 s: \d+, at most [1-9]/ }).waitFor()
      const share = pane.locator('figure').filter({ hasText: 'Errors' }).locator('strong')
      expect(Number.parseFloat((await share.textContent()) ?? '')).toBeGreaterThan(0)
      expect(await page.getByRole('row', { name: /printer/ }).textContent()).toContain(await share.textContent())
    })

    test('a server that fails shows the last lines of its stderr', async () => {
      const page = await site.openConsole('overview/failing')
      const lines = page.getByRole('group', { name: 'The last lines of stderr' })
      await lines.getByText('reason 30').waitFor()
      expect(await lines.textContent()).not.toContain('reason 1\n')
    })

    test('replicas are counted, and named in the title', async () => {
      const headers = { authorization: `Bearer ${site.gateway.localSecret}` }
      const status = (await (await fetch(`${site.origin}/admin/status`, { headers })).json()) as GatewayStatus
      const [first] = status.state?.replicas ?? []
      const second = { ...first, name: 'west', address: 'http://10.0.0.2:9000' }
      const shown = { ...status, state: { ...status.state, replicas: [first, second] } }
      const page = await site.openConsole('overview', {
        isSingleUse: true,
        prepare: async own => {
          const body = `event: status\ndata: ${JSON.stringify(shown)}\n\n`
          await own.route('**/admin/events', route => route.fulfill({ contentType: 'text/event-stream', body }))
          return undefined
        },
      })
      const total = page.locator('.totals > div').filter({ hasText: 'Replicas' })
      await total.getByText('2', { exact: true }).waitFor()
      expect(await total.getAttribute('title')).toContain('west http://10.0.0.2:9000')
    })
  },
  {
    config: () => ({
      mcpServers: {
        printer: { url: server.url },
        failing: { command: process.execPath, args: [join(folder, 'failing.mjs')] },
      },
    }),
  },
)
