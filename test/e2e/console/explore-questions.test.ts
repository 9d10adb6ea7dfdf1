import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { axe, describeConsole, showAs } from '../../support/console.ts'
import { livingWith } from '../../support/run-processes.ts'

const BOOKING = fileURLToPath(new URL('../../support/servers/booking.mjs', import.meta.url))
const RUN = randomUUID()
const config = {
  mcpServers: {
    booking: { command: process.execPath, args: [BOOKING], env: { TEST_RUN: RUN } },
    demo: { builtin: 'demo' },
  },
}
const waiting = (page: Page) => page.getByRole('region', { name: 'Questions that wait for you' })
const question = (page: Page) => page.getByRole('region', { name: 'The server asks you' })

describeConsole(
  'questions that wait',
  site => {
    const parked = async (): Promise<number> => {
      const headers = { authorization: `Bearer ${site.gateway.localSecret}` }
      const status = await (await fetch(`${site.origin}/admin/status`, { headers })).json()
      return (status as { parkedCalls: number }).parkedCalls
    }
    const ask = async (city: string): Promise<Page> => {
      const page = await site.openConsole('explore/booking/tools/book')
      await page.getByRole('textbox', { name: 'city' }).fill(city)
      await page.getByRole('button', { name: /^Call/ }).click()
      await question(page).getByText(`How many nights in ${city}?`).waitFor()
      return page
    }

    test('nine are named with tool, text and time, scroll, and can be dismissed', async () => {
      const page = await site.openConsole('explore/demo/tools/test_elicitation')
      for (let at = 1; at <= 9; at++) {
        await page.getByRole('textbox', { name: 'message' }).fill(`Question ${at}?`)
        await page.getByRole('button', { name: /^Call/ }).click()
        await question(page).getByText(`Question ${at}?`).waitFor()
      }
      await page.getByRole('tab', { name: /^Prompts/ }).click()
      await waiting(page).getByText('9 questions wait for you').waitFor()
      const rows = await waiting(page).getByRole('listitem').allTextContents()
      expect(new Set(rows).size).toBe(9)
      expect(rows[0]).toMatch(/^test_elicitation of demo asks you: Question 9\? · .+AnswerDismiss$/)
      for (const width of [1280, 400]) {
        await showAs(page, 'light', width)
        expect((await waiting(page).boundingBox())?.height).toBeLessThan(130)
        expect(await axe(page)).toEqual([])
      }
      await waiting(page).getByRole('listitem').first().getByRole('button', { name: 'Dismiss' }).click()
      await waiting(page).getByText('8 questions wait for you').waitFor()
      await expect.poll(parked).toBe(8)
      await waiting(page).getByRole('button', { name: 'Dismiss all' }).click()
      await waiting(page).waitFor({ state: 'detached' })
      await expect.poll(parked).toBe(0)
      await page.goto(`${site.origin}/#/explore/demo/tools/test_elicitation`)
      await page.locator('.result').getByText('action=cancel').waitFor()
    })

    test('the question of a server that has crashed goes with its call', async () => {
      const page = await ask('Bern')
      await page.getByRole('tab', { name: /^Prompts/ }).click()
      await waiting(page).getByText('How many nights in Bern?').waitFor()
      for (const pid of livingWith(RUN)) process.kill(pid, 'SIGKILL')
      await waiting(page).waitFor({ state: 'detached' })
      await page.getByRole('tab', { name: /^Calls/ }).click()
      await page.getByRole('row', { name: /failed/ }).waitFor()
      await expect.poll(parked).toBe(0)
    })

    test.each([
      ['a reload of the page', (page: Page) => page.reload()],
      ['the button Cancel', (page: Page) => page.getByRole('button', { name: /^Cancel/ }).click()],
    ])('%s ends the call at the gateway', async (_name, leave) => {
      await expect.poll(parked).toBe(0)
      const page = await ask('Rome')
      expect(await parked()).toBe(1)
      await leave(page)
      await expect.poll(parked).toBe(0)
    })

    test('the question of another target is answered later', async () => {
      const page = await ask('Oslo')
      await page.getByLabel('Workspace or server').selectOption({ label: 'demo' })
      await page.getByText('example-ping').first().waitFor()
      await waiting(page).getByRole('link', { name: 'Answer' }).click()
      await question(page).getByRole('textbox', { name: 'nights' }).fill('2')
      await question(page).getByRole('button', { name: 'Accept' }).click()
      await page.locator('.result').getByText('2 nights in Oslo').waitFor()
    })
  },
  { config },
)
