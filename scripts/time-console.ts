/** Measures how quickly the console answers with 10,000 tools and 10,000 recordings, for docs/console.md. `npm run build` first. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { startChromium } from '../test/support/chromium.ts'
import { exhibit } from '../test/support/exhibit-server.ts'
import { freePort } from '../test/support/free-port.ts'
import { scriptedServer } from '../test/support/scripted-server.ts'

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))
const MAIN = path('../dist/main.js')
const PAGE = path('../docs/console.md')
const MARKS = ['<!-- begin: scripts/time-console.ts -->', '<!-- end -->'] as const

const MANY = 10_000
const AT_ONCE = 200 // calls a second: fewer than the recorder leaves out
const ROUNDS = 5
const SETTLE_MS = 400 // after an input: it is timed when its frame is shown
const MOST_MS = 100

const schema = { type: 'object', properties: { text: { type: 'string' } } }
const tools = Array.from({ length: MANY }, (_, at) => ({
  definition: { name: `tool_${at}`, description: `Does thing ${at}`, inputSchema: schema },
  run: { content: [{ type: 'text', text: 'done' }] },
}))

interface Daemon {
  readonly child: ChildProcess
  readonly origin: string
  readonly secret: string
}

const startDaemon = async (folder: string, server: string): Promise<Daemon> => {
  const [file, data, port] = [join(folder, 'dragoman.json'), join(folder, 'data'), await freePort()]
  writeFileSync(file, JSON.stringify({ mcpServers: { many: { url: server } } }))
  mkdirSync(data)
  const args = [MAIN, 'serve', '--config', file, '--data', data, '--port', String(port)]
  const child = spawn(process.execPath, args, { stdio: 'ignore' })
  const origin = `http://127.0.0.1:${port}`
  for (let tries = 0; tries < 100; tries++) {
    if (
      await fetch(`${origin}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      break
    await sleep(200)
  }
  const { token } = JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { token: string }
  return { child, origin, secret: token }
}

const MODERN = '2026-07-28'
const callTool = async (origin: string, at: number): Promise<void> => {
  const name = `tool_${at}`
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': MODERN,
    'mcp-method': 'tools/call',
    'mcp-name': name,
  }
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'time-console', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const params = { name, arguments: { text: 'hello' }, _meta: meta }
  const body = JSON.stringify({ jsonrpc: '2.0', id: at, method: 'tools/call', params })
  const response = await fetch(`${origin}/mcp`, { method: 'POST', headers, body })
  if (!(await response.text()).includes('done')) throw new Error(`call ${at} was answered ${response.status}`)
}

const record = async (origin: string): Promise<void> => {
  for (let at = 0; at < MANY; at += AT_ONCE) {
    const second = sleep(1000)
    await Promise.all(Array.from({ length: AT_ONCE }, (_, of) => callTool(origin, at + of)))
    await second
  }
}

/** The page keeps the time from each input to the frame that shows its effect, as the browser measures it: in steps of 8 ms. */
const OBSERVE = `
  globalThis.inputs = []
  new PerformanceObserver(list => {
    for (const { interactionId, name, duration } of list.getEntries()) if (interactionId) inputs.push({ interactionId, name, duration })
  }).observe({ type: 'event', durationThreshold: 16, buffered: true })
`

interface Timed {
  readonly interactionId: number
  readonly duration: number
}

const open = async (browser: Browser, { origin, secret }: Daemon, place: string): Promise<Page> => {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    extraHTTPHeaders: { authorization: `Bearer ${secret}` },
  })
  const page = await context.newPage()
  await page.addInitScript(OBSERVE)
  await page.goto(`${origin}/#/${place}`)
  return page
}

// Each changes something: an input that does not is timed until the frame of the next one that does.
type Act = (page: Page) => Promise<unknown>
const press =
  (key: string): Act =>
  page =>
    page.keyboard.press(key)

const EXPLORE: readonly Act[] = [
  ...['j', 'j', 'End', 'Home', '/'].map(press),
  ...[...'thing 99'].map(press),
  ...['ArrowDown', 'Escape', 'Escape'].map(press),
  page => page.getByRole('option', { name: /tool_/ }).nth(3).click(),
]
const RECORDER: readonly Act[] = [
  ...['j', 'j', 'k', 'End', 'Home', 'PageDown', '/'].map(press),
  ...[...'tool_99'].map(press),
  press('Escape'),
  page => page.getByRole('grid', { name: 'Exchanges' }).getByRole('row').nth(4).click(),
]

const time = async (page: Page, acts: readonly Act[]): Promise<number[]> => {
  const durations: number[] = []
  for (let round = 0; round < ROUNDS; round++)
    for (const act of acts) {
      await page.evaluate('inputs.length = 0')
      await act(page)
      await sleep(SETTLE_MS)
      const timed = (await page.evaluate('inputs')) as readonly Timed[]
      durations.push(Math.max(0, ...timed.map(({ duration }) => duration)))
    }
  await page.context().close()
  return durations.sort((a, b) => a - b)
}

const at = (sorted: readonly number[], share: number): string => {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return value === 0 ? '< 16 ms' : `${value} ms`
}

const row = (what: string, durations: readonly number[]): string => {
  const verdict = (durations.at(-1) ?? Number.NaN) < MOST_MS ? 'met' : '**missed**'
  return `| ${what} | ${durations.length} | ${at(durations, 0.5)} | ${at(durations, 0.98)} | ${at(durations, 1)} | ${verdict} |`
}

const publish = (rows: readonly string[]): void => {
  const text = readFileSync(PAGE, 'utf8')
  const [before, after] = [text.split(MARKS[0])[0], text.split(MARKS[1])[1]]
  const day = new Date().toISOString().slice(0, 10)
  const machine = `${day}, ${cpus().length} cores, headless Chromium without a graphics card`
  const head = [
    '| page | inputs | half within | 98 % within | longest | < 100 ms |',
    '| --- | --: | --: | --: | --: | --- |',
  ]
  writeFileSync(PAGE, `${before}${MARKS[0]}\n\n${machine}:\n\n${[...head, ...rows].join('\n')}\n\n${MARKS[1]}${after}`)
}

const folder = mkdtempSync(join(tmpdir(), 'dragoman-times-'))
const browser = await startChromium()
if (typeof browser === 'string') throw new Error(browser)
const server = await scriptedServer(exhibit({ tools }))
const daemon = await startDaemon(folder, `${server.url}`)
try {
  await record(daemon.origin)
  const explore = await open(browser, daemon, 'explore/many/tools')
  await explore.getByRole('tab', { name: /^Tools 10k$/ }).waitFor()
  const recorder = await open(browser, daemon, 'recorder')
  await recorder.getByRole('grid', { name: 'Exchanges' }).getByRole('row').nth(3).waitFor()
  const rows = [
    row('Explore, 10,000 tools', await time(explore, EXPLORE)),
    row('Recorder, 10,000 exchanges', await time(recorder, RECORDER)),
  ]
  publish(rows)
  console.log(rows.join('\n'))
} finally {
  await browser.close()
  await server.close()
  daemon.child.kill()
  rmSync(folder, { recursive: true, force: true })
}
