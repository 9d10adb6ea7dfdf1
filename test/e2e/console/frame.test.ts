import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { axe, describeConsole, showAs } from '../../support/console.ts'

const PAGES = ['overview', 'explore', 'recorder', 'memory', 'connect', 'configuration']
const FIRST_LOAD_BYTES = 150_000
/** The sum of layout shifts that users do not notice: https://web.dev/articles/cls counts 0.1 as good. */
const STEADY = 0.02

/** The body of every response of the page, as it travelled; the stream of events has no end. */
const countBytes = (page: Page): (() => Promise<number>) => {
  const sizes: Promise<number>[] = []
  page.on('requestfinished', request => {
    sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize))
  })
  return async () => (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

/** Waits until lists have taken the place of their skeletons, and what they moved has been painted. */
const settle = async (page: Page): Promise<void> => {
  await page.locator('.skeleton-rows').waitFor({ state: 'detached' })
  await page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')
}

const layoutShift = (page: Page): Promise<{ total: number; moved: string[] }> =>
  page.evaluate<{ total: number; moved: string[] }>(`new Promise(done => {
    new PerformanceObserver(list => {
      const entries = list.getEntries()
      done({
        total: entries.reduce((sum, { value }) => sum + value, 0),
        moved: entries.flatMap(({ sources }) => sources.map(({ node }) => node?.className ?? '')),
      })
    }).observe({ type: 'layout-shift', buffered: true })
    setTimeout(() => done({ total: 0, moved: [] }), 100) // an observer without entries is not called
  })`)

describeConsole('the frame of the console', site => {
  test('the list of keys names each key once', async () => {
    const page = await site.openConsole('explore/demo/tools')
    await page.getByRole('listbox', { name: 'Tools' }).waitFor()
    await page.keyboard.press('?')
    const keys = await page.getByRole('dialog').locator('dt').allTextContents()
    expect(keys).toContain('j')
    expect(keys).toEqual([...new Set(keys)])
  })

  test.each(PAGES)('%s: light and dark, wide and narrow, without a violation, an overflow or a shift', async id => {
    let loaded = async (): Promise<number> => 0
    const page = await site.openConsole(id, {
      isSingleUse: true, // its cache is empty
      prepare: async own => {
        loaded = countBytes(own)
        return undefined
      },
    })
    await settle(page)
    const bytes = await loaded()
    expect(bytes).toBeGreaterThan(20_000)
    expect(bytes).toBeLessThanOrEqual(FIRST_LOAD_BYTES)
    const { total, moved } = await layoutShift(page)
    expect(total, moved.join(', ')).toBeLessThan(STEADY)
    expect(await axe(page)).toEqual([])
    await showAs(page, 'dark', 400)
    expect(await axe(page)).toEqual([])
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(400)
  })
})
