import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { axe, describeConsole } from '../../support/console.ts'
import { longestDelay, pressesOf, RESPONSIVE_MS } from '../../support/longest-delay.ts'
import { graphLines, nameOfNode } from '../../support/memory/graph-lines.ts'

const PARKING = 'Ann Lindqvist parked on Elm Street in May 2025.'

interface Site {
  readonly gateway: { readonly origin: string; readonly localSecret: string }
}

/** Sends a request of the admin API, as the owner. */
const send = async <T>({ gateway }: Site, path: string, body: string | object): Promise<T> => {
  const response = await fetch(`${gateway.origin}/admin/memory/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.localSecret}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  expect(response.status).toBe(200)
  return (await response.json()) as T
}

/** How many pixels of the graph have another colour than its background. */
const drawnPixels = (page: Page): Promise<number> =>
  page.evaluate<number>(`(() => {
    const canvas = document.querySelector('canvas')
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    let count = 0
    for (let at = 0; at < data.length; at += 4) if (data[at] !== data[0] || data[at + 1] !== data[1]) count++
    return count
  })()`)

const arranged = (page: Page) => page.locator('canvas[data-arranged]').waitFor({ timeout: 60_000 })

describeConsole('the page Memory', site => {
  test('an empty memory says how to fill it', async () => {
    const page = await site.openConsole('memory')
    await page.getByText('Nothing is stored yet').waitFor()
    expect(await page.locator('.memory-curl code').textContent()).toContain(`${site.origin}/actions/add_memory`)
    expect(await axe(page)).toEqual([])
  })

  test('what others store appears by itself', async () => {
    const store = async (name: string, text: string): Promise<void> => {
      const response = await fetch(`${site.origin}/actions/add_memory`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name, episode_body: text }),
      })
      expect(response.status).toBe(200)
    }
    const page = await site.openConsole('memory/timeline')
    await page.getByText('Nothing is stored yet').waitFor()
    await store('Hive', 'Wanda keeps bees in Ghent.')
    await page.getByText('Hive').first().waitFor()
    await page.getByRole('button', { name: 'Add' }).click()
    await page.getByLabel('Text').fill('half a sen')
    await store('Honey', 'Wanda sells honey in Ghent.')
    await page.getByText('Honey').first().waitFor()
    expect(await page.getByLabel('Text').inputValue()).toBe('half a sen')
  })

  test('a memory is added, found, opened, edited, ended, corrected and deleted', async () => {
    const page = await site.openConsole('memory')
    await page.getByRole('button', { name: 'Add' }).click()
    await page.getByLabel('Text').fill(PARKING)
    await page.getByLabel('Title').fill('Parking')
    expect(await axe(page)).toEqual([])
    await page.getByLabel('Text').press('Control+Enter')
    await page.getByRole('heading', { name: 'Parking' }).waitFor()
    expect(await page.locator('.memory-body').textContent()).toBe(PARKING)

    await page.keyboard.press('/')
    await page.keyboard.type('where did ann park')
    const result = page.getByRole('region', { name: 'Facts' }).locator('.memory-result').first()
    await result.waitFor()
    expect(await result.textContent()).toContain('since 2025-05-01')
    expect(await result.textContent()).toContain('from “Parking”')
    expect(await page.locator('mark').allTextContents()).toContain('parked')
    expect(await axe(page)).toEqual([])
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')

    await page.getByRole('heading', { name: 'Ann Lindqvist' }).waitFor()
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Name').fill('Ann Berg')
    await page.getByLabel('Labels').fill('Person, Driver')
    await page.getByLabel('Summary').fill('She drives.')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Ann Berg' }).waitFor()
    await page.getByText('also Ann Lindqvist').waitFor()
    expect(await page.getByText('Driver').count()).toBe(1)
    expect(await page.getByText('She drives.').count()).toBe(1)

    const act = async (action: string): Promise<void> => {
      await page.getByRole('button', { name: /^Actions for/ }).click()
      await page.getByRole('menuitem', { name: action }).click()
    }
    await act('End…')
    await page.getByLabel('No longer true from').fill('2025-06-01')
    await page.getByRole('button', { name: 'End', exact: true }).click()
    await page.locator('.validity-past').waitFor()
    expect(await page.getByRole('img', { name: 'True 2025-05-01 – 2025-06-01' }).count()).toBe(1)
    await page.getByLabel('As of').fill('2025-05-20')
    await page.getByText('what was true on 2025-05-20').waitFor()
    await page.locator('.validity-row').waitFor()
    await page.getByLabel('As of').fill('2025-07-20')
    await page.getByText('None was true then.').waitFor()
    await page.getByRole('button', { name: 'Show what is true now' }).click()
    await act('Correct…')
    await page.getByRole('textbox', { name: 'Fact' }).fill('Ann parked on Oak Street.')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.validity-row', { hasText: 'Oak Street' }).waitFor()
    expect(await axe(page)).toEqual([])
    await act('Delete…')
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('None.', { exact: true }).waitFor()
  })

  test('the timeline groups by day and opens an episode with the keyboard', async () => {
    for (let day = 1; day <= 3; day++)
      await send(site, 'episodes', { text: `Cora met Dan${day}.`, name: `Meeting ${day}`, at: `2025-03-0${day}` })
    const page = await site.openConsole('memory/timeline')
    await page.getByText('Meeting 3').waitFor()
    await page.getByLabel('What is shown').selectOption('episode')
    await page.getByText('2025-03-01 1').waitFor()
    expect(await axe(page)).toEqual([])
    await page.getByLabel('As of').fill('2025-03-02')
    await page.getByText('Meeting 3').waitFor({ state: 'detached' })
    await page.keyboard.press('Tab')
    await page.getByRole('listbox').focus()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Meeting 2' }).waitFor()
    expect(page.url()).toContain('#/memory/episode/')
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Deleted “Meeting 2”').waitFor()
  })

  test('forgetting shows what else goes, and then the proof', async () => {
    await send(site, 'episodes', { text: 'Zoltan and Mira saw Vienna. Mira liked the trams.', name: 'The trip' })
    const page = await site.openConsole('memory/timeline')
    await page.getByRole('button', { name: 'Import, export, forget' }).click()
    await page.getByRole('menuitem', { name: 'Forget…' }).click()
    await page.getByLabel('Name').fill('Nowhere')
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByText('There is nothing to forget.').waitFor()
    await page.getByLabel('Name').fill('Zoltan')
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByText('facts that go with them').waitFor()
    expect(await page.locator('.forget-plan').textContent()).toContain('Mira liked the trams.')
    expect(await axe(page)).toEqual([])
    await page.getByRole('button', { name: 'Erase for good' }).click()
    await page.getByText(/None of \d+ pieces of their text is left in the files/).waitFor({ timeout: 30_000 })
    await page.getByRole('button', { name: 'Close', exact: true }).last().click()
    await page.getByText('The trip').waitFor({ state: 'detached' })
  })

  test('a file is imported with its faults, and what is exported can be imported', async () => {
    const page = await site.openConsole('memory/statistics')
    const open = async (item: string): Promise<void> => {
      await page.getByRole('button', { name: 'Import, export, forget' }).click()
      await page.getByRole('menuitem', { name: item }).click()
    }
    await open('Import…')
    const line = { type: 'entity', name: 'Ida Novak', entityType: 'person', observations: ['Ida Novak sings'] }
    await page.getByLabel('File').setInputFiles({
      name: 'memory.jsonl',
      mimeType: 'application/x-ndjson',
      buffer: Buffer.from(`${JSON.stringify(line)}\nbroken\n`),
    })
    let goOn = (): void => {}
    const held = new Promise<void>(resolve => (goOn = resolve))
    await page.route('**/admin/memory/import?*', async route => {
      await held
      await route.continue()
    })
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByRole('progressbar', { name: 'Progress' }).waitFor()
    goOn()
    await page.getByText('1 new episode').waitFor()
    expect(await page.getByRole('progressbar', { name: 'Progress' }).count()).toBe(0)
    await page.unroute('**/admin/memory/import?*')
    expect(await page.locator('.import-faults').textContent()).toContain('line 2')
    expect(await axe(page)).toEqual([])
    await page.getByRole('button', { name: 'Close', exact: true }).last().click()
    await open('Import…')
    await page.getByLabel('File').setInputFiles({ name: 'a.bin', mimeType: 'text/plain', buffer: Buffer.from('a\0b') })
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('It looks binary').waitFor()
    site.allow(/400 \(Bad Request\)/)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await open('Export…')
    let goOnWithExport = (): void => {}
    const requested = new Promise<void>(resolve => (goOnWithExport = resolve))
    await page.route('**/admin/memory/export*', async route => {
      await requested
      await route.continue()
    })
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export', exact: true }).click()
    const progress = page.getByRole('progressbar', { name: 'Progress' })
    expect(await progress.getAttribute('value')).toBe('0')
    goOnWithExport()
    const text = await readFile(await (await download).path(), 'utf8')
    await page.getByText(/^\d+ lines, \d/).waitFor()
    expect(await progress.getAttribute('value')).toBe(await progress.getAttribute('max'))
    await page.unroute('**/admin/memory/export*')
    expect(text).toContain('Ida Novak sings')
    const again = await send<{ created: number; faulty: number }>(site, 'import?name=again.jsonl', text)
    expect(again).toMatchObject({ created: 0, faulty: 0 })
  })

  test('a viewer reads, and changes nothing', async () => {
    await send(site, 'episodes', { text: 'Ann owns a boat.' })
    const page = await site.openConsole('memory/search?q=boat', { as: 'viewer' })
    await page.locator('.memory-result').first().waitFor()
    expect(await page.getByRole('button', { name: 'Add' }).isDisabled()).toBe(true)
    await page.locator('.memory-result').first().click()
    expect(await page.getByRole('button', { name: 'Edit' }).isDisabled()).toBe(true)
  })

  test('unknown ids and memories are explained', async () => {
    site.allow(/404 \(Not Found\)/)
    const page = await site.openConsole('memory/entity/missing')
    await page.getByText('There is no entity missing').waitFor()
    const other = await site.openConsole('memory/search?tenant=principal:nobody')
    await other.getByText('There is no such memory').waitFor()
  })

  test('the old address of a memory page leads here', async () => {
    const page = await site.openConsole('overview')
    await page.goto(`${site.origin}/mem`)
    await page.getByRole('heading', { name: 'Memory', level: 1 }).waitFor()
    expect(page.url()).toBe(`${site.origin}/#/memory`)
  })
})

