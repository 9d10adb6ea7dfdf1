import type { Locator, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { describeConsole } from '../../support/console.ts'

const WIDTHS = [1280, 400]

/** Where a control is: its left edge and its width, in whole pixels. */
const placeOf = async (control: Locator): Promise<readonly [left: number, width: number]> => {
  const box = await control.boundingBox()
  if (!box) throw new Error('it is not shown')
  return [Math.round(box.x), Math.round(box.width)]
}

const search = (page: Page) => page.getByRole('searchbox')

describeConsole('controls stay where they are', site => {
  test.each([
    ['no connection', 503],
    ['a connection that opens', undefined],
  ] as const)('the foot of the navigation has room for every state of the feed: %s', async (_name, status) => {
    site.allow(/503/)
    const code = /code=(.+)$/.exec(site.gateway.createConsoleLink().url)?.[1]
    const page = await site.openConsole(`overview?code=${code}`, {
      as: 'viewer',
      isSingleUse: true,
      prepare: async own => {
        await own.route('**/admin/events', route => (status === undefined ? undefined : route.fulfill({ status })))
        return undefined
      },
    })
    await page.getByRole('button', { name: /^Signed in as/ }).waitFor()
    await page.locator(status === undefined ? '.feed .state-busy' : '.feed .state-warn').waitFor()
    const room = await page.evaluate<{ foot: number; content: number; feed: number; text: number }>(`(() => {
      const [foot, feed] = [document.querySelector('.navigation-foot'), document.querySelector('.feed > span:last-child')]
      return { foot: foot.clientWidth, content: foot.scrollWidth, feed: feed.clientWidth, text: feed.scrollWidth }
    })()`)
    expect(room.content).toBeLessThanOrEqual(room.foot)
    expect(room.text).toBeLessThanOrEqual(room.feed)
  })

  test.each(WIDTHS)('Explore at %d px: while a search is typed, and in every tab', async width => {
    const page = await site.openConsole('explore/demo/tools', { width })
    await page.getByRole('listbox', { name: 'Tools' }).getByText('example-echo', { exact: true }).waitFor()
    const controls = [page.getByLabel('Workspace or server'), search(page)]
    const before = await Promise.all(controls.map(placeOf))
    await search(page).fill('echo')
    await page.locator('.search-count', { hasText: ' of ' }).waitFor()
    expect(await Promise.all(controls.map(placeOf))).toEqual(before)
    for (const tab of ['Prompts', 'Resources', 'Server', 'Calls']) {
      await page.getByRole('tab', { name: tab }).click()
      await page.getByRole('tab', { name: tab, selected: true }).waitFor()
      expect(await Promise.all(controls.map(placeOf)), tab).toEqual(before)
    }
  })

  test.each(WIDTHS)('Overview at %d px: while a search is typed', async width => {
    const page = await site.openConsole('overview', { width })
    await page.getByRole('row').filter({ hasText: 'demo' }).waitFor()
    const controls = [page.getByLabel('Workspace', { exact: true }), search(page)]
    const before = await Promise.all(controls.map(placeOf))
    await search(page).fill('demo')
    await page.locator('.search-count', { hasText: '1 of 2' }).waitFor()
    expect(await Promise.all(controls.map(placeOf))).toEqual(before)
  })

  test('Memory: while a date is chosen', async () => {
    await fetch(`${site.origin}/admin/memory/episodes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'Ann parked on Elm Street.' }),
    })
    const page = await site.openConsole('memory')
    const controls = [page.getByLabel('As of'), search(page)]
    await search(page).waitFor()
    const before = await Promise.all(controls.map(placeOf))
    await page.getByLabel('As of').fill('2025-01-01')
    await page.getByRole('button', { name: 'Show what is true now' }).waitFor()
    expect(await Promise.all(controls.map(placeOf))).toEqual(before)
  })

  test('Connect: in every tab', async () => {
    const page = await site.openConsole('connect')
    await page.getByRole('tab', { name: /^Logins/ }).waitFor()
    const before = await placeOf(search(page))
    for (const tab of ['Tokens', 'Logins']) {
      await page.getByRole('tab', { name: tab }).click()
      await page.getByRole('tab', { name: tab, selected: true }).waitFor()
      expect(await placeOf(search(page)), tab).toEqual(before)
    }
  })

  test('the chosen tab is in sight in a narrow window, below the title of the page', async () => {
    const page = await site.openConsole('explore/demo/calls', { width: 400 })
    const [left, width] = await placeOf(page.getByRole('tab', { name: 'Calls', selected: true }))
    expect(left + width).toBeLessThanOrEqual(400)
    await page.goto(`${site.origin}/#/overview`)
    const tab = page.getByRole('tab', { name: 'Servers' })
    const titles = [page.getByRole('heading', { level: 1 }), tab].map(async each => (await placeOf(each))[0])
    expect(new Set(await Promise.all(titles)).size).toBe(1)
  })

  test('in a narrow window, the count of a page is beside its title, and the controls are below both', async () => {
    const page = await site.openConsole('overview', { width: 400 })
    for (const path of ['overview', 'explore/demo/tools', 'recorder']) {
      await page.goto(`${site.origin}/#/${path}`)
      const count = page.locator('.search-count', { hasText: /\d/ })
      await count.waitFor()
      const title = page.getByRole('heading', { level: 1 })
      const textLeft = 'document.querySelector(".page-head h1").firstChild'
      const end = await page.evaluate(
        `(() => { const range = document.createRange(); range.selectNode(${textLeft}); return range.getBoundingClientRect().right })()`,
      )
      const [left] = await placeOf(count)
      expect(left - Number(end), path).toBeGreaterThan(0)
      expect(left - Number(end), path).toBeLessThan(20)
      const [head, field] = [await title.boundingBox(), await page.locator('.page-head .search').boundingBox()]
      expect(field?.y, path).toBeGreaterThanOrEqual((head?.y ?? 0) + (head?.height ?? 0))
    }
  })

  test('in a narrow window, tabs that are cut fade, and the figures of the gateway fill their rows', async () => {
    const page = await site.openConsole('explore/demo/tools', { width: 400 })
    await page.getByRole('tablist', { name: 'What the target offers' }).waitFor()
    const fades = () => page.evaluate("getComputedStyle(document.querySelector('[role=tablist]')).maskImage !== 'none'")
    await expect.poll(fades).toBe(true)
    await page.getByRole('tab', { name: 'Calls' }).click()
    await expect.poll(fades).toBe(false)
    await page.goto(`${site.origin}/#/overview`)
    const [left, width] = await placeOf(page.locator('.totals > div').last())
    expect(left + width).toBe(400)
  })

  test('Recorder: bars of durations end at one edge, and names of tools are whole', async () => {
    for (const tool of ['example-ping', 'test_structured_content'])
      await fetch(`${site.origin}/actions/demo/${tool}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
    const page = await site.openConsole('recorder')
    const name = page.getByTitle('test_structured_content', { exact: true })
    await name.waitFor()
    expect(
      await name.evaluate(
        element => element.parentElement && element.parentElement.scrollWidth <= element.parentElement.clientWidth,
      ),
    ).toBe(true)
    await page.locator('.rec-duration').nth(1).waitFor()
    await page.evaluate("document.querySelector('.rec-duration-text').textContent = '21 min 30 s'")
    const ends = (await page.locator('.rec-bar').all()).map(async bar => (await placeOf(bar)).reduce((a, b) => a + b))
    expect(new Set(await Promise.all(ends)).size).toBe(1)
  })

  test('Recorder: common names of clients, tools and servers are whole in a window of 1280 pixels', async () => {
    await fetch(`${site.origin}/actions/demo/example-ping`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    const page = await site.openConsole('recorder')
    await page.locator('.list-rows [role=gridcell]').first().waitFor()
    const areWhole = await page.evaluate(`(() => {
      const [, client, , subject, , server] = document.querySelectorAll('.list-rows [role=row]:first-child [role=gridcell]')
      const isWhole = (cell, name, revision) => {
        const [party, text, dialect] = ['rec-party', 'truncate', 'rec-dialect'].map(each => {
          const span = document.createElement('span')
          span.className = each
          return span
        })
        text.textContent = name
        dialect.textContent = revision
        party.append(text, dialect)
        cell.replaceChildren(...(revision === undefined ? [name] : [party]))
        return [cell, text].every(each => each.scrollWidth <= each.clientWidth)
      }
      return [
        isWhole(client, 'dragoman 0.1.0', '2026-07-28'),
        isWhole(subject, 'trigger-elicitation-request'),
        isWhole(server, 'everything', '2025-11-25'),
      ]
    })()`)
    expect(areWhole).toEqual([true, true, true])
  })

  test('Recorder: filters keep their width and their choices', async () => {
    for (const tool of ['example-ping', 'example-echo'])
      await fetch(`${site.origin}/actions/demo/${tool}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
    const page = await site.openConsole('explore/demo/tools')
    await page.getByRole('listbox', { name: 'Tools' }).getByText('example-echo', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Recorder' }).click()
    const methods = page.getByLabel('All methods')
    await page.getByRole('row').filter({ hasText: 'tools/list' }).first().waitFor()
    const controls = [methods, page.getByLabel('All servers'), page.getByLabel('All workspaces')]
    const before = await Promise.all(controls.map(placeOf))
    const choices = await methods.locator('option').allTextContents()
    await methods.selectOption('tools/list')
    await expect.poll(() => page.getByRole('row').filter({ hasText: 'tools/call' }).count()).toBe(0)
    expect(await Promise.all(controls.map(placeOf))).toEqual(before)
    expect(await methods.locator('option').allTextContents()).toEqual(choices)
  })
})
