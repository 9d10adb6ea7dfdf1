import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import type { LoginList } from '../../../src/admin/api/logins.ts'
import type { CreatedToken } from '../../../src/admin/api/tokens.ts'
import { axe, type ConsoleSite, describeConsole, showAs } from '../../support/console.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { byToken, grantAccess } from '../../support/oauth/gateway-login.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'

const EVIL = '<img src=x onerror=globalThis.pwned=1>'

/** The files of clients are in a folder of the test, and `dragoman stdio` has the path of a package. */
const useHome = async (site: ConsoleSite): Promise<string> => {
  const home = join(site.folder, 'home')
  vi.stubEnv('HOME', home)
  vi.stubEnv('XDG_CONFIG_HOME', join(home, '.config'))
  vi.spyOn(process, 'argv', 'get').mockReturnValue([process.execPath, '/opt/dragoman/dist/main.js'])
  await mkdir(join(home, '.cursor'), { recursive: true })
  return home
}

const openTab = (page: Page, name: string) => page.getByRole('tab', { name }).click()
const dialogOf = (page: Page) => page.locator('dialog[open]')
const textOf = async (locator: Locator): Promise<string> => (await locator.textContent()) ?? ''

/** Creates a token as another program of the owner does. */
const addTokenAt = async ({ origin, gateway }: ConsoleSite, name: string): Promise<string> => {
  const response = await fetch(`${origin}/admin/tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.localSecret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  })
  return ((await response.json()) as CreatedToken).secret
}
const wasRun = (page: Page) => page.evaluate('globalThis.pwned === 1')

describeConsole('the page Connect: clients', site => {
  let home = ''
  let file = ''
  beforeAll(async () => {
    home = await useHome(site)
    file = join(home, '.cursor/mcp.json')
  })

  test('links a client after a preview, and undoes it', async () => {
    const before = `{\n  // mine\n  "mcpServers": {\n    "other": { "command": "x", "env": { "KEY": "s3cret" } }\n  }\n}\n`
    await writeFile(file, before)
    const page = await site.openConsole('connect')
    await page.getByRole('combobox', { name: 'Workspace' }).selectOption('demo')
    await page.getByRole('row', { name: 'Cursor' }).click()
    expect(page.url()).toContain('#/connect/clients/cursor?workspace=demo')
    const pane = page.getByRole('region', { name: 'Cursor' })
    await pane.getByRole('combobox', { name: 'Transport' }).selectOption('HTTP')
    const entry = pane.getByRole('group', { name: 'the entry' })
    await entry.getByText('"url"').waitFor()
    expect(JSON.parse(await textOf(entry))).toEqual({
      mcpServers: { 'dragoman-demo': { url: `${site.origin}/mcp/demo` } },
    })
    expect(await textOf(pane)).toContain(file)
    await pane.getByRole('button', { name: 'Link…' }).click()
    const dialog = dialogOf(page)
    const difference = dialog.getByRole('group', { name: 'Changes of the file' })
    await difference.waitFor()
    expect(await textOf(difference)).toContain(`"url": "${site.origin}/mcp/demo"`)
    expect(await textOf(dialog)).not.toContain('s3cret')
    expect(await textOf(dialog)).toContain('dragoman link cursor --workspace demo')
    expect(await axe(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Link', exact: true }).click()
    await page.getByRole('heading', { name: 'Cursor is linked' }).waitFor()
    const backup = await textOf(dialog.locator('.connect-path code').last())
    expect(await readFile(backup, 'utf8')).toBe(before)
    expect(await readFile(file, 'utf8')).toContain(`${site.origin}/mcp/demo`)
    await dialog.getByRole('button', { name: 'Undo…' }).click()
    await difference.waitFor()
    await dialog.getByRole('button', { name: 'Unlink', exact: true }).click()
    await page.getByRole('heading', { name: 'Cursor is unlinked' }).waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    expect(await readFile(file, 'utf8')).not.toContain(site.origin)
    expect(await readFile(file, 'utf8')).toContain('// mine')
    await expect.poll(() => textOf(page.getByRole('row', { name: 'Cursor' }))).toContain('Not linked')
  })

  test('another server of the same name is replaced only on demand; a broken file is named', async () => {
    await writeFile(file, '{ "mcpServers": { "dragoman": { "command": "other" } } }')
    await mkdir(join(home, '.gemini'), { recursive: true })
    await writeFile(join(home, '.gemini/settings.json'), '{ "mcpServers": ')
    site.allow(/409 \(Conflict\)/)
    const page = await site.openConsole('connect/clients/cursor')
    await page.getByRole('button', { name: 'Link…' }).click()
    const dialog = dialogOf(page)
    await dialog.getByText('has another server "dragoman"').waitFor()
    expect(await dialog.getByRole('button', { name: 'Link', exact: true }).isDisabled()).toBe(true)
    await dialog.getByRole('textbox', { name: 'Name of the entry' }).fill('gate')
    await dialog.getByRole('group', { name: 'Changes of the file' }).waitFor()
    await dialog.getByRole('textbox', { name: 'Name of the entry' }).fill('dragoman')
    await dialog.getByRole('button', { name: 'Replace that server' }).click()
    await dialog.getByRole('group', { name: 'Changes of the file' }).waitFor()
    await dialog.getByRole('button', { name: 'Link', exact: true }).click()
    await page.getByRole('heading', { name: 'Cursor is linked' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('row', { name: 'Gemini CLI' }).click()
    await page.getByText('settings.json is not JSON: line 1').waitFor()
    expect(await page.getByRole('button', { name: 'Link…' }).isDisabled()).toBe(true)
  })

  test('names in a file are shown as text', async () => {
    await writeFile(
      file,
      JSON.stringify({
        mcpServers: {
          [EVIL]: { command: EVIL },
          [`${EVIL}2`]: { url: `${site.origin}/mcp/${encodeURIComponent(EVIL)}` },
        },
      }),
    )
    const page = await site.openConsole('connect/clients/cursor')
    await page.getByRole('button', { name: 'Unlink' }).waitFor()
    expect(await textOf(page.getByRole('region', { name: 'Cursor' }))).toContain(EVIL)
    await page.getByRole('button', { name: 'Link…' }).click()
    await page.getByRole('group', { name: 'Changes of the file' }).waitFor()
    expect(await wasRun(page)).toBe(false)
    await page.goto(`${site.origin}/#/connect/clients/${encodeURIComponent(EVIL)}?workspace=default`)
    await page.getByRole('row', { name: 'Cursor' }).waitFor()
    site.allow(/404 \(Not Found\)/)
    await page.goto(`${site.origin}/#/connect/clients?workspace=${encodeURIComponent(EVIL)}`)
    await page.getByText('There is no workspace').waitFor()
    expect(await wasRun(page)).toBe(false)
  })

  test('the keyboard alone suffices', async () => {
    const page = await site.openConsole('connect')
    await page.getByRole('row', { name: 'Cursor' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('curl')
    await expect.poll(() => page.getByRole('row').count()).toBe(2)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await expect.poll(() => page.url()).toContain('/clients/claude-desktop')
    // The pane listens for keys after it was painted.
    const afterEscape = async (): Promise<string> => {
      await page.keyboard.press('Escape')
      return page.url()
    }
    await expect.poll(afterEscape).not.toContain('claude-desktop')
    await page.route('**/admin/tokens', async route => {
      await new Promise(resolve => setTimeout(resolve, 200)) // the fields come after the dialog
      await route.continue()
    })
    await page.keyboard.press('n')
    await page.getByRole('heading', { name: 'New token' }).waitFor()
    await dialogOf(page).getByRole('textbox', { name: 'Name' }).waitFor()
    await page.keyboard.type('ann')
    expect(await dialogOf(page).getByRole('textbox', { name: 'Name' }).inputValue()).toBe('ann')
    await page.keyboard.press('Escape')
    expect(await dialogOf(page).count()).toBe(0)
  })

  test('a viewer sees snippets, and why the buttons are disabled', async () => {
    const page = await site.openConsole('connect/clients/cursor', { as: 'viewer' })
    const pane = page.getByRole('region', { name: 'Cursor' })
    await pane.getByRole('group', { name: 'the entry' }).waitFor()
    expect(await textOf(pane)).toContain('Only the owner of the gateway can do this')
    expect(await textOf(pane)).not.toContain(file)
    expect(await pane.getByRole('button', { name: 'Link…' }).isDisabled()).toBe(true)
    await openTab(page, 'Tokens')
    await page.getByText('Tokens are for the owner').waitFor()
    expect(await axe(page)).toEqual([])
  })

  test.each(['cursor', 'claude-ai'])('%s has no serious violation, light and dark', async id => {
    const page = await site.openConsole(`connect/clients/${id}`)
    await page.locator('.connect-pane').waitFor()
    expect(await axe(page)).toEqual([])
    await showAs(page, 'dark', 400)
    expect(await axe(page)).toEqual([])
  })
})

describeConsole('the page Connect: tokens', site => {
  beforeAll(() => useHome(site))

  const addToken = (name: string) => addTokenAt(site, name)
  const list = (secret: string) =>
    fetch(`${site.origin}/actions/demo/openapi.json`, { headers: { authorization: `Bearer ${secret}` } })

  /** A browser without a header: the owner by the cookie of a one-time link. */
  const openByLink = async (): Promise<Page> => {
    const { url } = site.gateway.createConsoleLink()
    const page = await site.openConsole(url.slice(url.indexOf('#/') + 2), { as: 'viewer' })
    await page.getByRole('link', { name: 'Connect' }).click()
    await openTab(page, 'Tokens')
    return page
  }

  test('the first token is created after a warning, shown once, works, and is revoked', async () => {
    const page = await openByLink()
    await page.getByRole('heading', { name: 'No tokens' }).waitFor()
    await page.getByRole('button', { name: 'New token' }).last().click()
    const dialog = dialogOf(page)
    await dialog.getByText('The first token turns authentication on').waitFor()
    const create = dialog.getByRole('button', { name: 'Create' })
    expect(await create.isDisabled()).toBe(true)
    await dialog.getByRole('textbox', { name: 'Name' }).fill(EVIL)
    await dialog.getByRole('checkbox', { name: 'demo' }).check()
    await dialog.getByRole('checkbox', { name: 'Turn authentication on' }).check()
    expect(await axe(page)).toEqual([])
    await create.click()
    await dialog.getByText('Copy it now').waitFor()
    const secret = await textOf(dialog.locator('.connect-secret'))
    expect(secret).toMatch(/^drg_[\w-]{43}$/)
    expect((await list(secret)).status).toBe(200)
    expect((await list('')).status).toBe(401)
    await dialog.getByRole('button', { name: 'Done' }).click()
    const row = page.getByRole('row', { name: EVIL })
    await row.waitFor()
    expect(await textOf(page.locator('body'))).not.toContain(secret)
    await row.click()
    expect(await axe(page)).toEqual([])
    await page.getByRole('button', { name: 'Revoke…' }).click()
    await dialog.getByText('Sessions and streams that were opened with it end at once').waitFor()
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('Every caller needs a token, and there is none').waitFor()
    expect((await list(secret)).status).toBe(401)
    expect(await wasRun(page)).toBe(false)
  })

  test('a token that is created elsewhere appears; an owner’s token is not limited', async () => {
    const page = await openByLink()
    await page.getByText('Live').waitFor()
    await addToken('ci')
    await page.getByRole('row', { name: 'ci' }).waitFor()
    await page.keyboard.press('n')
    const dialog = dialogOf(page)
    const owner = dialog.getByRole('checkbox', { name: 'as its owner' })
    await owner.check()
    await dialog.getByRole('checkbox', { name: 'demo' }).check()
    expect([await owner.isDisabled(), await owner.isChecked()]).toEqual([true, false])
    await dialog.getByRole('checkbox', { name: 'Every workspace' }).check()
    await dialog.getByRole('textbox', { name: 'Name' }).fill('boss')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByRole('button', { name: 'Done' }).click()
    expect(await textOf(page.getByRole('row', { name: 'boss' }))).toContain('Owner')
  })

  test('a token for a client is filled into its snippet; wrong names are refused at their field', async () => {
    site.allow(/422 \(Unprocessable Entity\)/)
    const page = await site.openConsole('connect/clients/cursor')
    const pane = page.getByRole('region', { name: 'Cursor' })
    await pane.getByRole('combobox', { name: 'Transport' }).selectOption('HTTP')
    const snippet = pane.getByRole('group', { name: 'the entry' })
    expect(JSON.parse(await textOf(snippet)).mcpServers.dragoman.headers).toEqual({
      Authorization: 'Bearer YOUR_TOKEN',
    })
    expect(await pane.getByRole('button', { name: 'Link…' }).isDisabled()).toBe(true)
    await pane.getByRole('button', { name: 'Create a token…' }).click()
    const dialog = dialogOf(page)
    const name = dialog.getByRole('textbox', { name: 'Name' })
    await expect.poll(() => name.inputValue()).toBe('cursor')
    expect(await dialog.getByText('turns authentication on').count()).toBe(0)
    await name.fill('a\u200bb')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('expected 1 to 100 printable characters').waitFor()
    await name.fill('cursor')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await expect.poll(() => textOf(snippet)).toContain('Bearer drg_')
    await pane.getByRole('button', { name: 'Link…' }).click()
    await dialog.getByRole('group', { name: 'Changes of the file' }).waitFor()
    expect(await textOf(dialog)).toContain('Bearer …')
    await dialog.getByRole('button', { name: 'Link', exact: true }).click()
    await page.getByRole('heading', { name: 'Cursor is linked' }).waitFor()
    const written = JSON.parse(await readFile(join(site.folder, 'home/.cursor/mcp.json'), 'utf8'))
    const secret = written.mcpServers.dragoman.headers.Authorization.slice('Bearer '.length)
    expect(
      (await fetch(`${site.origin}/actions/default/openapi.json`, { headers: { authorization: `Bearer ${secret}` } }))
        .status,
    ).toBe(200)
  })
})

describeConsole(
  'the page Connect: OAuth clients',
  site => {
    test('lists the clients that people have connected, and disconnects one', async () => {
      const secret = await addTokenAt(site, 'ann')
      const { tokens } = await grantAccess(site.origin, byToken(secret), { clientName: EVIL })
      const use = () =>
        fetch(`${site.origin}/actions/demo/openapi.json`, {
          headers: { authorization: `Bearer ${tokens.access_token}` },
        })
      expect((await use()).status).toBe(200)
      const page = await site.openConsole('connect')
      await openTab(page, 'OAuth clients')
      await page.getByRole('row', { name: EVIL }).click()
      expect(await axe(page)).toEqual([])
      await page.getByRole('button', { name: 'Disconnect…' }).click()
      await dialogOf(page).getByRole('button', { name: 'Disconnect' }).click()
      await page.getByRole('heading', { name: 'No client has logged in' }).waitFor()
      expect((await use()).status).toBe(401)
      expect(await wasRun(page)).toBe(false)
    })
  },
  { config: { mcpServers: { demo: { builtin: 'demo' } }, auth: { server: { signIn: ['token'] } } } },
)

describe('logins', () => {
  let login: Awaited<ReturnType<typeof startLoginSite>>
  let server: Awaited<ReturnType<typeof startV2>>
  beforeAll(async () => {
    server = await startV2()
    login = await startLoginSite({ upstream: server.url })
    return async () => {
      await login.close()
      await server.close()
    }
  })

  describeConsole(
    'the page Connect: logins',
    site => {
      /** `user`: who the browser is at the authorization server. */
      const openAs = async (user: string | undefined): Promise<Page> => {
        const page = await site.openConsole('connect/logins/far')
        if (user !== undefined) await page.context().addCookies([{ name: 'user', value: user, url: login.origin }])
        return page
      }
      const logins = async (): Promise<LoginList['servers'][number]['logins']> => {
        const response = await fetch(`${site.origin}/admin/logins/servers`, {
          headers: { authorization: `Bearer ${site.gateway.localSecret}` },
        })
        return ((await response.json()) as LoginList).servers[0]?.logins ?? []
      }

      const post = (path: string, body: object) =>
        fetch(`${site.origin}/${path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })

      test('logs in by a new tab, shows it without a reload, and logs out', async () => {
        const page = await openAs('ann')
        await page.getByRole('button', { name: 'Log in…' }).click()
        expect(await axe(page)).toEqual([])
        const [tab] = await Promise.all([
          page.context().waitForEvent('page'),
          dialogOf(page).getByRole('button', { name: 'Open the login page' }).click(),
        ])
        await tab.getByText('Logged in').first().waitFor()
        await page.getByText('Logged in to far').waitFor()
        expect(await logins()).toMatchObject([{ principal: 'local', issuer: login.origin }])
        await expect.poll(() => textOf(page.getByRole('row', { name: 'far' }))).toContain('Logged in')
        const steps = page.locator('.login-steps > li')
        await steps.filter({ hasText: 'Tokens are requested' }).first().waitFor()
        for (const step of await steps.all()) await step.locator('summary').click()
        const shown = (await steps.allTextContents()).join('\n')
        for (const part of [
          'oauth-protected-resource',
          'registers as a client',
          '/authorize',
          'comes back',
          '[redacted]',
        ])
          expect(shown).toContain(part)
        expect(login.secrets.filter(secret => secret !== '' && shown.includes(secret))).toEqual([])
        expect(await axe(page)).toEqual([])
        await page.getByRole('button', { name: 'Log out…' }).click()
        await dialogOf(page).getByRole('button', { name: 'Log out' }).click()
        await page.getByText('its tokens are revoked').waitFor()
        expect(await logins()).toEqual([])
      })

      test('logs in from the page Overview, and calls then go to the server as that user', async () => {
        const page = await site.openConsole('overview/far')
        await page.context().addCookies([{ name: 'user', value: 'ann', url: login.origin }])
        const pane = page.getByRole('region', { name: 'Server far' })
        await pane.getByRole('button', { name: 'Log in' }).click()
        await dialogOf(page).getByRole('heading', { name: 'Log in to far' }).waitFor()
        expect(await axe(page)).toEqual([])
        const [tab] = await Promise.all([
          page.context().waitForEvent('page'),
          dialogOf(page).getByRole('button', { name: 'Open the login page' }).click(),
        ])
        await tab.getByText('Logged in').first().waitFor()
        await page.getByText('Logged in to far').waitFor()
        expect(await dialogOf(page).count()).toBe(0)
        expect(await logins()).toMatchObject([{ principal: 'local', issuer: login.origin }])
        const tools = await fetch(`${site.origin}/actions/far/openapi.json`, {
          headers: { authorization: `Bearer ${site.gateway.localSecret}` },
        })
        expect([tools.status, login.admitted.at(-1)?.user]).toEqual([200, 'ann'])
        await post('admin/logins/end', { server: 'far', principal: 'local' })
      })

      test('says why a login cannot begin, and closes the tab that was opened for it', async () => {
        site.allow(/422 \(Unprocessable Entity\)/)
        const page = await site.openConsole('connect/logins/dead')
        await page.getByRole('button', { name: 'Log in…' }).click()
        await dialogOf(page).getByRole('button', { name: 'Open the login page' }).click()
        expect(await textOf(dialogOf(page).getByRole('alert'))).toContain('Server "dead"')
        await expect.poll(() => page.context().pages().length).toBe(1)
      })

      test('takes the final address of a browser that cannot reach the gateway, and says why another one is wrong', async () => {
        site.allow(/422 \(Unprocessable Entity\)/)
        const page = await openAs(undefined)
        await page.getByRole('button', { name: 'Log in…' }).click()
        const dialog = dialogOf(page)
        await dialog.getByRole('button', { name: 'paste the final address' }).click()
        const field = dialog.getByRole('textbox', { name: 'Paste the address' })
        await field.waitFor()
        const start = await textOf(dialog.locator('.connect-boxed code'))
        await dialog.getByRole('button', { name: 'Finish' }).click()
        await dialog.getByText('Paste the address first').waitFor()
        await field.fill('http://127.0.0.1/oauth/callback?code=1&state=2')
        await dialog.getByRole('button', { name: 'Finish' }).click()
        await dialog.getByRole('alert').filter({ hasNotText: 'Paste the address first' }).waitFor()
        const answer = await fetch(start, { redirect: 'manual', headers: { cookie: 'user=ann' } })
        await field.fill(answer.headers.get('location') ?? '')
        await dialog.getByRole('button', { name: 'Finish' }).click()
        await page.getByText('Logged in to far').waitFor()
        expect(await logins()).toHaveLength(1)
      })
    },
    { config: () => ({ mcpServers: { far: { url: login.url }, dead: { url: 'http://127.0.0.1:1/mcp' } } }) },
  )
})
