import { afterAll, expect, test } from 'vitest'
import { axe, describeConsole } from '../../support/console.ts'
import { type ExhibitTool, exhibit } from '../../support/exhibit-server.ts'
import { longestDelay, RESPONSIVE_MS } from '../../support/longest-delay.ts'
import { scriptedServer } from '../../support/scripted-server.ts'

const CALL = 'Control+Enter'
const MIB = 2 ** 20

const node = {
  type: 'object',
  properties: {
    label: { type: 'string' },
    children: { type: 'array', items: { $ref: '#/$defs/node' } },
    parent: { $ref: '#/$defs/node' },
  },
  required: ['label'],
}

const TOOLS: readonly ExhibitTool[] = [
  {
    definition: { name: 'large', inputSchema: { type: 'object' } },
    run: { content: [{ type: 'text', text: `begin ${'0123456789abcdef'.repeat((20 * MIB) / 16)}` }] },
  },
  {
    definition: { name: 'recursive', inputSchema: { ...node, $defs: { node } } },
    run: ({ arrived, answer }) =>
      answer({ content: [{ type: 'text', text: JSON.stringify(arrived.body.params?.arguments) }] }),
  },
  {
    definition: {
      name: 'shapes',
      inputSchema: {
        type: 'object',
        properties: {
          contact: {
            oneOf: [
              {
                title: 'Mail',
                properties: { kind: { const: 'mail' }, address: { type: 'string', format: 'email' } },
                required: ['kind', 'address'],
              },
              {
                title: 'Phone',
                properties: { kind: { const: 'phone' }, number: { type: 'string' } },
                required: ['kind', 'number'],
              },
            ],
          },
          tags: { type: 'array', items: { type: 'string' } },
          mood: {
            oneOf: [
              { const: 1, title: 'Good' },
              { const: 2, title: 'Bad' },
            ],
          },
          when: { type: 'string', format: 'date' },
          note: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null },
          limits: { type: 'object', additionalProperties: { type: 'integer' } },
        },
        required: ['contact', 'tags'],
      },
    },
    run: ({ arrived, answer }) => answer({ structuredContent: arrived.body.params?.arguments ?? {}, content: [] }),
  },
  {
    definition: { name: 'table', inputSchema: { type: 'object' } },
    run: {
      structuredContent: {
        rows: [
          { city: 'Rome', people: 2800000 },
          { city: 'Oslo', people: 700000 },
          { city: 'Cairo', people: 10000000 },
        ],
      },
      content: [{ type: 'text', text: '# Cities\n\n* **Rome**\n* Oslo' }],
    },
  },
  {
    definition: {
      name: 'hostile',
      description: '>'.repeat(20_000),
      inputSchema: {
        type: 'object',
        properties: { word: { type: 'string', pattern: '^(?:a?){40}a{40}$', default: `${'a'.repeat(39)}b` } },
      },
    },
    run: {
      content: [
        { type: 'text', text: `# Quotes\n\n${'>'.repeat(20_000)}` },
        { type: 'text', text: `# Emphasis\n\n${'*a_'.repeat(30_000)}` },
        {
          type: 'text',
          text: `[${Array.from({ length: 2 }, () => `{"deep":${'['.repeat(9000)}${']'.repeat(9000)}}`)}]`,
        },
      ],
    },
  },
  {
    definition: { name: 'declared', inputSchema: { type: 'object' } },
    run: ({ arrived, answer }) => {
      const meta = arrived.body.params?._meta as Record<string, unknown>
      const text = JSON.stringify(meta['io.modelcontextprotocol/clientCapabilities'])
      answer({ content: [{ type: 'text', text: `declares ${text}` }] })
    },
  },
  {
    definition: { name: 'slow', inputSchema: { type: 'object' } },
    run: ({ stream, token }) => {
      const { notify } = stream()
      notify('notifications/progress', { progressToken: token, progress: 1, total: 4, message: 'first step' })
      notify('notifications/message', { level: 'warning', logger: 'slow', data: 'working' })
    },
  },
]

const server = await scriptedServer(exhibit({ tools: TOOLS }))
const many = await scriptedServer(
  exhibit({
    tools: Array.from({ length: 10_000 }, (_, at) => ({
      definition: { name: `tool_${at}`, description: `Does thing ${at}`, inputSchema: node },
      run: { content: [] },
    })),
  }),
)
afterAll(async () => {
  await Promise.all([server.close(), many.close()])
})

