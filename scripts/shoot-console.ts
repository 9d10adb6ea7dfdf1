/** Takes the pictures of docs/images: every page of the console, light and dark, wide and narrow. `npm run build` first. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { startChromium } from '../test/support/chromium.ts'
import { freePort } from '../test/support/free-port.ts'

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))
const MAIN = path('../dist/main.js')
const IMAGES = path('../docs/images')
const EVERYTHING = path('../node_modules/@modelcontextprotocol/server-everything/dist/index.js')

const THEMES = ['light', 'dark'] as const
const SIZES = [
  { width: 1280, height: 800 },
  { width: 400, height: 800 },
]

interface Shot {
  readonly name: string
  readonly place: string // after `#/`
  readonly act?: (page: Page) => Promise<void>
}

const CONFIG = {
  mcpServers: {
    memory: { builtin: 'memory' },
    files: { builtin: 'files', root: '.' },
    demo: { builtin: 'demo' },
    everything: { command: 'node', args: [EVERYTHING] },
    weather: { command: 'node', args: ['-e', "console.error('WEATHER_KEY is not set'); process.exit(3)"] },
  },
}

const MEMORIES = [
  'Ann parked on Elm Street.',
  'Ann works at Northwind since 2024.',
  'Ann moved from Berlin to Lisbon in May 2025.',
  'Ben works at Northwind with Ann.',
  'Northwind makes wind turbines in Porto.',
  'Ben plays chess with Carla on Thursdays.',
]

/** The secret of the gateway, which lets programs of the same user do everything. */
const ownSecret = (data: string): string =>
  (JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { token: string }).token

const startDaemon = async (folder: string): Promise<{ child: ChildProcess; origin: string; secret: string }> => {
  const [file, data, port] = [join(folder, 'dragoman.json'), join(folder, 'data'), await freePort()]
  writeFileSync(file, JSON.stringify(CONFIG, undefined, 2))
  mkdirSync(data)
  const args = [MAIN, 'serve', '--config', file, '--data', data, '--port', String(port)]
  const child = spawn(process.execPath, args, { cwd: folder, stdio: 'ignore' })
  const origin = `http://127.0.0.1:${port}`
  for (let tries = 0; tries < 100; tries++) {
    const ready = await fetch(`${origin}/readyz`).catch(() => undefined)
    const states = ready?.ok ? ((await ready.json()) as { servers: readonly { state: string }[] }).servers : []
    if (states.length > 0 && states.every(({ state }) => state !== 'connecting')) break
    await new Promise(done => setTimeout(done, 300))
  }
  return { child, origin, secret: ownSecret(data) }
}

/** Calls as a user would make them, so that there is something to see. */
const use = async (folder: string, origin: string): Promise<void> => {
  const data = join(folder, 'data')
  const call = (...args: string[]): void => {
    try {
      execFileSync(process.execPath, [MAIN, 'call', ...args, '--data', data], { stdio: 'ignore' })
    } catch {
      // Some of the examples fail on purpose.
    }
  }
  for (const text of MEMORIES)
    await fetch(`${origin}/actions/write_memory`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
    })
  // The charts have a point for each ten seconds.
  for (let round = 0; round < 5; round++) {
    if (round > 0) await new Promise(done => setTimeout(done, 8000))
    for (let i = 1; i <= 3; i++) call('everything/get-sum', `a=${i}`, `b=${round}`, '--revision', '2026-07-28')
    call('demo/example-echo', `message=round ${round}`)
    call('files/list')
  }
  call('demo/test_structured_content', '--task')
  call('demo/test_structured_content')
  call('demo/test_error_handling')
  call('demo/test_elicitation', 'message=Who are you?', '--answer', 'username=ann', '--answer', 'email=ann@example.com')
  call('files/search', 'query=config')
  call('everything/trigger-elicitation-request', '--answer', 'name=Ann', '--revision', '2026-07-28')
}

