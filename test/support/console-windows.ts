import type { Browser, BrowserContext, Page } from 'playwright-core'

export interface WindowOptions {
  readonly theme: 'light' | 'dark'
  readonly width: number
  readonly height: number
  readonly headers: Readonly<Record<string, string>>
  readonly javaScript: boolean
}

/** A window of the browser: a context with one page. */
export interface TestWindow {
  readonly context: BrowserContext
  readonly page: Page
  /** It is closed after its test: something in it cannot be undone. */
  readonly isSingleUse: boolean
}

/** Windows of this worker that no test uses. To open another one takes four times the CPU time of a load in an open one. */
const idle: TestWindow[] = []

export const takeWindow = async (
  browser: Browser,
  { theme, width, height, headers, javaScript }: WindowOptions,
  isSingleUse: boolean,
): Promise<TestWindow> => {
  const media = { colorScheme: theme, reducedMotion: 'reduce' } as const
  const viewport = { width, height }
  const known = javaScript && !isSingleUse ? idle.pop() : undefined
  if (known) {
    const { context, page } = known
    await Promise.all([
      context.setExtraHTTPHeaders(headers),
      page.setViewportSize(viewport),
      page.emulateMedia(media),
      page.mouse.move(0, 0),
    ])
    return known
  }
  const context = await browser.newContext({
    viewport,
    ...media,
    javaScriptEnabled: javaScript,
    extraHTTPHeaders: headers,
  })
  context.setDefaultTimeout(25_000)
  return { context, page: await context.newPage(), isSingleUse: isSingleUse || !javaScript }
}

/** Takes a window back: without what the test left in it, or not at all. */
export const returnWindow = async (window: TestWindow): Promise<void> => {
  if (window.isSingleUse || !(await isCleared(window).catch(() => false))) await window.context.close()
  else idle.push(window)
}

const isCleared = async ({ context, page }: TestWindow): Promise<boolean> => {
  if (page.isClosed()) return false
  for (const name of ['console', 'pageerror', 'request']) page.removeAllListeners(name) // others are Playwright's own
  const others = context.pages().filter(each => each !== page)
  await Promise.all([
    page.unrouteAll({ behavior: 'ignoreErrors' }),
    context.unrouteAll({ behavior: 'ignoreErrors' }),
    context.clearCookies(),
    context.clearPermissions(),
    page.evaluate(`if (origin !== 'null') localStorage.clear(), sessionStorage.clear()`),
    ...others.map(each => each.close()),
  ])
  // Its streams end, and so does a draft that the user would be asked about.
  await page.goto('about:blank')
  return true
}
