import { expect, test } from 'vitest'
import { describeConsole } from '../../support/console.ts'
import { moveTo, pressOn } from '../../support/keyboard.ts'

describeConsole('the keyboard alone', site => {
  test('stops a server', async () => {
    const page = await site.openConsole('overview/demo')
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    await pressOn(page, 'Stop')
    await page.getByText('until the gateway restarts').waitFor()
    await pressOn(page, 'Stop')
    await page.getByRole('row').filter({ hasText: 'demo' }).getByText('Stopped').waitFor()
    await pressOn(page, 'Start')
    await page.getByRole('row').filter({ hasText: 'demo' }).getByText('Ready').waitFor()
  })

  test('forgets what is known of a name', async () => {
    const stored = await fetch(`${site.origin}/admin/memory/episodes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'Zoltan saw Vienna.', name: 'The trip' }),
    })
    expect(stored.status).toBe(200)
    const page = await site.openConsole('memory/timeline')
    await page.getByText('The trip').waitFor()
    await pressOn(page, 'Import, export, forget')
    await page.getByRole('menuitem', { name: 'Forget…' }).waitFor()
    await moveTo(page, 'Forget…', 'ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByLabel('Name').waitFor()
    await moveTo(page, /^Name/)
    await page.keyboard.type('Zoltan')
    await pressOn(page, 'Preview')
    await page.getByText('The trip').last().waitFor()
    await page.getByRole('button', { name: 'Erase for good' }).waitFor()
    await pressOn(page, 'Erase for good')
    await page.getByText(/None of \d+ pieces of their text is left in the files/).waitFor()
    await pressOn(page, 'Close')
    await page.getByText('The trip').waitFor({ state: 'detached' })
  })

  test('creates a token, copies its secret, and revokes it', async () => {
    const page = await site.openConsole('connect/tokens')
    await page.getByRole('heading', { name: 'No tokens' }).waitFor()
    await pressOn(page, 'New token')
    await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).waitFor()
    await page.keyboard.type('by keys') // the dialog begins there
    await pressOn(page, 'demo', 'Space')
    await pressOn(page, /^Turn authentication on/, 'Space')
    await pressOn(page, 'Create')
    await page.getByText('Copy it now').waitFor()
    await pressOn(page, 'Done')
    await page.getByRole('row', { name: 'by keys' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Revoke…' }).waitFor()
    await pressOn(page, 'Revoke…')
    await page.getByText('Sessions and streams that were opened with it end at once').waitFor()
    await pressOn(page, 'Revoke')
    await page.getByText('Every caller needs a token, and there is none').waitFor()
  })
})
