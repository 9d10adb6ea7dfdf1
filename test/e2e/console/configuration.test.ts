import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { beforeEach, expect, test } from 'vitest'
import { axe, type ConsoleSite, describeConsole, showAs } from '../../support/console.ts'

const DUAL = fileURLToPath(new URL('../../support/servers/dual-era.mjs', import.meta.url))

const TEXT = `{
  // servers of the team
  "limits": { "shutdownMs": 200 },
  "mcpServers": {
    "demo": { "builtin": "demo" }, // examples
    "docs": {
      "url": "https://docs.example.com/mcp",
      "disabled": true, // not yet
      "headers": { "Authorization": "Bearer literal-secret" },
    },
  },
}
`

const reset = async (site: ConsoleSite, text = TEXT): Promise<void> => {
  await writeFile(site.file, text)
  await reload(site)
}
const reload = (site: ConsoleSite) =>
  fetch(`${site.origin}/admin/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
    body: '{}',
  })
const textOf = (site: ConsoleSite): Promise<string> => readFile(site.file, 'utf8')

const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })
const act = async (page: Page, name: string, action: string): Promise<void> => {
  await page.getByRole('button', { name: `Actions for ${name}` }).click()
  await page.getByRole('menuitem', { name: action }).click()
}
const saveAll = async (page: Page): Promise<void> => {
  await page.keyboard.press('Control+s')
  await page.getByRole('dialog', { name: 'Review and save' }).getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

describeConsole('the page Configuration', site => {
  beforeEach(() => reset(site))

  test('adds a server by pasting its command, tries it, shows the plan and saves; then edits, disables and removes it', async () => {
    const page = await site.openConsole('configuration')
    await page.getByRole('button', { name: 'Add server' }).click()
    await page.getByLabel('URL, command or snippet').fill(`${process.execPath} ${DUAL} stdio`)
    await page.getByLabel('Name').fill('dual')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('button', { name: 'Try it' }).click()
    await page.getByText('It works').waitFor()
    await page.getByText(/over stdio, 2 tools/).waitFor()

    await page.keyboard.press('Control+s')
    const review = page.getByRole('dialog', { name: 'Review and save' })
    await review.getByText('server dual').waitFor()
    expect(await review.getByRole('group', { name: 'Difference of the text' }).textContent()).toContain('"dual": {')
    expect(await textOf(site)).toBe(TEXT) // nothing is written before the user saves
    await page.keyboard.press('Control+s')
    await page.getByText('Saved and applied.').waitFor()
    await row(page, 'dual').getByText('ready').waitFor()
    const saved = await textOf(site)
    expect(saved).toBe(
      TEXT.replace(
        '    },\n  },',
        `    },\n    "dual": {\n      "command": ${JSON.stringify(process.execPath)},\n      "args": [${JSON.stringify(DUAL)}, "stdio"]\n    },\n  },`,
      ),
    )

    await page.getByText('Options').click()
    await page.getByLabel('timeout').fill('5000')
    await act(page, 'dual', 'Disable')
    await saveAll(page)
    await row(page, 'dual').getByText('disabled').waitFor()
    expect(await textOf(site)).toContain('"timeout": 5000,\n      "disabled": true')

    await act(page, 'dual', 'Rename')
    await page.getByRole('dialog').getByLabel('Name').fill('both')
    await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click()
    await row(page, 'both').waitFor()
    await saveAll(page)
    expect(await textOf(site)).toContain('"both": {')

    await act(page, 'both', 'Remove')
    await saveAll(page)
    expect(await textOf(site)).toBe(TEXT)
  })

  test('says what is wrong while the user types, and where', async () => {
    const page = await site.openConsole('configuration/servers/docs')
    await page.getByLabel('url', { exact: true }).fill('ftp://docs.example.com')
    await page.getByText('expected a URL with http:// or https://').waitFor()
    await page.getByRole('button', { name: '1 problem' }).click()
    const review = page.getByRole('dialog', { name: 'Review and save' })
    await review.getByText('line 7').waitFor()
    expect(await review.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Discard' }).click()
    expect(await page.getByLabel('url', { exact: true }).inputValue()).toBe('https://docs.example.com/mcp')

    await page.getByRole('tab', { name: 'File' }).click()
    const editor = page.getByLabel('Text of the file')
    await editor.fill((await editor.inputValue()).replace('"builtin"', '"biultin"'))
    await page.getByText(/did you mean "builtin"/).waitFor()
    await page.getByRole('button', { name: 'line 5, column 5' }).click()
    expect(
      await editor.evaluate((area: { selectionStart: number; value: string }) => area.value.slice(area.selectionStart)),
    ).toMatch(/^"demo"/)
    await editor.fill('{ nonsense')
    await page.getByText(/expected a key in double quotes/).waitFor()
    await page.getByRole('button', { name: 'Discard' }).click()
    expect(await editor.inputValue()).toContain('"builtin"')
  })

  test('never shows a secret, and keeps it', async () => {
    const page = await site.openConsole('configuration/servers/docs')
    await page.getByText('headers', { exact: true }).waitFor()
    await page.getByRole('tab', { name: 'File' }).click()
    const editor = page.getByLabel('Text of the file')
    expect(await editor.inputValue()).toMatch(/Bearer \$\{hidden:[0-9a-f]{10}\}/)
    expect(await page.content()).not.toContain('literal-secret')
    await editor.fill((await editor.inputValue()).replace('// examples', '// all examples'))
    await saveAll(page)
    expect(await textOf(site)).toBe(TEXT.replace('// examples', '// all examples'))
  })

  test('two tabs: the second one sees what the first has changed, and merges its own', async () => {
    const [first, second] = [
      await site.openConsole('configuration/servers/docs'),
      await site.openConsole('configuration/servers/docs'),
    ]
    await second.getByLabel('url', { exact: true }).fill('https://second.example.com/mcp')
    await second.keyboard.press('Control+s')
    await second.getByText('What changes').waitFor()
    await first.getByLabel('url', { exact: true }).fill('https://first.example.com/mcp')
    await act(first, 'docs', 'Enable')
    // The second tab saves before it has heard of the first one's change.
    await second.route('**/admin/config', route => route.abort(), { times: 1 })
    site.allow(/ERR_FAILED|412/)
    await saveAll(first)
    await second.getByRole('dialog', { name: 'Review and save' }).getByRole('button', { name: 'Save' }).click()
    const conflict = second.getByRole('dialog', { name: 'The file has changed' })
    await conflict.getByText('mcpServers.docs.url').waitFor()
    expect(await conflict.getByRole('group').textContent()).toContain('https://first.example.com/mcp')
    await conflict.getByRole('button', { name: 'Apply my changes' }).click()
    await saveAll(second)
    const text = await textOf(site)
    expect(text).toContain('"url": "https://second.example.com/mcp"')
    expect(text).not.toContain('disabled') // the change of the first tab
  })

  test('two tabs: a text that was edited in both is merged by lines, or left to the user', async () => {
    const page = await site.openConsole('configuration/file')
    const editor = page.getByLabel('Text of the file')
    await editor.fill((await editor.inputValue()).replace('// examples', '// my examples'))
    await reset(site, TEXT.replace('of the team', 'of all teams'))
    await page.getByRole('button', { name: 'Compare and merge' }).click()
    await page.getByRole('button', { name: 'Apply my changes' }).click()
    await saveAll(page)
    expect(await textOf(site)).toBe(
      TEXT.replace('of the team', 'of all teams').replace('// examples', '// my examples'),
    )

    await editor.fill((await editor.inputValue()).replace('// my examples', '// mine'))
    await reset(site, TEXT.replace('// examples', '// theirs'))
    await page.getByRole('button', { name: 'Compare and merge' }).click()
    await page.getByRole('button', { name: 'Apply my changes' }).click()
    await page.getByText('Both of you changed the same lines').waitFor()
    await page.getByRole('button', { name: 'Discard my changes' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await editor.inputValue()).toContain('// theirs')
  })

  test('a file that another program changes or breaks is noticed, and a draft stays', async () => {
    const page = await site.openConsole('configuration/servers/demo')
    await page.getByText('Options').click()
    await page.getByLabel('concurrency').fill('3')
    await reset(site, TEXT.replace('// examples', '// other examples'))
    await page.getByRole('button', { name: 'Compare and merge' }).click()
    await page.getByRole('button', { name: 'Apply my changes' }).click()
    await saveAll(page)
    expect(await textOf(site)).toBe(
      TEXT.replace(
        '"demo": { "builtin": "demo" }, // examples',
        '"demo": { "builtin": "demo", "concurrency": 3 }, // other examples',
      ),
    )
    await reset(site, TEXT.replace('"mcpServers": {', '"mcpServers": {,'))
    await page.getByText(/The file has problems: line 4/).waitFor()
    await page.getByText(/previous configuration stays in use/).waitFor()
  })

  test('creates, edits and removes a workspace, and a setting that needs a restart', async () => {
    const page = await site.openConsole('configuration/workspaces')
    await page.getByRole('button', { name: 'Add workspace' }).click()
    await page.getByLabel('Name').fill('a b')
    await page.getByText(/letters, digits/).waitFor()
    await page.getByLabel('Name').fill('team')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByLabel('All servers that are not disabled').click()
    await page.getByRole('checkbox', { name: 'docs' }).click()
    await page.getByLabel('names', { exact: true }).selectOption('slash')
    await page.goto(`${site.origin}/#/configuration/settings/limits.batchSize`)
    await page.getByLabel('batchSize').fill('7')
    await saveAll(page)
    await page.getByText('Saved settings wait for a restart').waitFor()
    expect(await textOf(site)).toContain(
      '"workspaces": {\n    "team": {\n      "servers": ["demo"],\n      "names": "slash"\n    }\n  }',
    )
    expect(await textOf(site)).toContain('"limits": { "shutdownMs": 200, "batchSize": 7 },')
    await page.goto(`${site.origin}/#/configuration/workspaces/team`)
    await act(page, 'team', 'Remove')
    await saveAll(page)
    expect(await textOf(site)).not.toContain('workspaces')
  })

  test('settings open without details; a chosen one opens and closes them', async () => {
    const page = await site.openConsole('configuration/settings', { width: 400 })
    const table = page.getByRole('grid', { name: 'Settings' })
    const details = page.getByRole('region', { name: 'Settings' })
    await table.waitFor()
    expect(await details.count()).toBe(0)
    expect(await page.locator('.split-main').getAttribute('inert')).toBeNull()
    await table.getByRole('row').nth(1).click()
    await details.getByRole('group').first().waitFor()
    await details.getByRole('button', { name: 'Close (Esc)' }).click()
    await details.waitFor({ state: 'detached' })
    expect(page.url()).toMatch(/#\/configuration\/settings$/)
  })

  test('shows viewers what is there, and lets them change nothing', async () => {
    const page = await site.openConsole('configuration/servers/docs', { as: 'viewer' })
    await page.getByText('You can look at the configuration.').waitFor()
    expect(await page.getByRole('button', { name: 'Add server' }).isDisabled()).toBe(true)
    expect(await page.getByLabel('url', { exact: true }).isDisabled()).toBe(true)
    await page.getByRole('tab', { name: 'File' }).click()
    await page.getByText('The text is for owners').waitFor()
  })

  test('a server is added as it was typed last, under the name that was typed, even if it is read late', async () => {
    const page = await site.openConsole('configuration/servers')
    await page.getByRole('button', { name: 'Add server' }).click()
    const text = page.getByLabel('URL, command or snippet')
    await text.fill('https://first.example.com/mcp')
    await page.getByLabel('Name').fill('late')
    let release = (): void => {}
    const released = new Promise<void>(resolve => {
      release = resolve
    })
    await page.route('**/admin/config/paste', async route => {
      await released
      await route.continue()
    })
    const isAsked = page.waitForRequest('**/admin/config/paste')
    await text.fill('https://last.example.com/mcp')
    await page.getByLabel('Name').press('Enter')
    await isAsked
    expect(await page.getByRole('dialog').count()).toBe(1)
    release()
    await row(page, 'late').waitFor()
    expect(await page.getByLabel('url', { exact: true }).inputValue()).toBe('https://last.example.com/mcp')
    await page.getByRole('button', { name: 'Discard' }).click()
  })

  test('the keyboard alone adds a server, reviews and saves it', async () => {
    const page = await site.openConsole('overview')
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await page.getByRole('button', { name: 'Add server' }).waitFor()
    const tabTo = async (name: string): Promise<void> => {
      const isThere = () => page.evaluate<string>('document.activeElement.textContent')
      for (let presses = 0; presses < 40 && (await isThere()) !== name; presses++) await page.keyboard.press('Tab')
      expect(await isThere()).toBe(name)
    }
    await tabTo('Add server')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('https://typed.example.com/mcp')
    await page.getByLabel('Name').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Control+a')
    await page.keyboard.type('typed')
    await page.keyboard.press('Enter')
    await row(page, 'typed').waitFor()
    await page.keyboard.press('Control+s')
    await page.getByRole('dialog', { name: 'Review and save' }).getByText('server typed').waitFor()
    await page.getByText('over HTTP', { exact: true }).waitFor()
    await page.keyboard.press('Control+s')
    await page.getByText('Saved and applied.').waitFor()
    expect(await textOf(site)).toContain('"typed": {\n      "url": "https://typed.example.com/mcp"')
  })

  test('no tab has a serious violation, nor has the review', async () => {
    const page = await site.openConsole('configuration')
    for (const [place, width, theme] of [
      ['servers/docs', 1280, 'light'],
      ['servers/docs', 400, 'dark'],
      ['workspaces', 1280, 'dark'],
      ['settings/limits.batchSize', 1280, 'light'],
      ['file', 400, 'light'],
    ] as const) {
      await page.goto(`${site.origin}/#/configuration/${place}`)
      await page.getByRole('tab', { name: new RegExp(`^${place.split('/')[0]}`, 'i'), selected: true }).waitFor()
      await showAs(page, theme, width)
      expect(await axe(page), `${place} at ${width} px, ${theme}`).toEqual([])
    }
    await page.goto(`${site.origin}/#/configuration/servers/docs`)
    await page.getByLabel('url', { exact: true }).fill('https://other.example.com/mcp')
    await page.keyboard.press('Control+s')
    await page.getByText('What changes').waitFor()
    expect(await axe(page)).toEqual([])
  })

  test('names and values with HTML are text', async () => {
    const evil = '<img src=x onerror="document.title=\'pwned\'">'
    const servers = {
      [evil]: { builtin: 'demo', era: evil },
      b: { url: `https://x.example/${evil}`, headers: { [evil]: evil } },
    }
    await reset(
      site,
      JSON.stringify(
        { mcpServers: servers, workspaces: { default: { servers: [evil, 'b'], instructions: evil } } },
        undefined,
        2,
      ),
    )
    const page = await site.openConsole('configuration')
    for (const place of [
      'servers',
      `servers/${encodeURIComponent(evil)}`,
      'servers/b',
      'workspaces/default',
      'settings',
      'file',
    ]) {
      await page.goto(`${site.origin}/#/configuration/${place}`)
      await page.getByRole('tab', { name: new RegExp(`^${place.split('/')[0]}`, 'i'), selected: true }).waitFor()
      await page.getByRole('tabpanel').waitFor()
      expect(await page.locator('img[src=x]').count()).toBe(0)
      expect(await page.title()).not.toBe('pwned')
    }
    await page.goto(`${site.origin}/#/configuration/servers`)
    await page.getByRole('button', { name: 'Add server' }).click()
    await page
      .getByLabel('URL, command or snippet')
      .fill(JSON.stringify({ mcpServers: { [`${evil}2`]: { command: evil, env: { [evil]: 'YOUR_KEY' } } } }))
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.keyboard.press('Control+s')
    await page.getByRole('dialog', { name: 'Review and save' }).waitFor()
    expect(await page.locator('img[src=x]').count()).toBe(0)
  })
})
