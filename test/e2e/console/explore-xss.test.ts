import { afterAll, expect, test } from 'vitest'
import { describeConsole } from '../../support/console.ts'
import { type ExhibitTool, exhibit } from '../../support/exhibit-server.ts'
import { scriptedServer } from '../../support/scripted-server.ts'
import { expectNoPayloadRan, XSS_PAYLOADS } from '../../support/xss-corpus.ts'

const CALL = 'Control+Enter'
const ALL = XSS_PAYLOADS.join('\n\n')
const byName = (value: unknown): Record<string, unknown> =>
  Object.fromEntries(XSS_PAYLOADS.map(payload => [payload, value]))
const asIcons = XSS_PAYLOADS.map(src => ({ src, mimeType: src }))

const SCHEMA = {
  type: 'object',
  title: ALL,
  description: ALL,
  properties: {
    ...Object.fromEntries(
      XSS_PAYLOADS.map(payload => [
        payload,
        { type: 'string', title: payload, description: payload, pattern: payload },
      ]),
    ),
    choice: { enum: XSS_PAYLOADS, description: ALL },
    titled: { oneOf: XSS_PAYLOADS.map((title, at) => ({ const: at, title })) },
    several: { type: 'array', items: { enum: XSS_PAYLOADS.slice(0, 20) } },
    fixed: { const: ALL },
    text: { type: 'string', default: ALL },
    kind: { oneOf: XSS_PAYLOADS.map(title => ({ title, type: 'object', properties: { a: { const: title } } })) },
    elsewhere: { $ref: ALL },
  },
}
const OPEN_SCHEMA = { type: 'object', properties: { text: { type: 'string', default: ALL } } }

const CONTENT = [
  ...XSS_PAYLOADS.map(text => ({ type: 'text', text })),
  ...XSS_PAYLOADS.map(mimeType => ({ type: 'image', mimeType, data: 'AAAA' })),
  {
    type: 'image',
    mimeType: 'image/svg+xml',
    data: Buffer.from(
      `<svg xmlns="http://www.w3.org/2000/svg" onload="globalThis.hacked=1"><script>parent.hacked=1</script></svg>`,
    ).toString('base64'),
  },
  { type: 'image', mimeType: 'image/png', data: ALL },
  { type: 'audio', mimeType: 'audio/wav"onerror="globalThis.hacked=1', data: 'AAAA' },
  ...XSS_PAYLOADS.slice(0, 20).map(uri => ({
    type: 'resource_link',
    uri,
    name: uri,
    title: uri,
    description: uri,
    mimeType: uri,
  })),
  { type: 'resource', resource: { uri: ALL, mimeType: 'text/html', text: ALL } },
  {
    type: 'resource',
    resource: { uri: 'javascript:globalThis.hacked=1', mimeType: 'text/html', blob: 'PHNjcmlwdD4=' },
  },
  { type: ALL, [ALL]: ALL, annotations: byName(ALL) },
]

const tool = (name: string, run: ExhibitTool['run'], more: object = {}): ExhibitTool => ({
  definition: { name, inputSchema: OPEN_SCHEMA, ...more },
  run,
})
const asks = (method: string, params: object) => ({
  resultType: 'input_required',
  inputRequests: { [ALL]: { method, params } },
  requestState: ALL,
})

const TOOLS: readonly ExhibitTool[] = [
  tool(
    'definition',
    { content: [] },
    {
      title: ALL,
      description: ALL,
      inputSchema: SCHEMA,
      outputSchema: SCHEMA,
      icons: asIcons,
      annotations: { title: ALL, readOnlyHint: true, [ALL]: ALL },
      _meta: byName(ALL),
    },
  ),
  ...XSS_PAYLOADS.map((title, at) => tool(`named_${at}`, { content: [] }, { title, description: title })),
  tool('content', ({ answer }) => answer({ content: CONTENT.slice(0, 60), _meta: byName(ALL) })),
  tool('content_more', ({ answer }) => answer({ content: CONTENT.slice(60) })),
  tool('structured', {
    content: [],
    structuredContent: { rows: XSS_PAYLOADS.map(payload => ({ [payload]: payload, b: payload })) },
  }),
  tool('reports_error', { isError: true, content: [{ type: 'text', text: ALL }] }),
  tool('fails', ({ fail }) => fail(-32000, ALL, byName(ALL))),
  tool('talks', ({ stream, token }) => {
    const { notify } = stream()
    for (const text of XSS_PAYLOADS) {
      notify('notifications/progress', { progressToken: token, progress: 1, total: 2, message: text })
      notify('notifications/message', { level: text, logger: text, data: text })
    }
  }),
  tool('asks_form', asks('elicitation/create', { message: ALL, requestedSchema: SCHEMA })),
  tool(
    'asks_link',
    asks('elicitation/create', {
      mode: 'url',
      message: ALL,
      url: 'javascript:globalThis.hacked=1',
      elicitationId: 'x',
    }),
  ),
  tool(
    'asks_model',
    asks('sampling/createMessage', {
      systemPrompt: ALL,
      maxTokens: 1,
      [ALL]: ALL,
      messages: XSS_PAYLOADS.map(text => ({ role: text, content: { type: 'text', text } })),
    }),
  ),
]

