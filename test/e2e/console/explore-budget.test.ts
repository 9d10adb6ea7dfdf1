import { expect, test } from 'vitest'
import { axe, describeConsole } from '../../support/console.ts'

const BUDGET = { tokens: 1000, favourites: ['demo/example-echo'] }
const CONFIG = {
  mcpServers: { demo: { builtin: 'demo' } },
  workspaces: { default: { servers: ['demo'], budget: BUDGET } },
}

describeConsole(
  'Explore of a workspace above its budget',
  site => {
    test('shows what clients see, and all tools on request', async () => {
      const page = await site.openConsole('explore/default/tools')
      const tools = page.getByRole('listbox', { name: 'Tools' })
      await tools.getByText('search_tools', { exact: true }).waitFor()
      await page.getByText(/^The budget leaves out \d\d tools\./).waitFor()
      expect(await tools.getByText('test_x_mcp_header', { exact: true }).count()).toBe(0)
      expect(await axe(page)).toEqual([])
      await page.getByRole('button', { name: 'Show all tools' }).click()
      await page.getByText('All tools are shown').waitFor()
      await page.getByRole('searchbox', { name: 'Search' }).fill('mcp_header')
      await tools.getByText('test_x_mcp_header', { exact: true }).waitFor()
      await page.getByRole('searchbox', { name: 'Search' }).fill('')
      await page.getByRole('button', { name: 'Show what clients see' }).click()
      await page.getByText(/^The budget leaves out \d\d tools\./).waitFor()
    })
  },
  { config: CONFIG },
)
