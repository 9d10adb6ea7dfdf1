import type { Page } from 'playwright-core'

const MOST_KEYS = 120
const FOCUSED = `(() => {
  const { activeElement: focused } = document
  const label = focused?.getAttribute('aria-label') ?? focused?.labels?.[0]?.textContent
  return (label ?? focused?.textContent ?? '').trim()
})()`

/** Presses a key until what it focuses has this name, as a user without a mouse does. */
export const moveTo = async (page: Page, name: string | RegExp, key = 'Tab'): Promise<void> => {
  const seen: string[] = []
  for (let pressed = 0; pressed < MOST_KEYS; pressed++) {
    const focused = await page.evaluate<string>(FOCUSED)
    if (typeof name === 'string' ? focused === name : name.test(focused)) return
    seen.push(focused.slice(0, 40))
    await page.keyboard.press(key)
  }
  throw new Error(`${key} does not lead to ${String(name)}: ${[...new Set(seen)].join(' | ')}`)
}

/** Moves to a control and activates it. */
export const pressOn = async (page: Page, name: string | RegExp, key = 'Enter'): Promise<void> => {
  await moveTo(page, name)
  await page.keyboard.press(key)
}
