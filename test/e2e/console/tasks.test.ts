import type { Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { axe, describeConsole } from '../../support/console.ts'
import { startTaskServer } from '../../support/task-server.ts'

const server = await startTaskServer()
afterAll(() => server.close())

const config = { mcpServers: { jobs: { url: server.url }, demo: { builtin: 'demo' } } }
const rowOf = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text }).first()

describeConsole(
  'tasks',
  site => {
    const post = (path: string, body: object) =>
      fetch(`${site.origin}/admin/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })

    test('without tasks, the tab says how to start one', async () => {
      const page = await site.openConsole('overview?tab=tasks')
      await page.getByRole('heading', { name: 'No tasks' }).waitFor()
      expect(await page.locator('.empty-command code').textContent()).toContain('--task')
      expect(await axe(page)).toEqual([])
    })

    test('a task that a client started is shown while it works, and then with its result', async () => {
      expect((await post('tasks', { server: 'jobs', tool: 'plain' })).status).toBe(200)
      await server.called()
      const page = await site.openConsole('overview?tab=tasks')
      await rowOf(page, 'plain').getByText('Working').waitFor()
      await page.getByRole('tab', { name: /^Tasks 1$/ }).waitFor()
      await page.keyboard.press('j')
      const pane = page.getByRole('region', { name: /^Task plain/ })
      await pane.getByText('jobs', { exact: true }).waitFor()
      expect(await axe(page)).toEqual([])
      server.finish({ content: [{ type: 'text', text: 'finished at last' }] })
      await pane.getByText('finished at last').waitFor()
      await rowOf(page, 'plain').getByText('Completed').waitFor()
      await page.keyboard.press('Escape')
      await pane.waitFor({ state: 'detached' })
    })

    test('Explore starts a call as a task; the owner cancels it', async () => {
      const page = await site.openConsole('explore/jobs/tools/plain')
      await page.getByRole('button', { name: 'Run as task' }).click()
      await server.called()
      await page.getByRole('button', { name: 'Show the task' }).click()
      const pane = page.getByRole('region', { name: /^Task plain/ })
      await pane.getByRole('button', { name: 'Cancel task' }).click()
      await pane.getByText('Cancelled').first().waitFor()
      expect(await pane.getByRole('button', { name: 'Cancel task' }).count()).toBe(0)
      server.finish() // the answer comes too late
    })

    test('a tool that does not exist, and a task that has expired, are explained', async () => {
      site.allow(/404 \(Not Found\)/)
      const page = await site.openConsole('overview/unknown-task?tab=tasks')
      await page.getByText('It may have expired').waitFor()
      expect((await post('tasks', { server: 'nowhere', tool: 'x' })).status).toBe(422)
    })

    test('a viewer sees the tasks of the same user, cancels none and starts none', async () => {
      const page = await site.openConsole('overview?tab=tasks', { as: 'viewer' })
      await rowOf(page, 'plain').waitFor()
      await page.goto(`${site.origin}/#/explore/jobs/tools/plain`)
      expect(await page.getByRole('button', { name: 'Run as task' }).isDisabled()).toBe(true)
    })
  },
  { config },
)
