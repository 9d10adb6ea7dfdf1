import { execFileSync } from 'node:child_process'
import { type Browser, chromium, type Page } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** The path of an installed Chromium, `$CHROMIUM` or on the path. */
const findChromium = (): string | undefined => {
  if (process.env.CHROMIUM) return process.env.CHROMIUM
  for (const name of NAMES) {
    try {
      return execFileSync('which', [name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    } catch {
      // not under this name
    }
  }
  return undefined
}

/** Starts Chromium; says why where there is none. */
export const startChromium = async (): Promise<Browser | string> => {
  const executablePath = findChromium()
  if (executablePath === undefined) return 'no Chromium is installed (apt-get install chromium, or set $CHROMIUM)'
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}

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
