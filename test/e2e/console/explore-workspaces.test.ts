import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { axe, describeConsole } from '../../support/console.ts'

const config = {
  mcpServers: { demo: { builtin: 'demo' }, memory: { builtin: 'memory' } },
  workspaces: {
    default: {
      servers: ['demo', 'memory'],
      tools: { 'demo/example-echo': { name: 'greet', arguments: { fixed: { message: 'from the workspace' } } } },
    },
    notes: { servers: ['memory'] },
  },
}

const target = (page: Page) => page.getByLabel('Workspace or server')

describeConsole(
  'Explore with workspaces of several servers',
  site => {
    test('one server of a workspace can be chosen, and keeps to the address', async () => {
      const page = await site.openConsole('explore/default/tools')
      const all = page.getByRole('tab', { name: /^Tools 5\d$/ }).or(page.getByRole('tab', { name: /^Tools 6\d$/ }))
      await all.waitFor()
      expect(await target(page).locator('option').allTextContents()).toEqual([
        'default (2 servers)',
        'default › demo',
        'default › memory',
        'notes (1 server)',
      ])
      await target(page).selectOption({ label: 'default › demo' })
      await page.getByRole('tab', { name: /^Tools 41$/ }).waitFor()
      expect(page.url()).toContain('#/explore/default/tools?server=demo')
      await page.getByRole('tab', { name: /^Prompts/ }).click()
      expect(page.url()).toContain('server=demo')
      await page.reload()
      await page.getByRole('tab', { name: /^Tools 41$/ }).waitFor()
      expect(await target(page).locator('option:checked').textContent()).toBe('default › demo')
      await target(page).selectOption({ label: 'default › memory' })
      await page.getByRole('tab', { name: /^Tools 41$/ }).waitFor({ state: 'detached' })
      expect(await axe(page)).toEqual([])
    })

    test.each(['2026-07-28', '2025-11-25', '2024-11-05'])('as a client of %s', async revision => {
      const page = await site.openConsole(`explore/default/tools?revision=${revision}&server=demo`)
      await page.getByRole('tab', { name: /^Tools 41$/ }).waitFor()
      await page.getByText('demo__example-ping').click()
      await page.getByRole('button', { name: /^Call/ }).click()
      await page.locator('.result').getByText('pong').waitFor()
    })

    test('a tool of a workspace runs as a task, as the workspace lists it', async () => {
      const page = await site.openConsole('explore/default/tools/demo__greet?server=demo')
      await page.getByRole('button', { name: 'Run as task' }).click()
      await page.getByRole('button', { name: 'Show the task' }).click()
      const pane = page.getByRole('region', { name: /^Task/ })
      await pane.getByText('Echo: from the workspace').waitFor()
      await pane.getByText('demo', { exact: true }).first().waitFor()
      await pane.getByText('default', { exact: true }).first().waitFor()
    })

    test('a server that is no longer there is said to be gone', async () => {
      const page = await site.openConsole('explore/default/tools?server=other')
      await target(page).locator('option', { hasText: 'default › other (gone)' }).waitFor({ state: 'attached' })
    })

    test('the admin API wants either a server or a workspace that exists', async () => {
      const post = async (body: object) => {
        const response = await fetch(`${site.origin}/admin/tasks`, {
          method: 'POST',
          headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        return [response.status, await response.text()]
      }
      const wants = [400, expect.stringContaining('name either')]
      expect(await post({ tool: 'x' })).toEqual(wants)
      expect(await post({ server: 'demo', workspace: 'default', tool: 'x' })).toEqual(wants)
      expect(await post({ workspace: 'defalt', tool: 'x' })).toEqual([422, expect.stringContaining('did you mean')])
    })
  },
  { config },
)
