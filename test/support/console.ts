import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AxeResults } from 'axe-core'
import type { Browser, Disposable, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest'
import type { Gateway } from '../../src/app/gateway.ts'
import { startChromium, whyNoChromium } from './chromium.ts'
import { returnWindow, type TestWindow, takeWindow } from './console-windows.ts'
import { startWithFile } from './file-gateway.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Without what is not reported here: selectors, frames, and a second load of the styles, which no rule of these tags reads. */
const AXE_OPTIONS = JSON.stringify({
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  resultTypes: ['violations'],
  selectors: false,
  iframes: false,
  preload: false,
})

/** One browser for all files of this worker. It ends with the process: Chromium exits when its pipe is closed. */
let started: Promise<Browser> | undefined
const sharedBrowser = (): Promise<Browser> => {
  started ??= startChromium().then(browser => {
    if (typeof browser === 'string') throw new Error(browser)
    return browser
  })
  return started
}

const DEMO_CONFIG = { mcpServers: { demo: { builtin: 'demo' }, memory: { builtin: 'memory' } } }

export interface ConsoleSiteOptions {
  /** The configuration file; by default the built-in demo and memory. */
  readonly config?: object | (() => object)
  /** Runs before the gateway starts, with its data directory. */
  readonly prepare?: ((data: string) => Promise<void>) | undefined
}

interface OpenOptions {
  readonly theme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
  /** `owner` may change things; `viewer` is a user of this machine without a token. */
  readonly as?: 'owner' | 'viewer'
  readonly javaScript?: boolean
  /** Runs before the page is loaded: to answer some of its requests, for example. What it returns is disposed of after the test. */
  readonly prepare?: (page: Page) => Promise<Disposable | undefined>
  /** The window is closed after the test. For changes of it that cannot be undone, such as another clock. */
  readonly isSingleUse?: boolean
}

/** A gateway with the console, for the tests of one file. */
export interface ConsoleSite {
  readonly gateway: Gateway
  readonly origin: string
  readonly folder: string
  readonly file: string // the configuration
  readonly data: string
  /** Opens a place such as `overview/demo?tab=log` in a window of its own and waits until the page is shown. */
  openConsole(path: string, options?: OpenOptions): Promise<Page>
  /** Console messages and requests that match are no failure of the current test. */
  allow(pattern: RegExp): void
}

/**
 * Tests of the console: `describe` with a gateway, skipped with a clear line where no browser is installed. A test fails on
 * errors in the browser's console (violations of the policy are among them), on exceptions, and on requests to other origins.
 */
export const describeConsole = (
  name: string,
  run: (site: ConsoleSite) => void,
  options: ConsoleSiteOptions = {},
): void => {
  const why = whyNoChromium()
  describe.skipIf(why !== undefined)(why === undefined ? name : `${name} (skipped: ${why})`, () => {
    let site: Started | undefined
    beforeAll(async () => {
      site = await startSite(await sharedBrowser(), options)
    })
    afterEach(async () => {
      const problems = (await site?.endTest()) ?? []
      expect(problems).toEqual([])
    })
    afterAll(() => site?.close())
    const current = (): Started => {
      if (!site) throw new Error('the console of this file has not started: use it in tests and hooks only')
      return site
    }
    run({
      get gateway() {
        return current().gateway
      },
      get origin() {
        return current().gateway.origin
      },
      get folder() {
        return current().folder
      },
      get file() {
        return current().file
      },
      get data() {
        return current().data
      },
      openConsole: (...args) => current().openConsole(...args),
      allow: pattern => current().allow(pattern),
    })
  })
}

type Started = Awaited<ReturnType<typeof startSite>>

const startSite = async (browser: Browser, { config = DEMO_CONFIG, prepare }: ConsoleSiteOptions) => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-console-'))
  const [file, data] = [join(folder, 'dragoman.json'), folder]
  const given = typeof config === 'function' ? config() : config
  await writeFile(file, JSON.stringify({ limits: { shutdownMs: 200 }, ...given }, undefined, 2))
  await prepare?.(data)
  const gateway = await startWithFile(file, data)
  let windows: TestWindow[] = []
  let disposables: Disposable[] = []
  let problems: string[] = []
  let allowed: RegExp[] = []

  const openConsole = async (path: string, options: OpenOptions = {}): Promise<Page> => {
    const { theme = 'light', width = 1280, height = 800, as = 'owner', javaScript = true, prepare } = options
    // The secret of the process, as the command line sends it.
    const headers: Record<string, string> = as === 'owner' ? { authorization: `Bearer ${gateway.localSecret}` } : {}
    const wanted = { theme, width, height, headers, javaScript }
    const window = await takeWindow(browser, wanted, options.isSingleUse === true)
    windows.push(window)
    const { page } = window
    page.on('console', message => {
      if (message.type() === 'error') problems.push(`${message.text()} (${message.location().url})`)
    })
    page.on('pageerror', error => problems.push(`exception: ${error.stack ?? error.message}`))
    page.on('request', request => {
      const url = request.url()
      if (!url.startsWith(`${gateway.origin}/`) && !/^(data|blob):/.test(url)) problems.push(`request to ${url}`)
    })
    const disposable = await prepare?.(page)
    if (disposable) disposables.push(disposable)
    await page.goto(`${gateway.origin}/#/${path}`)
    if (javaScript) await page.locator('h1').first().waitFor()
    return page
  }

  const returnWindows = async (): Promise<void> => {
    const [used, made] = [windows, disposables]
    ;[windows, disposables] = [[], []]
    await Promise.all(made.map(each => each.dispose()))
    await Promise.all(used.map(returnWindow))
  }

  return {
    gateway,
    folder,
    file,
    data,
    openConsole,
    allow: (pattern: RegExp) => void allowed.push(pattern),
    /** Takes the windows of a test back and returns what went wrong in them. */
    endTest: async (): Promise<string[]> => {
      await returnWindows()
      const found = problems.filter(problem => !allowed.some(pattern => pattern.test(problem)))
      ;[problems, allowed] = [[], []]
      return found
    },
    close: async () => {
      await returnWindows()
      await gateway.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Shows the same page in another theme or width, and waits until its colours have changed. */
export const showAs = async (page: Page, theme: 'light' | 'dark', width?: number): Promise<void> => {
  await page.emulateMedia({ colorScheme: theme })
  if (width !== undefined) await page.setViewportSize({ width, height: 800 })
  // Colours that change in steps, one after the other where they are inherited.
  const isStill = 'new Promise(done => requestAnimationFrame(() => done(document.getAnimations().length === 0)))'
  for (let frame = 0; frame < 200 && !(await page.evaluate<boolean>(isStill)); frame++);
}

/** What axe finds that keeps people from using the page, one line each. */
export const axe = async (page: Page): Promise<string[]> => {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(AXE)
  const violations = await page.evaluate<AxeResults['violations']>(`axe
    .run(document, ${AXE_OPTIONS})
    .then(({ violations }) => violations.filter(({ impact }) => impact === 'serious' || impact === 'critical'))`)
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
  )
}