const server = await scriptedServer(
  exhibit({
    title: ALL,
    info: { name: ALL, version: ALL, description: ALL, websiteUrl: ALL },
    instructions: ALL,
    tools: TOOLS,
    prompts: XSS_PAYLOADS.map((title, at) => ({
      name: `prompt_${at}`,
      title,
      description: ALL,
      arguments: [{ name: title, title, description: ALL }],
    })),
    resources: XSS_PAYLOADS.map((title, at) => ({
      uri: `test://${at}`,
      name: title,
      title,
      description: ALL,
      mimeType: title,
    })),
    templates: XSS_PAYLOADS.map((title, at) => ({
      uriTemplate: `test://${at}/{id}`,
      name: title,
      title,
      description: ALL,
    })),
    read: uri => ({ contents: [{ uri, mimeType: 'text/html', text: ALL }] }),
    prompt: () => ({
      description: ALL,
      messages: XSS_PAYLOADS.map(text => ({ role: text, content: { type: 'text', text } })),
    }),
  }),
)
afterAll(() => server.close())

/** Tools, and what is shown when they have answered. */
const ANSWERS = [
  ['content', '.result'],
  ['content_more', '.result'],
  ['structured', '.result'],
  ['reports_error', '.result'],
  ['fails', '.call-failure'],
  ['talks', '.log-lines li:nth-child(30)'],
  ['asks_form', '.question'],
  ['asks_link', '.question'],
  ['asks_model', '.question'],
] as const
const REQUESTS = [
  'prompts/prompt_0',
  'prompts/prompt_6',
  'resources/test%3A%2F%2F3',
  `resources/${encodeURIComponent('javascript:globalThis.hacked=1')}`,
  `templates/${encodeURIComponent('test://2/{id}')}`,
]

describeConsole(
  'text of servers on the page Explore',
  site => {
    test('the corpus is large enough', () => {
      expect(new Set(XSS_PAYLOADS).size).toBeGreaterThanOrEqual(30)
    })

    test('definitions, schemas and forms', async () => {
      const page = await site.openConsole('explore/bad/tools/definition')
      await page.getByRole('button', { name: /^Call/ }).waitFor()
      for (const fold of await page.locator('.fold > summary').all()) await fold.click()
      await expectNoPayloadRan(page)
      await page.keyboard.press(CALL)
      await page.getByRole('button', { name: 'JSON' }).click()
      await expectNoPayloadRan(page)
    })

    test('lists', async () => {
      const page = await site.openConsole('explore/bad/tools')
      for (const kind of ['tools', 'prompts', 'resources', 'templates', 'server', 'calls']) {
        await page.goto(`${site.origin}/#/explore/bad/${kind}`)
        await page.getByRole('tab', { name: new RegExp(`^${kind}`, 'i'), selected: true }).waitFor()
        await page.locator('.list-row, .server-view, .empty').first().waitFor()
        await expectNoPayloadRan(page)
      }
    })

    test('what tools answer: contents, errors, notifications and questions', async () => {
      const page = await site.openConsole('explore/bad/tools')
      for (const [name, shown] of ANSWERS) {
        await page.goto(`${site.origin}/#/explore/bad/tools/${name}`)
        await page.getByRole('heading', { name, exact: true }).waitFor()
        await page.keyboard.press(CALL)
        await page.locator(shown).first().waitFor()
        if (name === 'asks_link') expect(await page.getByRole('button', { name: /^Open/ }).isDisabled()).toBe(true)
        for (const view of await page.locator('.text-block .segments button:has-text("Markdown")').all())
          await view.click()
        await expectNoPayloadRan(page)
        for (const tab of ['Raw', 'Messages', 'Log']) {
          const button = page.getByRole('button', { name: new RegExp(`^${tab}`) }).first()
          if ((await button.count()) === 0) continue
          await button.click()
          await expectNoPayloadRan(page)
        }
      }
    }, 120_000)

    test('prompts, resources and templates', async () => {
      const page = await site.openConsole('explore/bad/prompts')
      for (const path of REQUESTS) {
        await page.goto(`${site.origin}/#/explore/bad/${path}`)
        await page.locator('.result').waitFor({ state: 'detached' }) // that of the one before
        await page.locator('.call-actions').waitFor()
        const input = page.locator('.item-detail input').first()
        if (await input.count()) {
          await input.fill('x')
          await page.locator('datalist option').first().waitFor({ state: 'attached' })
        }
        await page.keyboard.press(CALL)
        await page.locator('.result').waitFor()
        await expectNoPayloadRan(page)
      }
    })

    test('an address with a payload', async () => {
      site.allow(/status of 40\d/)
      const page = await site.openConsole('explore')
      for (const payload of XSS_PAYLOADS) {
        const part = encodeURIComponent(payload)
        await page.goto(`${site.origin}/#/explore/${part}/tools/${part}`)
        await expect.poll(() => page.title()).toContain(payload.trim().slice(0, 20))
        await page.getByRole('alert').first().waitFor()
      }
      await expectNoPayloadRan(page)
    })
  },
  { config: { mcpServers: { bad: { url: server.url } } } },
)
