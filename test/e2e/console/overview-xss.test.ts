import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { describeConsole } from '../../support/console.ts'
import { exhibit } from '../../support/exhibit-server.ts'
import { scriptedServer } from '../../support/scripted-server.ts'
import { expectNoPayloadRan, XSS_PAYLOADS } from '../../support/xss-corpus.ts'

const ALL = XSS_PAYLOADS.join('\n\n')
const LAST = XSS_PAYLOADS.find(payload => payload.startsWith('&#60;')) ?? ''

const server = await scriptedServer(
  exhibit({
    title: ALL,
    info: { name: ALL, version: ALL, description: ALL, websiteUrl: ALL },
    instructions: ALL,
    tools: [
      { definition: { name: 'fails', inputSchema: { type: 'object' } }, run: ({ fail }) => fail(-32000, ALL) },
      {
        definition: { name: 'answers', inputSchema: { type: 'object' } },
        run: { content: XSS_PAYLOADS.map(text => ({ type: 'text', text })), structuredContent: { [ALL]: ALL } },
      },
    ],
  }),
)
const folder = await mkdtemp(join(tmpdir(), 'dragoman-loud-'))
// It says every payload on stderr, and ends.
await writeFile(
  join(folder, 'loud.mjs'),
  `for (const payload of ${JSON.stringify(XSS_PAYLOADS)}) process.stderr.write(payload + '\\n')\nprocess.exitCode = 3\n`,
)
afterAll(() => Promise.all([server.close(), rm(folder, { recursive: true })]))

const shows = (page: Page, payload: string) =>
  page.locator('main').getByText(payload, { exact: false }).first().waitFor()

describeConsole(
  'text of servers on other pages',
  site => {
    const post = (path: string, body: object) =>
      fetch(`${site.origin}/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })

    test('Overview: stderr, the log and why a server is down', async () => {
      const page = await site.openConsole('overview/loud')
      await page.getByRole('log').getByText(LAST).first().waitFor()
      await shows(page, LAST)
      await expectNoPayloadRan(page)
    })

    test('Overview: the last error of a call', async () => {
      const answer = await post('actions/bad/fails', {})
      expect([answer.ok, await answer.text()]).toEqual([false, expect.stringContaining('hacked')])
      const page = await site.openConsole('overview/bad')
      await page
        .getByRole('region', { name: 'Server bad' })
        .getByText(XSS_PAYLOADS[0] ?? '')
        .first()
        .waitFor()
      await expectNoPayloadRan(page)
    })

    test('tasks: messages, errors and results', async () => {
      for (const tool of ['fails', 'answers'])
        expect((await post('admin/tasks', { server: 'bad', tool })).status, tool).toBe(200)
      const page = await site.openConsole('overview?tab=tasks')
      for (const state of ['Failed', 'Completed']) {
        await page.getByRole('row').filter({ hasText: state }).click()
        await page
          .getByRole('region', { name: /^Task/ })
          .getByText(XSS_PAYLOADS[0] ?? '')
          .first()
          .waitFor()
        await expectNoPayloadRan(page)
      }
    })

    test('Configuration: what a server says when it is tried', async () => {
      const page = await site.openConsole('configuration/servers/bad')
      await page.getByRole('button', { name: 'Try it' }).click()
      await page.getByText('It works').waitFor()
      await expectNoPayloadRan(page)
      await page.goto(`${site.origin}/#/configuration/servers/loud`)
      await page.getByRole('button', { name: 'Try it' }).click()
      await page.getByText(LAST).first().waitFor()
      await expectNoPayloadRan(page)
    })
  },
  {
    config: {
      mcpServers: { bad: { url: server.url }, loud: { command: process.execPath, args: [join(folder, 'loud.mjs')] } },
    },
  },
)
