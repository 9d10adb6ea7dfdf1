import { describe, expect, test } from 'vitest'
import { scriptedMember } from '../../../test/support/scripted-member.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { createMemberList } from '../catalog/member-list.ts'
import { buildMergedList, type MergedList } from '../catalog/merged-list.ts'
import { createPolicy } from '../policy/policy.ts'
import { createToolSearch } from './search-tools.ts'
import { writeFoundTools } from './tool-text.ts'

const listOf = (servers: Readonly<Record<string, readonly PlainObject[]>>): MergedList =>
  buildMergedList(
    Object.entries(servers).map(([server, tools]) => {
      const items = tools.map(tool => {
        const definition = Json.of(tool)
        return { original: String(tool.name), native: definition, shown: definition }
      })
      return { member: scriptedMember(server), list: createMemberList('tools', MODERN, { items }) }
    }),
    { kind: 'tools', revision: MODERN, style: 'prefix', servers: Object.keys(servers), rules: createPolicy() },
  )

const tool = (name: string, description: string, properties: PlainObject = {}): PlainObject => ({
  name,
  description,
  inputSchema: { type: 'object', properties },
})

const searching = (list: MergedList, instructions: Readonly<Record<string, string>> = {}) => {
  const search = createToolSearch()
  const find = (query: string, limit = 5) => search(list, query, { limit, about: ({ server }) => instructions[server] })
  const names = async (query: string, limit?: number): Promise<string[]> => {
    const found = await find(query, limit)
    return found.kind === 'tools' ? found.items.map(({ exposed }) => exposed) : []
  }
  const text = async (query: string): Promise<string> => writeFoundTools(list, await find(query), () => undefined)
  return { find, names, text }
}

const OFFICE = listOf({
  mail: [
    tool('send_message', 'Sends an e-mail to one or more people.', { recipient: { type: 'string' } }),
    tool('listMailboxes', 'Lists the folders of an account.'),
  ],
  chat: [
    tool('post', 'Posts text to a channel.', { channel_id: { type: 'string' } }),
    tool('nachricht', 'Verschickt eine Nachricht an einen Kanal. Über das Netz.'),
    tool('搜索消息', '在频道中搜索消息。'),
    tool('поиск', 'Ищет сообщения в каналах.'),
  ],
})

describe('a tool is found', () => {
  test.each([
    ['send an email', 'mail__send_message'],
    ['sending emails to people', 'mail__send_message'],
    ['mailboxes', 'mail__listMailboxes'],
    ['recipient', 'mail__send_message'],
    ['channel id', 'chat__post'],
    ['listmailboxes', 'mail__listMailboxes'],
    ['uber', 'chat__nachricht'],
    ['сообщения', 'chat__'],
    ['频道消息', 'chat__'],
    ['搜', 'chat__'],
  ])('by %j', async (query, expected) => {
    const [first = ''] = await searching(OFFICE).names(query)
    expect(first.startsWith(expected)).toBe(true)
  })

  test('by the name and the instructions of its server', async () => {
    const list = listOf({ jira: [tool('read', 'Reads an entry.')], other: [tool('read', 'Reads an entry.')] })
    expect(await searching(list).names('jira entry')).toEqual(['jira__read', 'other__read'])
    const { names } = searching(list, { other: 'Manages tickets of the support team.' })
    expect((await names('support tickets'))[0]).toBe('other__read')
  })

  test('also if another one has the same description, in an order that stays', async () => {
    const list = listOf({ b: [tool('copy', 'Copies a file.')], a: [tool('copy', 'Copies a file.')] })
    expect(await searching(list).names('copy a file')).toEqual(['a__copy', 'b__copy'])
  })

  test('with its parameters, its purpose and what it needs', async () => {
    const list = listOf({
      files: [
        {
          ...tool('remove', 'Removes a file. There is no way back.', { path: { type: 'string' } }),
          annotations: { destructiveHint: true },
        },
      ],
    })
    expect(await searching(list).text('remove file')).toBe(
      'Tools that match. Call one with call_tool, or by its name if it is listed.\n\nfiles__remove(path?: string)\n  Removes a file.\n  destructive',
    )
  })
})

