import type { Page } from 'playwright-core'

/** Opens an authorization request, signs in with an API token if asked to, allows it, and waits for the redirect. */
export const allow = async (page: Page, request: string | URL, token: string, redirect: string): Promise<URL> => {
  await page.goto(String(request))
  const field = page.locator('input[name=token]')
  if (await field.isVisible()) {
    await field.fill(token)
    await page.getByRole('button').first().click()
  }
  const arrived = page.waitForURL(url => String(url).startsWith(redirect))
  if (!page.url().startsWith(redirect)) await page.getByRole('button', { name: 'Allow' }).click()
  await arrived
  return new URL(page.url())
}