/** Clients that stay connected while the pictures are taken: without them, the gateway would look unused. */
const stayConnected = async (origin: string, until: AbortSignal): Promise<void> => {
  const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  for (const name of ['editor', 'assistant', 'terminal']) {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '2.1.0' } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    const opened = await fetch(`${origin}/mcp`, { method: 'POST', headers: json, body })
    const session = {
      'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
      'mcp-protocol-version': '2025-11-25',
    }
    await opened.text()
    await fetch(`${origin}/mcp`, { headers: { accept: 'text/event-stream', ...session }, signal: until })
  }
}

const SHOTS: readonly Shot[] = [
  { name: 'overview', place: 'overview' },
  { name: 'overview-server', place: 'overview/weather' },
  {
    name: 'explore',
    place: 'explore/everything/tools/get-structured-content',
    act: async page => {
      await page.locator('.item-detail select').selectOption({ index: 1 })
      await page.getByRole('button', { name: /^Call/ }).click()
      await page.waitForTimeout(1000)
      const roots = page.getByRole('button', { name: /^Send \d root/ }) // asked for by the first call of a session
      if (await roots.isVisible()) await roots.click()
      await page.locator('.result').waitFor()
    },
  },
  { name: 'recorder', place: 'recorder' },
  {
    name: 'recorder-exchange',
    place: 'recorder?method=tools/call&server=everything',
    act: async page => {
      await page.getByText('get-sum').first().click()
      await page.waitForTimeout(1000)
    },
  },
  { name: 'memory', place: 'memory/search?q=where+does+Ann+work' },
  { name: 'memory-timeline', place: 'memory/timeline' },
  {
    name: 'memory-entity',
    place: 'memory/search?q=Ann',
    act: async page => {
      await page.locator('section[aria-label="Entities"] .memory-result').first().click()
      await page.waitForTimeout(700)
    },
  },
  { name: 'memory-graph', place: 'memory/graph' },
  { name: 'connect', place: 'connect/clients/cursor' },
  { name: 'connect-tokens', place: 'connect/tokens' },
  { name: 'connect-logins', place: 'connect/logins' },
  { name: 'configuration', place: 'configuration/servers/everything' },
]

/** Shows names of an example instead of those of this machine. */
const anonymize = (page: Page, names: readonly (readonly [string, string])[]): Promise<void> =>
  page.evaluate(pairs => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      for (const [from, to] of pairs)
        if (node.nodeValue?.includes(from)) node.nodeValue = node.nodeValue.replaceAll(from, to)
    for (const field of document.querySelectorAll<HTMLInputElement>('input, textarea'))
      for (const [from, to] of pairs) field.value = field.value.replaceAll(from, to)
  }, names)

const shoot = async (browser: Browser, origin: string, secret: string): Promise<void> => {
  const names = [
    [folder, '/home/ann'],
    [path('..'), '/home/ann/'],
    [homedir(), '/home/ann'],
    [`${hostname()}, user ${userInfo().username}`, 'laptop, user ann'],
    [new URL(origin).port, '8765'],
  ] as const
  for (const colorScheme of THEMES)
    for (const viewport of SIZES)
      for (const { name, place, act } of SHOTS) {
        const context = await browser.newContext({
          viewport,
          colorScheme,
          reducedMotion: 'reduce',
          extraHTTPHeaders: { authorization: `Bearer ${secret}` },
        })
        const page = await context.newPage()
        await page.goto(`${origin}/#/${place}`)
        await page.locator('h1').first().waitFor()
        await page.waitForTimeout(1500)
        await act?.(page).catch((error: unknown) => process.stderr.write(`${name}: ${String(error).split('\n')[0]}\n`))
        await anonymize(page, names)
        await page.screenshot({ path: join(IMAGES, `${name}-${colorScheme}-${viewport.width}.png`) })
        await context.close()
      }
}

const folder = mkdtempSync(join(tmpdir(), 'dragoman-images-'))
const browser = await startChromium()
if (typeof browser === 'string') throw new Error(browser)
const { child, origin, secret } = await startDaemon(folder)
const leaving = new AbortController()
try {
  mkdirSync(IMAGES, { recursive: true })
  await use(folder, origin)
  await stayConnected(origin, leaving.signal)
  await shoot(browser, origin, secret)
} finally {
  leaving.abort()
  await browser.close()
  child.kill()
  rmSync(folder, { recursive: true, force: true })
}