const GRAPH_CONFIG = {
  mcpServers: { memory: { builtin: 'memory' } },
  workspaces: { default: { servers: ['memory'] }, small: { servers: ['memory'] } },
}

describeConsole(
  'the graph of a memory',
  site => {
    test('1,000 entities are drawn with labels, and every input is answered within 100 ms', async () => {
      await send(site, 'import?name=graph.jsonl', graphLines(1000))
      const page = await site.openConsole('memory/graph')
      await page.getByText('1,000 entities').waitFor()
      const search = page.getByRole('searchbox')
      const whileArranging = await longestDelay(page, [
        ...[...'ada'].map(key => () => search.press(key)),
        () => page.getByRole('button', { name: 'Clear' }).click(),
      ])
      await arranged(page)
      await expect.poll(() => drawnPixels(page)).toBeGreaterThan(20_000)
      expect(await page.getByRole('img', { name: /^Graph of 1000 entities/ }).count()).toBe(1)
      const box = await page.locator('canvas').boundingBox()
      const [x, y] = [(box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + (box?.height ?? 0) / 2]
      for (let step = 0; step < 12; step++) await page.mouse.move(x + step * 9, y + step * 5)
      const later = await longestDelay(page, [
        () => page.mouse.wheel(0, -400),
        () => page.getByRole('button', { name: 'Zoom in' }).click(),
        () => page.getByRole('option').nth(3).click(),
        ...pressesOf(page, ['j', 'j', 'k']),
        () => page.getByRole('button', { name: 'Show all' }).click(),
      ])
      const figures = `${whileArranging} ms while it is arranged, ${later} ms later`
      expect(Math.max(whileArranging, later), figures).toBeLessThan(RESPONSIVE_MS)
      expect(await axe(page)).toEqual([])
    }, 180_000)

    test('the keyboard walks from an entity to its neighbours and opens it', async () => {
      await send(site, 'import?tenant=workspace:small&name=graph.jsonl', graphLines(10))
      const page = await site.openConsole('memory/graph?tenant=workspace:small', { theme: 'dark' })
      await arranged(page)
      await page.getByRole('listbox').focus()
      await page.keyboard.press('j')
      await page.getByText(/^Connected with \d+:/).waitFor()
      await page.locator('.graph-neighbours li button').first().press('Enter')
      await page.keyboard.press('/')
      await page.keyboard.type(nameOfNode(3).toLowerCase())
      await page.getByText('1 of 10 entities').waitFor()
      await page.getByRole('listbox').focus()
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: nameOfNode(3) }).waitFor()
      expect(await axe(page)).toEqual([])
    })

    test('a click on a node opens it', async () => {
      const page = await site.openConsole('memory/graph?tenant=workspace:small')
      await arranged(page)
      // The place of a coloured pixel is in a node or its label; nodes are large compared with links.
      const at = await page.evaluate<{ x: number; y: number }>(`(() => {
        const canvas = document.querySelector('canvas')
        const { width, height } = canvas
        const { data } = canvas.getContext('2d').getImageData(0, 0, width, height)
        const is = (x, y) => { const i = (y * width + x) * 4; return data[i + 2] - data[i] > 80 }
        for (let y = 4; y < height - 4; y++) for (let x = 4; x < width - 4; x++)
          if ([-3, 0, 3].every(dx => [-3, 0, 3].every(dy => is(x + dx, y + dy)))) return { x, y }
        return { x: 0, y: 0 }
      })()`)
      expect(at).not.toEqual({ x: 0, y: 0 })
      const ratio = await page.evaluate<number>('devicePixelRatio')
      await page.locator('canvas').click({ position: { x: at.x / ratio, y: at.y / ratio } })
      await page.getByText('Facts over time').waitFor()
    })
  },
  { config: GRAPH_CONFIG },
)

describeConsole(
  'without a memory server',
  site => {
    test('the page says what to write into the configuration', async () => {
      const page = await site.openConsole('memory')
      await page.getByText('No memory server').waitFor()
      expect(await page.locator('.empty-command code').textContent()).toBe('"memory": { "builtin": "memory" }')
      await page.getByRole('link', { name: 'Open Configuration' }).click()
      await page.getByRole('heading', { name: 'Configuration' }).first().waitFor()
    })
  },
  { config: { mcpServers: { demo: { builtin: 'demo' } } } },
)
