import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { connectV2 } from '../../support/client-v2.ts'
import { axe, type ConsoleSite, describeConsole, showAs } from '../../support/console.ts'
import { longestDelay, pressesOf, RESPONSIVE_MS } from '../../support/longest-delay.ts'
import {
  createFakeRecorder,
  emitRecordings,
  type FakeRecorder,
  fakeRecordings,
  manySummaries,
  recordingWith,
} from '../../support/recordings.ts'

const STDIO = fileURLToPath(new URL('../../support/servers/stdio/server.mjs', import.meta.url))
const config = {
  mcpServers: { legacy: { command: process.execPath, args: [STDIO, '{}'] }, demo: { builtin: 'demo' } },
}

const rowsIn = (page: Page) => page.getByRole('grid', { name: 'Exchanges' }).getByRole('row')
const rowOf = (page: Page, text: string | RegExp) => rowsIn(page).filter({ hasText: text }).first()

describeConsole(
  'the recorder with a real gateway',
  site => {
    const connect = () => connectV2('SDK v2 modern', { url: site.gateway.url('default') })

    test('a modern client, a legacy server that asks: both dialects, the marks and the reasons', async () => {
      const client = await connect()
      const page = await site.openConsole('recorder')
      const { content } = await client.call('legacy__ask', { secret: 'hunter2' })
      expect(JSON.stringify(content)).toContain('accept')
      await rowOf(page, 'Asked').click()

      const body = page.getByRole('group', { name: 'Messages', exact: true })
      await body.getByRole('heading', { name: /Client test-client-v2/ }).waitFor()
      expect(await body.getByRole('heading', { name: /^Client/ }).textContent()).toMatch(/2026-07-28 stateless/)
      expect(await body.getByRole('heading', { name: /^Server/ }).textContent()).toMatch(/legacy2025-11-25 stdio/)

      const call = body.getByRole('region', { name: 'tools/call to the server' })
      const lines = call.locator('.rec-line')
      expect(await lines.filter({ hasText: '"name": "legacy__ask"' }).textContent()).toMatch(/legacy__ask.*"ask"/)
      expect(await lines.filter({ hasText: '/clientCapabilities' }).locator('.rec-removed').count()).toBeGreaterThan(0)
      const reasons = call.getByRole('list', { name: 'Why it was changed' })
      expect(await reasons.textContent()).toMatch(/learns the capabilities of the client once, in the handshake/)
      expect(await reasons.textContent()).toMatch(/legacy has its own name for it/)
      expect(await call.textContent()).not.toContain('hunter2')

      const question = body.getByRole('region', { name: /to the client/ }).filter({ hasText: 'elicitation/create' })
      expect(await question.textContent()).toContain('input_required')
      expect(await question.textContent()).toContain('moved params → result.inputRequests')
      expect(await question.textContent()).toContain('[legacy] ')
      expect(await question.textContent()).not.toContain('Changed by the gateway.')
      expect(await question.textContent()).toContain('HTTP 200')
      await question.getByRole('button', { name: 'Headers', exact: true }).click()
      await question.getByRole('row', { name: 'HTTP status 200' }).waitFor()
      expect(await axe(page)).toEqual([])

      await page.getByRole('link', { name: /exchange with the answers/ }).click()
      const answer = body.getByRole('region', { name: 'tools/call to the server' })
      await answer.getByText('moved params.inputResponses').first().waitFor()
      expect(await answer.textContent()).toContain('the tool runs once')
      await client.close()
    })

    test('new exchanges appear, search finds the text of messages, and filters are in the address', async () => {
      const client = await connect()
      const page = await site.openConsole('recorder')
      await client.call('legacy__echo', { text: 'a needle in a haystack' })
      await rowOf(page, 'legacy__echo').waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('needle in')
      await expect.poll(() => rowsIn(page).count()).toBe(2) // the head, and one exchange
      expect(page.url()).toContain('search=needle+in')
      await page.keyboard.press('Escape')
      await expect.poll(() => rowsIn(page).count()).toBeGreaterThan(2)

      await client.call('demo__echo', { message: 'same' }).catch(() => undefined)
      await page.getByRole('combobox', { name: 'All methods' }).selectOption('tools/call')
      await page.getByRole('switch', { name: 'Translated' }).click()
      await expect.poll(() => page.url()).toContain('method=tools%2Fcall&translated=yes')
      await expect.poll(() => rowsIn(page).filter({ hasText: 'demo__' }).count()).toBe(0)
      const again = await site.openConsole(new URL(page.url()).hash.slice(2))
      await rowOf(again, 'legacy__echo').waitFor()
      expect(await rowsIn(again).filter({ hasText: 'tools/list' }).count()).toBe(0)
      await client.close()
    })

    test('the recorder is switched off and on, and cleared', async () => {
      const client = await connect()
      const page = await site.openConsole('recorder')
      await client.call('legacy__echo', { text: 'x' })
      await rowOf(page, 'legacy__echo').waitFor()
      await page.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem', { name: 'Clear …' }).click()
      await page.getByRole('button', { name: 'Clear', exact: true }).click()
      await page.getByRole('heading', { name: 'Nothing recorded yet' }).waitFor()
      await page.getByRole('switch', { name: 'Record' }).click()
      await page.getByRole('heading', { name: 'The recorder is off' }).waitFor()
      await client.call('legacy__echo', { text: 'not recorded' })
      await page.getByRole('button', { name: 'Switch it on' }).click()
      await page.getByRole('heading', { name: 'Nothing recorded yet' }).waitFor()
      await client.call('legacy__echo', { text: 'recorded' })
      await rowOf(page, 'legacy__echo').waitFor()
      expect(await rowsIn(page).count()).toBe(2)
      await client.close()
    })

    test('an exchange is saved as a file', async () => {
      const client = await connect()
      await client.call('legacy__echo', { text: 'to be saved' })
      const page = await site.openConsole('recorder')
      await rowOf(page, 'legacy__echo').click()
      const saved = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Export' }).click()
      const download = await saved
      expect(download.suggestedFilename()).toMatch(/^recording-.*\.jsonl$/)
      expect(await page.getByRole('link', { name: 'Call again' }).getAttribute('href')).toBe(
        '#/explore/default/tools/legacy__echo',
      )
      await client.close()
    })

    test('a viewer sees which calls were made, and how to become the owner', async () => {
      const client = await connect()
      await client.call('legacy__echo', { text: 'private' })
      const page = await site.openConsole('recorder', { as: 'viewer' })
      expect(await page.getByRole('switch', { name: 'Record' }).isDisabled()).toBe(true)
      await rowOf(page, 'legacy__echo').click()
      await page.getByRole('heading', { name: 'Only the owner sees messages' }).waitFor()
      expect(await page.locator('main').textContent()).toContain('dragoman console')
      await page.keyboard.press('Escape')
      await client.close()
    })
  },
  { config },
)

