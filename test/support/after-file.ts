import { afterAll, vi } from 'vitest'

// Files of one worker share its globals: with fake timers left behind, the next file would wait for ever.
afterAll(() => {
  vi.useRealTimers()
})
