import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { axe, type ConsoleSite, describeConsole } from '../../support/console.ts'
import { longestDelay, RESPONSIVE_MS } from '../../support/longest-delay.ts'

const SMALL = fileURLToPath(new URL('../../support/servers/stdio/server.mjs', import.meta.url))
const small = (stderr: string) => ({ command: process.execPath, args: [SMALL, JSON.stringify({ stderr })] })
const SERVERS = {
  demo: { builtin: 'demo' },
  memory: { builtin: 'memory' },
  small: small('hello from the server'),
  away: { url: 'http://127.0.0.1:1/mcp' },
  off: { builtin: 'demo', disabled: true },
}
const CONFIG = {
  mcpServers: SERVERS,
  workspaces: { code: { servers: ['small', 'demo'] }, demo: { servers: ['demo'] } },
}

const rowOf = (page: Page, name: string) => page.getByRole('row').filter({ has: page.getByText(name, { exact: true }) })
const pane = (page: Page, name: string) => page.getByRole('region', { name: `Server ${name}` })
const post = (site: ConsoleSite, path: string, body: object = {}) =>
  fetch(`${site.origin}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

describeConsole(
  'the page Overview',
  site => {
    test('shows every server with its state, and a call as it happens', async () => {
      const page = await site.openConsole('overview')
      await rowOf(page, 'small').getByText('Ready').waitFor()
      expect(await rowOf(page, 'small').textContent()).toContain('stdio')
      await rowOf(page, 'away').getByText('Down').waitFor()
      expect(await rowOf(page, 'away').textContent()).toMatch(/127\.0\.0\.1:1/)
      await rowOf(page, 'off').getByText('Disabled').waitFor()
      const called = await post(site, 'actions/demo/example-ping')
      expect([called.status, await called.text()]).toEqual([200, expect.any(String)])
      await expect.poll(() => rowOf(page, 'demo').textContent(), { timeout: 5000 }).toMatch(/ ms/)
      expect(await axe(page)).toEqual([])
    })

    test('names its counts for what they count: every request to a server, and those of clients that run', async () => {
      const page = await site.openConsole('overview/demo')
      const detail = pane(page, 'demo')
      await detail.getByText(/^\d+ requests?, \d+ errors?$/).waitFor()
      expect(await page.getByRole('columnheader', { name: 'Requests' }).count()).toBe(1)
      expect(await page.locator('.totals dt').allTextContents()).toContain('In progress')
      expect(await page.getByText('Calls', { exact: true }).count()).toBe(0)
    })

    test('a pane shows the figures, workspaces, stderr and log of a server, and closes with Esc', async () => {
      const page = await site.openConsole('overview')
      await rowOf(page, 'small').click()
      const detail = pane(page, 'small')
      await detail.getByText('2025-11-25 (legacy)').waitFor()
      await detail.getByRole('log').getByText('hello from the server').first().waitFor()
      await detail.getByRole('link', { name: 'code' }).waitFor()
      expect(page.url()).toContain('#/overview/small')
      expect(await page.title()).toBe('small · Overview · Dragoman')
      expect(await axe(page)).toEqual([])
      await page.keyboard.press('Escape')
      await detail.waitFor({ state: 'detached' })
    })

    test('the keyboard alone moves through the servers, searches and opens', async () => {
      const page = await site.openConsole('overview')
      await rowOf(page, 'demo').waitFor()
      await page.keyboard.press('j')
      await pane(page, 'demo').waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('stdio')
      await expect.poll(() => page.getByRole('row').count()).toBe(2)
      expect(page.url()).toContain('q=stdio')
    })

    test('the owner stops, starts and restarts a server, and is told how long that lasts', async () => {
      const page = await site.openConsole('overview/small')
      const detail = pane(page, 'small')
      await detail.getByRole('button', { name: 'Stop' }).click()
      await page.getByText('until the gateway restarts').waitFor()
      expect(await axe(page)).toEqual([])
      await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
      await rowOf(page, 'small').getByText('Stopped').waitFor()
      await detail.getByText('stopped by the owner').waitFor()
      const focused = () => page.evaluate<string>('document.activeElement.textContent')
      await expect.poll(focused).toBe('Start')
      await page.keyboard.press('Enter')
      await rowOf(page, 'small').getByText('Ready').waitFor()
      await expect.poll(focused).toBe('Restart')
      await detail.getByRole('button', { name: 'Restart' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Restart' }).click()
      await page.getByText('“small” restarts').waitFor()
      await rowOf(page, 'small').getByText('Ready').waitFor()
    })

    test('a server that is down is tried again at once, and says that it still is', async () => {
      const page = await site.openConsole('overview/away')
      const detail = pane(page, 'away')
      await detail.getByText('The gateway tries again').waitFor()
      expect(await axe(page)).toEqual([])
      await detail.getByRole('button', { name: 'Try again now' }).click()
      await page.getByText('“away” is still down').waitFor()
    })

    test('the endpoints of servers answer every wrong request', async () => {
      const statusOf = async (path: string) => {
        const answer = await post(site, `admin/servers/${path}`)
        return [answer.status, ((await answer.json()) as { error?: { message: string } }).error?.message]
      }
      expect(await statusOf('smal/stop')).toEqual([404, expect.stringContaining('"small"')])
      expect(await statusOf('demo/start')).toEqual([409, 'Server "demo" is not stopped'])
      expect(await statusOf('off/stop')).toEqual([409, 'Server "off" is stopped already'])
      expect(await statusOf('off/restart')).toEqual([409, expect.stringContaining('start it instead')])
      expect(await statusOf('demo/retry')).toEqual([409, expect.stringContaining('is ready')])
      expect((await fetch(`${site.origin}/admin/servers/demo/stop`, { method: 'POST' })).status).toBe(403)
    })

    test('a server that is disabled in the configuration can be started', async () => {
      expect((await post(site, 'admin/servers/off/start')).status).toBe(200)
      const page = await site.openConsole('overview')
      await rowOf(page, 'off').getByText('Ready').waitFor()
      expect((await post(site, 'admin/servers/off/stop')).status).toBe(200)
      await rowOf(page, 'off').getByText('Disabled').waitFor()
    })

    test('a viewer sees everything, and the buttons say why they do nothing', async () => {
      const page = await site.openConsole('overview/small', { as: 'viewer' })
      const stop = pane(page, 'small').getByRole('button', { name: 'Stop' })
      await stop.waitFor()
      expect([await stop.isDisabled(), await stop.getAttribute('title')]).toEqual([
        true,
        expect.stringContaining('dragoman console'),
      ])
      await pane(page, 'small').getByText('shown to the owner').waitFor()
      expect(await axe(page)).toEqual([])
    })

    test('the workspaces have their URL, and lead to their servers', async () => {
      const page = await site.openConsole('overview?tab=workspaces')
      await rowOf(page, 'code').getByText(`${site.origin}/mcp/code`).waitFor()
      expect(await axe(page)).toEqual([])
      await rowOf(page, 'code').getByRole('button', { name: 'Copy the URL' }).click()
      expect(page.url()).toContain('tab=workspaces')
      await rowOf(page, 'code').click()
      await rowOf(page, 'small').waitFor()
      expect(await page.getByRole('row').count()).toBe(3)
    })

    test('a server that disappears while its pane is open leaves a note', async () => {
      const page = await site.openConsole('overview/memory')
      await pane(page, 'memory').getByText('built-in').first().waitFor()
      const { memory: _, ...rest } = SERVERS
      await writeFile(site.file, JSON.stringify({ ...CONFIG, mcpServers: rest, limits: { shutdownMs: 200 } }))
      expect((await post(site, 'admin/reload')).status).toBe(200)
      await page.getByRole('heading', { name: 'There is no server “memory”' }).waitFor()
      expect(await axe(page)).toEqual([])
      await page.getByRole('button', { name: 'Close', exact: true }).click()
      await rowOf(page, 'demo').waitFor()
      expect(await rowOf(page, 'memory').count()).toBe(0)
    })

    test('a narrow window shows the same, and the pane covers the table', async () => {
      const page = await site.openConsole('overview', { width: 400, theme: 'dark' })
      await rowOf(page, 'small').click()
      await pane(page, 'small').waitFor()
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(400)
      expect(await axe(page)).toEqual([])
    })
  },
  { config: CONFIG },
)

describe('a gateway that restarts', () => {
  describeConsole('leaves the page Overview open', site => {
    test('the page says that the gateway is away, connects again and shows the new one', async () => {
      site.allow(/ERR_|Failed to load|401|502/)
      const port = Number(new URL(site.origin).port)
      const page = await site.openConsole('overview', { as: 'viewer' })
      await rowOf(page, 'demo').getByText('Ready').waitFor()
      await site.gateway.close()
      await page.getByText('The gateway does not answer.').waitFor()
      expect(await axe(page)).toEqual([])
      const value = { mcpServers: { newcomer: { builtin: 'demo' } } }
      const next = await startGateway(await loadConfig({ value, env: {}, flags: { port } }), { log: SILENT })
      try {
        await page.getByText('The gateway was restarted').waitFor({ timeout: 20_000 })
        await rowOf(page, 'newcomer').getByText('Ready').waitFor()
        await page.getByText('The gateway does not answer.').waitFor({ state: 'detached' })
      } finally {
        await page.goto('about:blank') // its streams end
        await next.close()
      }
    })
  })
})

describe('a thousand events a second', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'dragoman-noisy-'))
    // It begins to write once it was called, and answers as the small server does.
    await writeFile(
      join(folder, 'noisy.mjs'),
      `let count = 0
      setTimeout(() => setInterval(() => {
        for (let at = 0; at < 25; at++) process.stderr.write('line ' + count++ + ' of a server that writes too much\\n')
      }, 25), 500)
      process.argv.splice(2, Infinity, '{}')
      await import(${JSON.stringify(`file://${SMALL}`)})\n`,
    )
  })
  afterAll(() => rm(folder, { recursive: true }))
  describeConsole(
    'leave the page Overview quick',
    site => {
      test('interactions take less than 100 ms to the next paint', async () => {
        const page = await site.openConsole('overview/noisy')
        const log = pane(page, 'noisy').getByRole('log')
        await log
          .getByText(/line \d{3,}/)
          .first()
          .waitFor()
        const seen = async () => Number(/line (\d+)/.exec((await log.textContent()) ?? '')?.[1] ?? 0)
        const before = await seen()
        const use = async () => {
          for (let at = 0; at < 6; at++) await page.keyboard.press(at % 2 === 0 ? 'k' : 'j')
          await page.keyboard.press('/')
          await page.keyboard.type('noisy')
          await page.keyboard.press('Escape')
        }
        expect(await longestDelay(page, [use])).toBeLessThan(RESPONSIVE_MS)
        await page.goto(`${site.origin}/#/overview/noisy`)
        await log.waitFor()
        await expect.poll(seen, { timeout: 20_000 }).toBeGreaterThan(before + 1000)
        expect(await log.locator('.log-line').count()).toBeLessThanOrEqual(300)
      })
    },
    {
      config: () => ({
        mcpServers: {
          demo: { builtin: 'demo' },
          noisy: { command: process.execPath, args: [join(folder, 'noisy.mjs')] },
        },
      }),
    },
  )
})
