import { signal } from '@preact/signals'

/** `system` follows the setting of the operating system. */
export type Theme = (typeof THEMES)[number]
export const THEMES = ['system', 'light', 'dark'] as const

const KEY = 'dragoman-theme'

const stored = (): Theme => {
  try {
    const value = localStorage.getItem(KEY)
    return THEMES.find(each => each === value) ?? 'system'
  } catch {
    return 'system' // the browser keeps nothing for this page
  }
}

export const theme = signal<Theme>(stored())

/** Styles read the attribute: without one, they follow the system. */
const apply = (): void => {
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
}

export const setTheme = (next: Theme): void => {
  theme.value = next
  apply()
  try {
    localStorage.setItem(KEY, next)
  } catch {
    // it holds until the page is closed
  }
}

/** Whether the page is dark now. */
export const isDark = (): boolean =>
  theme.peek() === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : theme.peek() === 'dark'

export const startTheme = (): void => {
  apply()
  // Another tab has changed it.
  addEventListener('storage', ({ key }) => {
    if (key !== KEY) return
    theme.value = stored()
    apply()
  })
}