describeConsole('the recorder with many exchanges', site => {
  const open = (recorder: FakeRecorder, path = 'recorder', options: Parameters<ConsoleSite['openConsole']>[1] = {}) =>
    site.openConsole(path, { ...options, prepare: page => fakeRecordings(page, recorder) })

  test('says how many exchanges of bursts were not recorded', async () => {
    const page = await open({ ...createFakeRecorder(manySummaries(30)), skipped: 1234 })
    await page.getByText('1,234 exchanges of bursts not recorded').waitFor()
  })

  test('10,000 exchanges: scrolling and moving by keys stay responsive', async () => {
    const page = await open(createFakeRecorder(manySummaries(10_000)))
    await rowOf(page, 'tool_10000').waitFor()
    expect(await longestDelay(page, pressesOf(page, ['j', 'j', 'End', 'Home', 'PageDown', 'k']))).toBeLessThan(
      RESPONSIVE_MS,
    )
    // The end of what is loaded brings more, until all are there.
    const grid = page.getByRole('grid', { name: 'Exchanges' })
    const pressEnd = async (): Promise<string | null> => {
      await page.keyboard.press('End')
      return grid.getAttribute('aria-rowcount')
    }
    await expect.poll(pressEnd, { timeout: 30_000, interval: 5 }).toBe('10001')
    expect(await rowsIn(page).count()).toBeLessThan(100)
    expect(await longestDelay(page, pressesOf(page, ['Home', 'End', 'k', 'k', 'PageUp']))).toBeLessThan(RESPONSIVE_MS)
  })

  test('1,000 events a second: the list follows, and keys stay responsive', async () => {
    const page = await open(createFakeRecorder(manySummaries(200)))
    await rowOf(page, 'tool_200').waitFor()
    const events = Array.from({ length: 20 }, (_, at) => manySummaries(50, 200 + at * 50).reverse())
    await page.evaluate(`globalThis.events = ${JSON.stringify(events)}`)
    const sent = page.evaluate(`new Promise(done => {
      const timer = setInterval(() => {
        const next = events.shift()
        if (next) return emit('recording', next)
        clearInterval(timer)
        done()
      }, 50)
    })`)
    const keys = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? 'j' : 'k'))
    expect(await longestDelay(page, pressesOf(page, keys))).toBeLessThan(RESPONSIVE_MS)
    await sent
    // The selected row has moved down, and the list with it: the rest waits behind the button.
    const grid = page.getByRole('grid', { name: 'Exchanges' })
    await grid.evaluate(element => element.scrollTo(0, 0))
    await expect
      .poll(async () => {
        const more = page.getByRole('button', { name: / new$/ })
        if (await more.isVisible()) await more.click()
        return grid.getAttribute('aria-rowcount')
      })
      .toBe('1201')
    await rowOf(page, 'tool_1200').waitFor()
  })

  test('the list waits while it is paused or scrolled, and changes rows in place', async () => {
    const page = await open(createFakeRecorder(manySummaries(300)))
    await rowOf(page, 'tool_300').waitFor()
    await page.keyboard.press('p')
    const [newest, second] = manySummaries(2, 299)
    await emitRecordings(page, [
      { ...newest, subject: 'fresh' },
      { ...second, outcome: 'denied' },
    ] as never)
    await page.getByRole('button', { name: '1 new' }).waitFor()
    expect(await rowOf(page, 'tool_300').textContent()).toContain('Denied')
    expect(await rowsIn(page).filter({ hasText: 'fresh' }).count()).toBe(0)
    await page.keyboard.press('p')
    await rowOf(page, 'fresh').waitFor()

    await page.getByRole('grid', { name: 'Exchanges' }).evaluate(grid => grid.scrollTo(0, 1000))
    await page.waitForTimeout(100)
    await emitRecordings(page, manySummaries(3, 400))
    await page.getByRole('button', { name: '3 new' }).click()
    await rowOf(page, 'tool_403').waitFor()
  })

  test('keys alone open an exchange, go on to others, and come back', async () => {
    const recorder = createFakeRecorder(manySummaries(30))
    recorder.recordings = manySummaries(30).map(({ id }) => recordingWith(id, `text of ${id}`))
    const page = await open(recorder)
    await rowOf(page, 'tool_30').waitFor()
    for (const key of ['j', 'j', 'Enter']) await page.keyboard.press(key)
    await page.getByRole('heading', { name: 'tools/call text of r29' }).waitFor()
    await page.keyboard.press(']')
    await page.getByRole('heading', { name: 'tools/call text of r28' }).waitFor()
    // Two keys at once: both are handled in one task, before the page is drawn again.
    await page.evaluate(
      `for (const key of ['[', '[']) dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true }))`,
    )
    await page.getByRole('heading', { name: 'tools/call text of r30' }).waitFor()
    for (const key of [']', ']', ']', '[', ']', '[', '[', '[']) await page.keyboard.press(key)
    await page.getByRole('heading', { name: 'tools/call text of r30' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('heading', { name: 'tools/call text of r30' }).waitFor({ state: 'detached' })
    expect(await page.locator('[aria-selected=true]').textContent()).toContain('tool_30')
  })

  test('the exchange has no serious violation, light and dark, wide and narrow', async () => {
    const page = await open(createFakeRecorder(manySummaries(5)), 'recorder/41')
    await page.getByRole('group', { name: 'Messages', exact: true }).waitFor()
    for (const width of [1280, 400]) {
      for (const theme of ['light', 'dark'] as const) {
        await showAs(page, theme, width)
        expect(await axe(page), `${width} px, ${theme}`).toEqual([])
      }
      expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).toBe(false)
    }
  })

  test('views of a message: pretty, raw, headers; a cut message says how large it was', async () => {
    const recorder = createFakeRecorder(manySummaries(1))
    const [parked] = recorder.recordings
    if (!parked) throw new Error('no recording')
    const [first, second, ...rest] = parked.all
    const text = `{"jsonrpc":"2.0","id":31,"params":{"n":12345678901234567890,"token":"[redacted]"`
    const cut = { ...second, text, bytes: 20 * 1024 * 1024, isCut: true } as never
    recorder.recordings = [{ ...parked, all: [first as never, cut, ...rest] }]
    const page = await open(recorder, 'recorder/41')
    const call = page.getByRole('region', { name: 'tools/call to the server' })
    await call.getByRole('button', { name: /tools\/call request/ }).click()
    await call.getByText('had 20.0 MiB').waitFor()
    expect(await call.textContent()).toContain('12345678901234567890')
    await call.getByText('One secret is shown as').waitFor()
    await call.getByRole('button', { name: 'Headers' }).click()
    await call.getByRole('rowheader', { name: 'mcp-name' }).waitFor()
    await call.getByRole('button', { name: 'Raw' }).click()
    expect(await call.getByRole('group', { name: 'Client message' }).textContent()).toBe(first?.text)
  })

  test('a recording that was forgotten says so', async () => {
    site.allow(/404/)
    const page = await open(createFakeRecorder(), 'recorder/gone')
    await page.getByRole('heading', { name: 'This exchange cannot be shown' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('heading', { name: 'Nothing recorded yet' }).waitFor()
  })
})