describeConsole(
  'Explore with unusual servers',
  site => {
    test('10,000 tools are listed, searched and walked through without a wait', async () => {
      const page = await site.openConsole('explore/many/tools')
      await page.getByRole('tab', { name: /^Tools 10k$/ }).waitFor()
      const walk = async () => {
        for (let step = 0; step < 10; step++) await page.keyboard.press('j')
        await page.keyboard.press('/')
        await page.keyboard.type('thing 99')
        await page.getByText(/\d+ of 10k/).waitFor()
        await page.keyboard.press('ArrowDown')
        await page.keyboard.press('End')
        await page.getByRole('heading', { name: 'tool_9999' }).waitFor()
        await page.getByRole('option', { name: /tool_9990/ }).click()
        await page.getByRole('heading', { name: 'tool_9990' }).waitFor()
      }
      expect(await longestDelay(page, [walk])).toBeLessThan(RESPONSIVE_MS)
    })

    test('a list is read page by page if the user wants it', async () => {
      const page = await site.openConsole('explore/many/tools')
      const tab = (count: string) => page.getByRole('tab', { name: `Tools ${count}`, exact: true }).waitFor()
      await tab('10k')
      await page.getByRole('button', { name: 'What the client declares' }).click()
      await page.keyboard.press('Escape')
      expect(await page.locator('dialog').count()).toBe(0)
      await page.getByRole('button', { name: 'What the client declares' }).click()
      expect(await axe(page)).toEqual([])
      await page.getByRole('checkbox', { name: /^Page by page/ }).check()
      await page.getByRole('button', { name: 'Use' }).click()
      await page.getByText('1,000 tools so far').waitFor()
      await page.getByRole('button', { name: 'Next page' }).click()
      await page.getByText('2,000 tools so far').waitFor()
      await page.getByRole('button', { name: 'What the client declares (changed)' }).click()
      await page.getByRole('button', { name: 'Defaults' }).click()
      await page.getByRole('button', { name: 'Use' }).click()
      await tab('10k')
      await page.getByRole('button', { name: 'Next page' }).waitFor({ state: 'detached' })
    })

    test('what the client declares is chosen, and copied with a request', async () => {
      const page = await site.openConsole('explore/odd/tools/declared')
      const declared = async (): Promise<unknown> => {
        await page.keyboard.press(CALL)
        const raw = page.locator('.result')
        await raw.getByText('declares').waitFor()
        return JSON.parse(((await raw.getByText('declares').textContent()) ?? '').replace('declares ', ''))
      }
      await page.getByRole('button', { name: /^Call/ }).waitFor()
      expect(await declared()).toMatchObject({ elicitation: { form: {}, url: {} }, sampling: {} })
      await page.getByRole('button', { name: 'What the client declares' }).click()
      const dialog = page.locator('dialog[open]')
      await dialog.getByRole('checkbox', { name: 'Sampling', exact: true }).uncheck()
      await dialog.getByRole('checkbox', { name: 'Roots' }).uncheck()
      await dialog.getByRole('checkbox', { name: 'Elicitation by a link' }).uncheck()
      await dialog.getByRole('checkbox', { name: 'io.modelcontextprotocol/ui' }).check()
      const extensions = dialog.getByRole('textbox', { name: 'Extensions as JSON' })
      const typed = await extensions.inputValue()
      await extensions.fill('[1]')
      await dialog.getByText('Expected an object whose members are objects').waitFor()
      expect(await dialog.getByRole('button', { name: 'Use' }).isDisabled()).toBe(true)
      await extensions.fill(typed.replace('{', '{ "example.com/x": { "level": 2 },'))
      await dialog.getByRole('button', { name: 'Use' }).click()
      await expect.poll(declared).toMatchObject({
        elicitation: { form: {} },
        extensions: {
          'example.com/x': { level: 2 },
          'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] },
        },
      })
      expect(await declared()).not.toHaveProperty('sampling')
    })

    test('a result of 20 MiB is cut, can be saved, and leaves the page responsive', async () => {
      const page = await site.openConsole('explore/odd/tools/large')
      await page.getByRole('button', { name: /^Call/ }).waitFor()
      await page.keyboard.press(CALL)
      await page.getByText(/The first .* of 20\.0 MiB/).waitFor()
      const isCut = page.getByText(/The first .* of 20\.0 MiB/)
      const switchViews = async () => {
        await page.getByRole('button', { name: 'Raw' }).click()
        await isCut.waitFor()
        await page.getByRole('button', { name: 'Result', exact: true }).click()
        await isCut.waitFor()
      }
      expect(await longestDelay(page, [switchViews])).toBeLessThan(RESPONSIVE_MS)
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download' }).click(),
      ])
      const stream = await download.createReadStream()
      let size = 0
      for await (const chunk of stream) size += (chunk as Buffer).length
      expect(size).toBe(20 * MIB + 6)
    })

    test('a recursive schema is a form, as deep as the user goes', async () => {
      const page = await site.openConsole('explore/odd/tools/recursive')
      await page.getByRole('textbox', { name: 'label', exact: true }).fill('root')
      await page.getByRole('button', { name: 'Add children' }).click()
      await page.getByRole('button', { name: 'Add item' }).click()
      await page.getByRole('textbox', { name: 'label', exact: true }).nth(1).fill('first')
      await page.getByRole('button', { name: 'Add children' }).click()
      await page.getByRole('button', { name: 'Add item' }).first().click()
      await page.getByRole('textbox', { name: 'label', exact: true }).nth(2).fill('deep')
      await page.getByRole('button', { name: 'Add item' }).last().click()
      await page.getByRole('textbox', { name: 'label', exact: true }).nth(3).fill('second')
      await page.getByRole('button', { name: 'Move children 2 up' }).click()
      await page.keyboard.press(CALL)
      await page.locator('.result').getByRole('button', { name: 'Text' }).click()
      const text = await page.getByRole('group', { name: 'Content 1', exact: true }).textContent()
      expect(JSON.parse(text ?? '')).toEqual({
        label: 'root',
        children: [{ label: 'second' }, { label: 'first', children: [{ label: 'deep' }] }],
      })
    })

    test('alternatives, lists, titled choices, dates, null and free members', async () => {
      const page = await site.openConsole('explore/odd/tools/shapes')
      const detail = page.locator('.item-detail')
      await detail.getByRole('textbox', { name: 'address', exact: true }).fill('ann')
      await page.getByText('Expected email, such as ann@example.com').waitFor()
      await detail.getByLabel('Kind of contact').selectOption('Phone')
      await detail.getByRole('textbox', { name: 'number', exact: true }).fill('123')
      await detail.getByRole('button', { name: 'Add item' }).click()
      await detail.getByRole('textbox', { name: 'tags 1' }).fill('one')
      await detail.getByRole('combobox', { name: 'mood' }).selectOption('Bad')
      await detail.getByLabel('when').fill('2026-02-28')
      await detail.getByRole('button', { name: 'Add limits' }).click()
      await detail.getByRole('button', { name: 'Add member' }).click()
      await detail.getByLabel('Name of member name').fill('cpu')
      await detail.getByLabel('Name of member name').blur()
      await detail.getByRole('textbox', { name: 'cpu', exact: true }).fill('18446744073709551615')
      await page.keyboard.press(CALL)
      await page.getByRole('button', { name: 'Raw' }).click()
      const raw = (await page.getByRole('group', { name: 'the message' }).textContent()) ?? ''
      expect(server.arrivals.at(-1)?.text).toContain('"cpu":18446744073709551615')
      expect((JSON.parse(raw) as { result: { structuredContent: object } }).result.structuredContent).toMatchObject({
        contact: { kind: 'phone', number: '123' },
        tags: ['one'],
        mood: 2,
        when: '2026-02-28',
        note: null,
      })
    })

    test('the log level and _meta of calls are chosen; sessions are pinged and told of changed roots', async () => {
      const page = await site.openConsole('explore/odd/tools/declared?revision=2026-07-28')
      const choose = async (): Promise<void> => {
        await page.getByRole('button', { name: /^What the client declares/ }).click()
        await page.getByLabel('Log level').selectOption('error')
        await page.getByLabel('_meta of calls as JSON').fill('{"example.com/tenant": "blue"}')
        await page.getByRole('button', { name: 'Use', exact: true }).click()
      }
      await choose()
      await page.getByRole('button', { name: /^Call/ }).waitFor()
      await page.keyboard.press(CALL)
      await page
        .locator('.result')
        .getByText(/^declares/)
        .waitFor()
      expect(server.arrivals.at(-1)?.body.params?._meta).toMatchObject({
        'example.com/tenant': 'blue',
        'io.modelcontextprotocol/logLevel': 'error',
      })
      await page.getByRole('tab', { name: 'Server' }).click()
      await page.getByRole('button', { name: 'Ping' }).click()
      await page.getByText(/^server\/discover answered in/).waitFor()

      const sent: string[] = []
      page.on('request', request => void sent.push(request.postData() ?? ''))
      await page.getByLabel('Revision of the client').selectOption('2025-11-25')
      await page.getByRole('button', { name: 'Announce the change' }).waitFor()
      await page.getByRole('button', { name: 'Ping' }).click()
      await page.getByText(/^ping answered in/).waitFor()
      await page.getByRole('button', { name: 'Add root' }).click()
      await page.getByLabel('URI of root 2').fill('file:///srv')
      await page.getByRole('button', { name: 'Announce the change' }).click()
      await page.getByText('The server was told that the roots have changed').waitFor()
      expect(sent.some(text => text.includes('"notifications/roots/list_changed"'))).toBe(true)
      expect(await axe(page)).toEqual([])
    })

    test('texts and patterns that take for ever leave the page alive', async () => {
      const page = await site.openConsole('explore/odd/tools/hostile')
      await page.getByRole('button', { name: /^Call/ }).waitFor()
      await page.getByLabel('word').pressSequentially('c')
      await page.keyboard.press(CALL)
      await page.locator('.result').getByText('*a_*a_').waitFor()
      await page.locator('.result').getByText('>>>>').waitFor()
      await page.locator('.result').getByText('"deep"').waitFor()
      await page.getByLabel('word').fill('still here')
    })

    test('lists of objects are tables that can be sorted, Markdown can be plain text', async () => {
      const page = await site.openConsole('explore/odd/tools/table')
      await page.getByRole('button', { name: /^Call/ }).waitFor()
      await page.keyboard.press(CALL)
      const grid = page.getByRole('grid', { name: 'Structured content' })
      await grid.getByRole('button', { name: 'people' }).click()
      expect(await grid.getByRole('row').allTextContents()).toEqual([
        'citypeople',
        'Oslo700000',
        'Rome2800000',
        'Cairo10000000',
      ])
      await page.locator('.result').getByRole('heading', { name: 'Cities' }).waitFor()
      await page.locator('.result').getByRole('button', { name: 'Text' }).click()
      await page.getByText('# Cities').waitFor()
    })

    test.each(['2026-07-28', '2025-11-25'])('%s: a call is cancelled, at the server too', async revision => {
      const page = await site.openConsole(`explore/odd/tools/slow?revision=${revision}`)
      await page.getByRole('button', { name: /^Call/ }).waitFor()
      const before = server.of('tools/call').length
      await page.keyboard.press(CALL)
      await page.getByText('25 % (1 of 4) · first step').waitFor()
      await page.getByRole('list', { name: 'Log messages' }).getByText('working').waitFor()
      expect(Number(await page.getByRole('progressbar').getAttribute('value'))).toBe(0.25)
      await page.keyboard.press('Escape')
      await page.locator('.call-head').getByText('Cancelled', { exact: true }).waitFor()
      await server.until(() => server.of('tools/call')[before]?.isGone === true, 'the end of the call')
      await page.getByRole('button', { name: /^Messages/ }).click()
      await page
        .getByText(/notifications\/cancelled|stream was closed/)
        .first()
        .waitFor()
    })

    test('a silent call ends with a message after the limit', async () => {
      const page = await site.openConsole('explore/odd/tools/slow', { isSingleUse: true })
      await page.getByRole('button', { name: /^Call/ }).waitFor()
      await page.clock.install()
      await page.getByLabel('How long a call may be silent').selectOption('Limit 10 s')
      await page.keyboard.press(CALL)
      await page.clock.runFor(1000)
      await page.getByText('first step').waitFor()
      await page.clock.runFor(11_000)
      await page.getByText('The server sent nothing for 10 s, so the call was cancelled.').waitFor()
    })

    test('a server that disappears leaves the form as it is', async () => {
      site.allow(/status of (5\d\d|4\d\d)/)
      const page = await site.openConsole('explore/odd/tools/recursive')
      await page.getByRole('textbox', { name: 'label', exact: true }).fill('kept')
      await server.close()
      await page.keyboard.press(CALL)
      await page.locator('.call-failure').waitFor()
      expect(await page.getByRole('textbox', { name: 'label', exact: true }).inputValue()).toBe('kept')
      await server.reopen()
    })
  },
  {
    config: {
      mcpServers: { odd: { url: server.url }, many: { url: many.url } },
    },
  },
)
