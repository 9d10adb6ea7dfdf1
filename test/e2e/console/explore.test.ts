import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { REVISIONS } from '../../../src/protocol/revisions.ts'
import { axe, describeConsole, showAs } from '../../support/console.ts'

const CALL = 'Control+Enter'

/** Opens a tool of the demo as a client of a revision and waits for its form. */
const toolPath = (name: string, revision = '2026-07-28'): string =>
  `explore/demo/tools/${name}${revision === '2026-07-28' ? '' : `?revision=${revision}`}`

const waitForForm = (page: Page): Promise<void> => page.getByRole('button', { name: /^Call/ }).waitFor()

const callTool = async (page: Page): Promise<void> => {
  await waitForForm(page)
  await page.keyboard.press(CALL)
}
/** A field of a form; with proposals it is a combobox. */
const field = (page: Page, name: string) => {
  const detail = page.locator('.item-detail')
  return detail.getByRole('textbox', { name, exact: true }).or(detail.getByRole('combobox', { name, exact: true }))
}
const resultOf = (page: Page) => page.locator('.result')

describeConsole('Explore', site => {
  test('lists what each target offers, with counts, and searches it', async () => {
    const page = await site.openConsole('explore')
    await page.getByRole('tab', { name: /^Tools 6\d$/ }).waitFor()
    await page.getByLabel('Workspace or server').selectOption('demo')
    await page.getByRole('tab', { name: /^Tools 42$/ }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('echo')
    await page.getByText('1 of 42').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await field(page, 'message').waitFor()
    expect(page.url()).toContain('#/explore/demo/tools/example-echo')
    await page.keyboard.type('typed at once')
    expect(await field(page, 'message').inputValue()).toBe('typed at once')
    await page.goBack()
    await page.getByRole('button', { name: /^Call/ }).waitFor({ state: 'detached' })
  })

  test('j, k, Enter and Esc move between list and form', async () => {
    const page = await site.openConsole('explore/demo/tools')
    await page.getByText('example-ping').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await field(page, 'message').waitFor()
    await page.keyboard.press('k')
    await page.getByRole('heading', { name: 'No arguments' }).waitFor()
    await page.keyboard.press(CALL)
    await resultOf(page).getByText('pong').waitFor()
    await page.keyboard.press('Escape')
    await resultOf(page).waitFor({ state: 'detached' })
  })

  describe('results', () => {
    const expected: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
      test_simple_text: page => resultOf(page).getByText('This is a simple text response').waitFor(),
      test_image_content: page => resultOf(page).getByRole('img', { name: 'image (image/png)' }).waitFor(),
      test_audio_content: page => resultOf(page).locator('audio[src^="data:audio/wav;base64,"]').waitFor(),
      test_embedded_resource: page => resultOf(page).getByText('This is an embedded resource content.').waitFor(),
      test_structured_content: page => resultOf(page).getByText('22.5').first().waitFor(),
      test_error_handling: page => resultOf(page).getByText('the tool reported an error').waitFor(),
      test_multiple_content_types: async page => {
        await resultOf(page).getByText('Multiple content types test:').waitFor()
        await resultOf(page).getByRole('img').waitFor()
        await resultOf(page).getByText('123').waitFor()
      },
    }
    test('of every content kind are shown, and their text', async () => {
      const page = await site.openConsole('explore/demo/tools')
      for (const [name, isShown] of Object.entries(expected)) {
        await page.goto(`${site.origin}/#/${toolPath(name)}`)
        await page.getByRole('heading', { name, exact: true }).waitFor()
        await callTool(page)
        await isShown(page)
        expect(await axe(page), name).toEqual([])
        await page.getByRole('button', { name: 'Raw' }).click()
        expect(await page.getByRole('group', { name: 'the message' }).textContent()).toContain('"jsonrpc"')
      }
    })

    test('a link to a resource opens it here', async () => {
      const page = await site.openConsole(toolPath('test_resource_link'))
      await callTool(page)
      await resultOf(page).getByRole('link', { name: 'static-text' }).click()
      await page.getByRole('button', { name: /^Read Ctrl/ }).click()
      await resultOf(page).getByText('This is the content of the static text resource.').waitFor()
      expect(page.url()).toContain(encodeURIComponent('test://static-text'))
    })
  })

  test.each(REVISIONS)(
    'as a client of %s: calls with progress and log messages, answers an elicitation',
    async revision => {
      const page = await site.openConsole(toolPath('test_tool_with_logging', revision))
      await callTool(page)
      await resultOf(page).getByText('Tool with logging executed successfully').waitFor()
      expect(await page.locator('.call-head').textContent()).toContain(revision)
      await page.getByRole('button', { name: /^Log 3/ }).click()
      await page.getByText('Tool processing data').waitFor()
      await page.getByRole('tab', { name: 'Server' }).click()
      await page.getByRole('region', { name: 'Instructions' }).getByText('Call example-ping').waitFor()

      await page.goto(`${site.origin}/#/${toolPath('test_elicitation', revision)}`)
      await field(page, 'message').fill('Who are you?')
      await page.keyboard.press(CALL)
      const question = page.getByRole('region', { name: 'The server asks you' })
      await question.getByText('Who are you?').waitFor()
      await question.getByRole('button', { name: 'Accept' }).click()
      expect(await question.getByText('Required').count()).toBe(2)
      await field(page, 'username').fill('ann')
      await field(page, 'email').fill('ann@example.com')
      await question.getByRole('button', { name: 'Accept' }).click()
      await resultOf(page).getByText('action=accept, content={"username":"ann","email":"ann@example.com"}').waitFor()
    },
  )

  test.each(['2026-07-28', '2025-11-25'])('%s: declines, dismisses, samples, sends roots', async revision => {
    const page = await site.openConsole(toolPath('test_streaming_elicitation', revision))
    await callTool(page)
    await page.getByRole('button', { name: 'Decline' }).click()
    await resultOf(page).getByText('action=decline').waitFor()
    await callTool(page)
    await page.getByRole('button', { name: 'Dismiss' }).click()
    await resultOf(page).getByText('action=cancel').waitFor()

    await page.goto(`${site.origin}/#/${toolPath('test_sampling', revision)}`)
    await field(page, 'prompt').fill('What is the capital of France?')
    await page.keyboard.press(CALL)
    const sampling = page.getByRole('region', { name: 'The server asks the model of this client' })
    await sampling.getByText('What is the capital of France?').waitFor()
    await sampling.getByLabel('Answer of the model').fill('Paris')
    await sampling.getByRole('button', { name: 'Send answer' }).click()
    await resultOf(page).getByText('LLM response: Paris').waitFor()

    await page.goto(`${site.origin}/#/${toolPath('test_input_required_result_list_roots', revision)}`)
    await callTool(page)
    await page.getByLabel('URI of root 1').fill('file:///work')
    await page.getByRole('button', { name: 'Send 1 root' }).click()
    await resultOf(page).getByText('Roots: file:///work').waitFor()
  })

  test('three questions at once, and two rounds', async () => {
    const page = await site.openConsole(toolPath('test_input_required_result_multiple_inputs'))
    await callTool(page)
    await field(page, 'name').fill('Ann')
    await page.getByLabel('Answer of the model').fill('Hello')
    await page.getByRole('button', { name: 'Accept' }).click()
    await page.getByRole('button', { name: 'Send answer' }).click()
    await page.getByRole('button', { name: /^Send \d root/ }).click()
    await resultOf(page).getByText('Hello Ann has 1 roots').waitFor()

    await page.goto(`${site.origin}/#/${toolPath('test_input_required_result_multi_round')}`)
    await callTool(page)
    await field(page, 'name').fill('Ann')
    await page.getByRole('button', { name: 'Accept' }).click()
    await field(page, 'color').fill('blue')
    await page.getByRole('button', { name: 'Accept' }).click()
    await resultOf(page).getByText('Ann likes blue').waitFor()
  })

  test('a link is opened only by the user, who sees its host', async () => {
    site.allow(/example\.com/)
    const page = await site.openConsole(toolPath('test_elicitation_url', '2025-11-25'))
    await page.context().route('https://example.com/**', route => route.fulfill({ body: 'a page' }))
    await callTool(page)
    const opened = page.context().waitForEvent('page')
    await page.getByRole('button', { name: 'Open example.com' }).click()
    const other = await opened
    expect(await other.evaluate('globalThis.opener')).toBeNull()
    await resultOf(page).getByText('action=accept').waitFor()
  })

  describe('keys in the answer to a question', () => {
    const ask = async (path: string, message?: string): Promise<Page> => {
      const page = await site.openConsole(path)
      if (message !== undefined) await field(page, 'message').fill(message)
      await callTool(page)
      await page.getByRole('region', { name: 'The server asks' }).first().waitFor()
      return page
    }
    const callsTab = (page: Page, count: number) => page.getByRole('tab', { name: `Calls ${count}`, exact: true })

    test('Ctrl+Enter accepts it, and calls nothing again', async () => {
      const page = await ask(toolPath('test_elicitation'), 'Who are you?')
      await field(page, 'username').fill('ann')
      await page.keyboard.press(CALL)
      await page.getByRole('region', { name: 'The server asks you' }).getByText('Required').waitFor()
      await field(page, 'email').fill('ann@example.com')
      await page.keyboard.press(CALL)
      await resultOf(page).getByText('action=accept, content={"username":"ann","email":"ann@example.com"}').waitFor()
      await callsTab(page, 1).waitFor()
    })

    test('Esc leaves the field; the call and the answer stay, also while another call is shown', async () => {
      const page = await ask(toolPath('test_elicitation'), 'Who are you?')
      await field(page, 'username').fill('ann')
      await page.keyboard.press('Escape')
      expect(await field(page, 'username').inputValue()).toBe('ann')
      expect(await page.evaluate('document.activeElement.matches("input")')).toBe(false)
      await page.locator('.call-head').getByText('Waits for your answer').waitFor()
      await page.keyboard.press('Escape') // closes the details
      await page.locator('.item-detail').waitFor({ state: 'detached' })
      await page.getByRole('link', { name: 'Answer' }).click()
      expect(await field(page, 'username').inputValue()).toBe('ann')
      await page.goto(`${site.origin}/#/${toolPath('test_elicitation')}`)
      await page.getByRole('button', { name: /^Call again/ }).click()
      await callsTab(page, 2).waitFor()
      await page.getByRole('link', { name: 'Answer' }).first().click()
      expect(await field(page, 'username').inputValue()).toBe('ann')
      await field(page, 'email').fill('ann@example.com')
      await page.keyboard.press(CALL)
      await resultOf(page).getByText('action=accept, content={"username":"ann"').waitFor()
    })

    test('it sends a sampling and the roots, too; on a button it calls nothing', async () => {
      const page = await site.openConsole(toolPath('test_sampling'))
      await field(page, 'prompt').fill('What is the capital of France?')
      await page.keyboard.press(CALL)
      await page.getByLabel('Answer of the model').fill('Paris')
      await page.keyboard.press(CALL)
      await resultOf(page).getByText('LLM response: Paris').waitFor()
      await page.goto(`${site.origin}/#/${toolPath('test_input_required_result_list_roots')}`)
      await callTool(page)
      await page.getByLabel('URI of root 1').fill('file:///work')
      await page.keyboard.press(CALL)
      await resultOf(page).getByText('Roots: file:///work').waitFor()
      await page.goto(`${site.origin}/#/${toolPath('test_elicitation')}`)
      await field(page, 'message').fill('Well?')
      await page.keyboard.press(CALL)
      await page.getByRole('button', { name: 'Decline' }).press(CALL)
      await callsTab(page, 3).waitFor()
      await page.getByRole('button', { name: 'Decline' }).click()
      await resultOf(page).getByText('action=decline').waitFor()
      await callsTab(page, 3).waitFor()
    })

    test('keys of the page do nothing behind a dialog or a menu', async () => {
      const page = await ask(toolPath('test_elicitation'), 'Who are you?')
      for (const key of [CALL, 'Escape']) {
        await page.getByRole('button', { name: /^What the client declares/ }).click()
        await page.getByRole('dialog').waitFor()
        await page.keyboard.press(key) // is a key of the dialog, too
        await page.getByRole('dialog').waitFor({ state: 'detached' })
      }
      await page.getByRole('button', { name: 'Copy as' }).click()
      await page.getByRole('menuitem', { name: 'curl' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('menuitem', { name: 'curl' }).waitFor({ state: 'hidden' })
      await page.locator('.call-head').getByText('Waits for your answer').waitFor()
      await callsTab(page, 1).waitFor()
    })
  })

  test('a question that waits is announced on other views', async () => {
    const page = await site.openConsole(toolPath('test_elicitation'))
    await field(page, 'message').fill('Still there?')
    await page.keyboard.press(CALL)
    await page.getByRole('region', { name: 'The server asks you' }).waitFor()
    await page.getByRole('tab', { name: /^Prompts/ }).click()
    await page.getByRole('link', { name: 'Answer' }).click()
    await page.getByRole('button', { name: 'Decline' }).click()
    await resultOf(page).getByText('action=decline').waitFor()
  })

  test('forms: problems while typing, JSON and back, kept for each tool', async () => {
    const page = await site.openConsole(toolPath('test_x_mcp_header'))
    await field(page, 'level').fill('3x')
    await page.getByText('Expected a whole number').waitFor()
    await page.keyboard.press(CALL)
    await page.getByText('2 problems in the arguments.').waitFor()
    await field(page, 'level').fill('3')
    await field(page, 'region').fill('eu')
    await page.getByRole('button', { name: 'JSON' }).click()
    const editor = page.getByRole('textbox', { name: 'Arguments' })
    expect(JSON.parse(await editor.inputValue())).toEqual({ level: 3, region: 'eu' })
    await editor.fill('{"region": "eu", }')
    await page.getByText('Line 1, column 18: expected a name in double quotes, found "}"').waitFor()
    expect(await page.getByRole('button', { name: 'Form' }).isDisabled()).toBe(true)
    await editor.fill('{"region": "Zürich", "level": 9007199254740993}')
    await page.getByRole('button', { name: 'Form' }).click()
    expect(await field(page, 'level').inputValue()).toBe('9007199254740993')
    await page.goto(`${site.origin}/#/${toolPath('example-echo')}`)
    await field(page, 'message').waitFor()
    await page.goBack()
    expect(await field(page, 'region').inputValue()).toBe('Zürich')
    await page.keyboard.press(CALL)
    await page.locator('.call-head').getByText('Done').waitFor()
    await page.getByRole('button', { name: /^Messages/ }).click()
    await page.getByText('9007199254740993').first().waitFor()
  })

  test('prompts complete arguments and show messages', async () => {
    const page = await site.openConsole('explore/demo/prompts/test_prompt_with_arguments')
    await field(page, 'arg1').fill('te')
    await page.getByText('2 proposed').waitFor()
    expect(await page.locator('datalist option').count()).toBe(2)
    await page.keyboard.press(CALL)
    await page.getByText('Required', { exact: true }).waitFor()
    await field(page, 'arg2').fill('two')
    await page.keyboard.press(CALL)
    await resultOf(page).getByText("Prompt with arguments: arg1='te', arg2='two'").waitFor()
    expect(await axe(page)).toEqual([])
  })

  test.each(['2026-07-28', '2025-11-25'])('%s: a watched resource is read again after each update', async revision => {
    const query = revision === '2026-07-28' ? '' : `?revision=${revision}`
    const page = await site.openConsole(
      `explore/demo/resources/${encodeURIComponent('test://watched-resource')}${query}`,
    )
    await page.getByRole('button', { name: 'Watch' }).click()
    await page.getByText('live', { exact: true }).waitFor()
    const other = await site.openConsole(toolPath('test_trigger_resource_update'))
    await callTool(other)
    await resultOf(other).waitFor()
    await page.getByText('live · 1 update').waitFor()
    await resultOf(page)
      .getByText(/Updated \d+ times/)
      .waitFor()
    await page.getByRole('button', { name: 'Stop watching' }).click()
    await page.getByText(/^live/).waitFor({ state: 'detached' })
  })

  test('a template makes the URI of a resource', async () => {
    const page = await site.openConsole(`explore/demo/templates/${encodeURIComponent('test://template/{id}/data')}`)
    await field(page, 'id').fill('1')
    await page.getByText('3 proposed').waitFor()
    await field(page, 'id').fill('a b')
    await page.getByText('test://template/a%20b/data').waitFor()
    await page.keyboard.press(CALL)
    await resultOf(page).getByText('"Data for ID: a b"').waitFor()
  })

  test('a list that changes is read again, and what was entered stays', async () => {
    const page = await site.openConsole(toolPath('test_trigger_tool_change'))
    await callTool(page)
    await page.getByRole('tab', { name: /^Tools 43$/ }).waitFor()
    await page.goto(`${site.origin}/#/${toolPath('test_changing_tool')}`)
    await callTool(page)
    await resultOf(page).getByText('Here for now').waitFor()
    const other = await site.openConsole(toolPath('test_trigger_tool_change'))
    await callTool(other)
    await page.getByText('“demo” no longer lists “test_changing_tool”').waitFor()
    await resultOf(page).getByText('Here for now').waitFor()
  })

  test('requests are copied', async () => {
    const page = await site.openConsole(toolPath('example-echo'))
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await field(page, 'message').fill("it's")
    for (const [form, text] of [
      ['curl', "it'\\''s"],
      ['dragoman command', 'dragoman call http://127.0.0.1:'],
      ['TypeScript, SDK v2', "pin: '2026-07-28'"],
      ['TypeScript, SDK v1', "'@modelcontextprotocol/sdk/client/index.js'"],
      ['JSON-RPC', '"method": "tools/call"'],
    ] as const) {
      await page.getByRole('button', { name: 'Copy as' }).click()
      await page.getByRole('menuitem', { name: form }).click()
      await page.getByText(`Copied as ${form}`).waitFor()
      expect(await page.evaluate('navigator.clipboard.readText()')).toContain(text)
    }
  })

  test('the calls of the page are kept and can be made again', async () => {
    const page = await site.openConsole(toolPath('example-echo'))
    await field(page, 'message').fill('first')
    await page.keyboard.press(CALL)
    await resultOf(page).getByText('Echo: first').waitFor()
    await field(page, 'message').fill('second')
    await page.keyboard.press(CALL)
    await resultOf(page).getByText('Echo: second').waitFor()
    await page.getByRole('tab', { name: /^Calls 2$/ }).click()
    await page
      .getByRole('row', { name: /example-echo/ })
      .nth(1)
      .click()
    await page.getByRole('button', { name: 'Open with these arguments' }).click()
    expect(await field(page, 'message').inputValue()).toBe('first')
  })

  test('no serious violation on any view, light and wide, dark and narrow', async () => {
    const page = await site.openConsole('explore/demo')
    for (const view of ['tools/json_schema_2020_12_tool', 'server', 'calls', 'prompts', 'resources', 'templates']) {
      await page.goto(`${site.origin}/#/explore/demo/${view}`)
      const [kind = ''] = view.split('/')
      await page.getByRole('tab', { name: new RegExp(`^${kind}`, 'i'), selected: true }).waitFor()
      await page.locator('.list, .item-detail, .empty').first().waitFor()
      await showAs(page, 'light', 1280)
      expect(await axe(page), `${view}, light`).toEqual([])
      await showAs(page, 'dark', 400)
      expect(await axe(page), `${view}, dark`).toEqual([])
    }
  })
})