describe('a query', () => {
  test.each(['', '   ', '?!…', '\u0000', '🙂'])('of %j shows which servers there are', async query => {
    expect(await searching(OFFICE, { mail: 'Reads and writes mail. Slowly.' }).text(query)).toBe(
      'Search for what a tool should do. There are 6 tools:\n- mail: 2. Reads and writes mail.\n- chat: 4',
    )
  })

  test('without a match says so', async () => {
    expect(await searching(OFFICE).text('quaternion')).toContain('No tool matches')
  })

  test('of 10 KB is answered', async () => {
    const words = Array.from({ length: 2000 }, (_, i) => `word${i}`).join(' ')
    expect((await searching(OFFICE).names(`${words} mailboxes`)).length).toBeLessThan(2)
    expect(await searching(OFFICE).names(`mailboxes ${'x'.repeat(10_000)}`)).toEqual(['mail__listMailboxes'])
  })
})

describe('a definition', () => {
  test.each<[string, PlainObject]>([
    ['a list of itself', { $defs: { l: { type: 'array', items: { $ref: '#/$defs/l' } } }, $ref: '#/$defs/l' }],
    ['itself or text', { $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }, { type: 'string' }] } }, $ref: '#/$defs/a' }],
    ['a reference to itself', { $defs: { r: { $ref: '#/$defs/r' } }, $ref: '#/$defs/r' }],
    ['the whole schema', { $ref: '#' }],
  ])('whose parameter is %s is written', async (_, { $defs = {}, $ref }) => {
    const inputSchema = { type: 'object', $defs, properties: { value: { $ref } } }
    const list = listOf({ a: [{ name: 'odd', inputSchema }] })
    expect(await searching(list).text('odd value')).toContain('a__odd(value?: ')
  })

  test('with many alternatives in each other is written', async () => {
    const level = (depth: number): PlainObject =>
      depth === 0
        ? { type: 'string' }
        : { anyOf: Array.from({ length: 20 }, () => ({ $ref: `#/$defs/l${depth - 1}` })) }
    const $defs = Object.fromEntries(Array.from({ length: 20 }, (_, depth) => [`l${depth}`, level(depth)]))
    const list = listOf({ a: [{ name: 'wide', inputSchema: { $defs, properties: { v: { $ref: '#/$defs/l19' } } } }] })
    expect((await searching(list).text('wide')).length).toBeLessThan(1000)
  })

  test('with 1 MB of values or text is cut', async () => {
    const values = Array.from({ length: 50_000 }, (_, i) => `value number ${i}`)
    const list = listOf({
      a: [
        tool('pick', 'word '.repeat(200_000), {
          one: { enum: values },
          other: { enum: ['x'.repeat(1_000_000)] },
          text: { type: 'string', description: 'y '.repeat(500_000) },
        }),
      ],
    })
    const text = await searching(list).text('pick')
    expect(text).toContain('"value number 0"')
    expect(text.length).toBeLessThan(1500)
  })
})

test('10,000 tools are searched while other work goes on', async () => {
  const list = listOf(
    Object.fromEntries(
      Array.from({ length: 10 }, (_, s) => [
        `server${s}`,
        Array.from({ length: 1000 }, (__, i) =>
          tool(`tool_${i}`, `Works on the ${i === 777 && s === 7 ? 'tortoise' : `thing ${i}`} of server ${s}.`),
        ),
      ]),
    ),
  )
  const { names } = searching(list)
  let ticks = 0
  const timer = setInterval(() => ticks++, 1)
  expect((await names('feed the tortoise'))[0]).toBe('server7__tool_777')
  clearInterval(timer)
  expect(ticks).toBeGreaterThan(0)
  expect((await names('tool 5', 50)).length).toBe(50)
})
