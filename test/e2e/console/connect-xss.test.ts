import type { Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import type { LoginList, LoginStepList } from '../../../src/admin/api/logins.ts'
import { describeConsole } from '../../support/console.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'
import { expectNoPayloadRan, XSS_PAYLOADS } from '../../support/xss-corpus.ts'

const ALL = XSS_PAYLOADS.join('\n\n')
const AT_ONCE = 6
/** Several payloads in one text. */
const GROUPS = Array.from({ length: Math.ceil(XSS_PAYLOADS.length / AT_ONCE) }, (_, at) =>
  XSS_PAYLOADS.slice(at * AT_ONCE, (at + 1) * AT_ONCE).join(' '),
)

const server = await startV2()
let refusal = ''
const login = await startLoginSite({ upstream: server.url, refusal: () => refusal })
afterAll(async () => {
  await login.close()
  await server.close()
})

/** Names, addresses, issuers, scopes and principals: each text of a login is a payload. */
const LIST: LoginList = {
  servers: XSS_PAYLOADS.map((payload, at) => ({
    name: payload,
    url: payload,
    isShared: at % 3 === 0,
    isDemanded: true,
    logins: [
      { principal: payload, issuer: payload, scopes: XSS_PAYLOADS, since: Date.now(), canRefresh: at % 2 === 0 },
    ],
  })),
  principals: XSS_PAYLOADS.map(payload => ({ principal: payload, name: `${payload} of ${payload}` })),
}

const STEPS: LoginStepList = {
  steps: XSS_PAYLOADS.map(payload => ({
    ...{ at: Date.now(), kind: 'token', method: 'POST', url: payload, status: 400, challenge: payload, error: payload },
    sent: [{ name: payload, value: payload }],
    request: payload,
    answer: JSON.stringify({ [payload]: payload }),
  })),
}

const dialogOf = (page: Page) => page.locator('dialog[open]')

describeConsole(
  'text of servers on the page Connect',
  site => {
    test('who is logged in where: server names, addresses, issuers, scopes and principals', async () => {
      const page = await site.openConsole('connect/logins', {
        prepare: async own => {
          await own.route(/\/admin\/logins\/servers$/, route => route.fulfill({ json: LIST }))
          await own.route(/\/admin\/logins\/servers\/.*\/steps$/, route => route.fulfill({ json: STEPS }))
          return undefined
        },
      })
      await page.getByRole('grid', { name: 'Logins' }).waitFor()
      for (const [at, payload] of XSS_PAYLOADS.entries()) {
        const path = encodeURIComponent(`${payload} ${payload}`.trim())
        await page.goto(`${site.origin}/#/connect/logins/${path}`)
        await page.locator('.connect-facts code').filter({ hasText: payload }).first().waitFor()
        if (at % 12 > 0) continue
        const steps = page.locator('.login-steps details')
        await steps.last().waitFor()
        if (at === 0) for (const step of await steps.all()) await step.locator('summary').click()
        await expectNoPayloadRan(page)
        await page.getByRole('button', { name: 'Log in again…' }).click()
        await dialogOf(page).getByRole('heading').filter({ hasText: 'Log in to' }).waitFor()
        await expectNoPayloadRan(page)
        await page.keyboard.press('Escape')
        await page.getByRole('button', { name: 'Log out…' }).click()
        await dialogOf(page).waitFor()
        await expectNoPayloadRan(page)
        await page.keyboard.press('Escape')
      }
      await expectNoPayloadRan(page)
    }, 120_000)

    test('why a login cannot begin, and where it leads', async () => {
      site.allow(/422 \(Unprocessable Entity\)/)
      let message = ''
      const page = await site.openConsole('connect/logins/far', {
        prepare: async own => {
          await own.route(/\/admin\/logins\/begin$/, route =>
            route.fulfill(message ? { status: 422, json: { error: { message } } } : { json: { id: ALL, url: '' } }),
          )
          await own.route(/\/admin\/logins\/open$/, route => route.fulfill({ json: { url: ALL } }))
          return undefined
        },
      })
      await page.getByRole('button', { name: 'Log in…' }).click()
      const dialog = dialogOf(page)
      for (const payload of [...GROUPS, ALL]) {
        message = payload
        await dialog.getByRole('button', { name: 'show a link to send' }).click()
        await dialog.getByRole('alert').filter({ hasText: payload }).waitFor()
      }
      await expectNoPayloadRan(page)
      message = ''
      await dialog.getByRole('button', { name: 'paste the final address' }).click()
      await dialog.locator('.connect-boxed code').waitFor()
      await expectNoPayloadRan(page)
    })

    const post = async (path: string, body: object): Promise<{ id: string; url: string }> => {
      const response = await fetch(`${site.origin}/admin/logins/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${site.gateway.localSecret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return (await response.json()) as { id: string; url: string }
    }
    const begin = () => post('begin', { server: 'far', principal: 'local' })

    /** Where a browser ends whose login is refused with these words; each address is good for one answer. */
    const refusedWith = async (description: string): Promise<string> => {
      const { url } = await post('open', { id: (await begin()).id, principal: 'local' })
      refusal = description
      return (await fetch(url, { redirect: 'manual' })).headers.get('location') ?? ''
    }

    test('what an authorization server says when it refuses a login, in the dialog', async () => {
      site.allow(/422 \(Unprocessable Entity\)/)
      const page = await site.openConsole('connect/logins/far')
      await page.getByRole('button', { name: 'Log in…' }).click()
      const dialog = dialogOf(page)
      await dialog.getByRole('button', { name: 'paste the final address' }).click()
      const field = dialog.getByRole('textbox', { name: 'Paste the address' })
      for (const payload of GROUPS) {
        await field.fill(await refusedWith(payload))
        await dialog.getByRole('button', { name: 'Finish' }).click()
        await dialog
          .getByRole('alert')
          .filter({ hasText: payload.replaceAll('\0', '') })
          .waitFor()
      }
      await expectNoPayloadRan(page)
    }, 120_000)

    test('what an authorization server says when it refuses a login, on the page that its answer leads to', async () => {
      site.allow(/status of 40\d|request to http:\/\/127/)
      const page = await site.openConsole('connect/logins/far')
      for (const payload of GROUPS) {
        refusal = payload
        await page.goto((await begin()).url)
        await expect.poll(() => page.locator('body').textContent()).toContain('did not grant access')
        expect(await page.locator('body').textContent()).toContain(payload.slice(0, 40))
        expect(await page.evaluate('globalThis.hacked')).toBeUndefined()
        expect(await page.locator('body :is(script, iframe, object, embed, img, svg, form)').count()).toBe(0)
      }
    }, 120_000)
  },
  { config: () => ({ mcpServers: { far: { url: login.url } } }) },
)
