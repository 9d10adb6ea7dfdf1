import { execFileSync } from 'node:child_process'
import { type Browser, chromium } from 'playwright-core'

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

const MISSING = 'no Chromium is installed (apt-get install chromium, or set $CHROMIUM)'

const FLAGS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  // Together: a window that shows another page keeps its process, which is half of the CPU time.
  '--disable-site-isolation-trials',
  '--renderer-process-limit=1',
]

/** Why no browser can be started; undefined if one can. */
export const whyNoChromium = (): string | undefined => (findChromium() === undefined ? MISSING : undefined)

/** Starts Chromium; says why where there is none. */
export const startChromium = async (): Promise<Browser | string> => {
  const executablePath = findChromium()
  if (executablePath === undefined) return MISSING
  return chromium.launch({ executablePath, args: FLAGS })
}
