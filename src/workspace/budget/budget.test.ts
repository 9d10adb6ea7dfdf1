import { afterEach, describe, expect, test, vi } from 'vitest'
import { scriptedMember, toolsOf } from '../../../test/support/scripted-member.ts'
import { toolsIn, workspaceOf } from '../../../test/support/workspace.ts'
import type { WorkspaceConfig } from '../../config/snapshot.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { EVERYTHING } from '../../protocol/policy.ts'
import { REVISIONS } from '../../protocol/revisions.ts'
import type { PlainObject } from '../../wire/json/json.ts'

const OWN = ['search_tools', 'describe_tool', 'call_tool']
const BUDGET = { tokens: 1500, favourites: [] }
const issue = {
  name: 'create_issue',
  description: 'Creates an issue in a repository. Titles are short.',
  inputSchema: {
    type: 'object',
    properties: { repository: { type: 'string' }, title: { type: 'string' }, labels: { type: 'array' } },
    required: ['repository', 'title'],
  },
}
const filler = (count: number): PlainObject[] =>
  Array.from({ length: count }, (_, i) => ({
    name: `filler_${i}`,
    description: `Number ${i} of many tools without a use. ${'It says a lot. '.repeat(10)}`,
    inputSchema: { type: 'object' },
  }))

const member = (server: string, tools: readonly PlainObject[], call?: (params: unknown) => PlainObject) =>
  scriptedMember(server, {
    answers: {
      'tools/list': () => ({ tools }),
      'tools/call': params =>
        call?.(params.toValue()) ?? { resultType: 'complete', content: [{ type: 'text', text: 'done' }] },
    },
  })

const budgeted = (
  tools: readonly PlainObject[] = [issue, ...filler(40)],
  rules: Partial<WorkspaceConfig> = {},
  call?: (params: unknown) => PlainObject,
) => {
  const [github, other] = [member('github', tools, call), member('other', toolsOf('ping'))]
  return { github, other, ...workspaceOf([github, other], { budget: BUDGET, ...rules }) }
}

type Budgeted = ReturnType<typeof budgeted>

const call = (w: Pick<Budgeted, 'ask'>, name: string, args: PlainObject, caller?: Partial<Caller>) =>
  w.ask('tools/call', { name, arguments: args }, caller)
const textOf = (result: Record<string, unknown>): string =>
  ((result.content ?? []) as { text: string }[]).map(({ text }) => text).join('\n')

const open: { close(): void }[] = []
const opened = <T extends { close(): void }>(workspace: T): T => {
  open.push(workspace)
  return workspace
}
afterEach(() => {
  for (const workspace of open.splice(0)) workspace.close()
  vi.useRealTimers()
})

describe('the list', () => {
  test('is the usual one if it fits', async () => {
    const w = opened(budgeted([issue]))
    expect(toolsIn(await w.ask('tools/list'))).toEqual(['github__create_issue', 'other__ping'])
  })

  test.each(REVISIONS)('has three tools and the favourites in %s if it does not', async revision => {
    const favourites = ['github/create_*', 'other/*']
    const w = opened(budgeted(undefined, { budget: { tokens: 1500, favourites } }))
    const list = await w.ask('tools/list', {}, { revision })
    expect(toolsIn(list)).toEqual([...OWN, 'github__create_issue', 'other__ping'])
    expect(await w.ask('tools/list', {}, { revision })).toEqual(list)
  })

  test('takes as many favourites as fit, in the order of their patterns, and shows them by name', async () => {
    const favourites = ['github/filler_1?', 'github/create_issue']
    const w = opened(budgeted(undefined, { budget: { tokens: 1000, favourites } }))
    const [a, b, c, ...names] = toolsIn(await w.ask('tools/list'))
    expect([a, b, c]).toEqual(OWN)
    expect(names.length).toBeGreaterThan(2)
    expect(names.length).toBeLessThan(11)
    expect(names).toEqual([...names].sort())
  })

  test('is the same byte for byte when a server orders its tools differently', async () => {
    const tools = [issue, ...filler(40)]
    const favourites = ['github/*']
    const [one, two] = [tools, tools.toReversed()].map(each =>
      opened(budgeted(each, { budget: { tokens: 3000, favourites: [...favourites, 'other/*'] } })),
    ) as [Budgeted, Budgeted]
    const names = async (w: Budgeted) => toolsIn(await w.ask('tools/list')).slice(0, 4)
    expect(await names(one)).toEqual([...OWN, 'github__create_issue'])
    expect((await names(two)).slice(0, 3)).toEqual(OWN)
  })

  test('has all tools for a client that asks for them, and else says how many are left out', async () => {
    const w = opened(budgeted())
    const all = await w.ask('tools/list', { _meta: { 'dragoman/allTools': true } })
    expect(toolsIn(all)).toHaveLength(3 + 42)
    const short = await w.ask('tools/list', { _meta: { 'dragoman/allTools': false, 'dragoman/servers': true } })
    expect(short._meta).toEqual({ 'dragoman/allTools': 42, 'dragoman/servers': ['', '', ''] })
    expect(await w.ask('tools/list')).not.toHaveProperty('_meta')
  })

  test('gives its own tools another name where a server has theirs', async () => {
    const tools = [...toolsOf('search_tools', 'dragoman__search_tools'), ...filler(40)]
    const budget = { tokens: 1500, favourites: ['*/search_tools'] }
    const w = opened(workspaceOf([member('a', tools), member('b', [])], { names: 'plain', budget }))
    const names = toolsIn(await w.ask('tools/list'))
    expect(names[0]).toMatch(/^dragoman__[0-9a-f]{8}_search_tools$/)
    expect(names.slice(1)).toEqual(['describe_tool', 'call_tool', 'search_tools'])
    expect(textOf(await call(w, names[0] ?? '', { query: 'filler' }))).toContain('filler_')
    expect(textOf(await call(w, 'search_tools', {}))).toBe('done')
  })

  test('changes for listeners only if what they see changes', async () => {
    vi.useFakeTimers()
    const tools = [issue, ...filler(40)]
    const w = opened(budgeted(tools, { budget: { tokens: 1500, favourites: ['github/create_issue'] } }))
    await w.ask('tools/list')
    const listener = w.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await vi.advanceTimersByTimeAsync(1000)
    const change = async (): Promise<number> => {
      w.github.say('notifications/tools/list_changed')
      await vi.advanceTimersByTimeAsync(2000)
      return listener.notices.filter(method => method === 'notifications/tools/list_changed').length
    }
    tools.push(...filler(41).slice(40))
    expect(await change()).toBe(0)
    expect(textOf(await call(w, 'search_tools', { query: 'number 40' }))).toContain('github__filler_40')
    tools[0] = { ...issue, description: 'Creates an issue.' }
    expect(await change()).toBe(1)
  })
})

describe('call_tool', () => {
  test.each([['github__create_issue'], ['github/create_issue'], ['create_issue']])(
    '%s reaches the server as a direct call does',
    async name => {
      const w = opened(budgeted())
      const args = { repository: 'r', title: 't' }
      const meta = { _meta: { progressToken: 1, own: 'kept' } }
      await w.ask('tools/call', { name: 'call_tool', arguments: { name, arguments: args }, ...meta })
      await w.ask('tools/call', { name, arguments: args, ...meta })
      const [through, direct] = w.github.asked.filter(({ method }) => method === 'tools/call')
      expect(through?.params.toValue()).toEqual({ name: 'create_issue', arguments: args, ...meta })
      expect(direct?.params.toValue()).toEqual(through?.params.toValue())
    },
  )

  test('without arguments sends none', async () => {
    const w = opened(budgeted())
    await call(w, 'call_tool', { name: 'other__ping', arguments: null })
    expect(w.other.asked.at(-1)?.params.toValue()).toEqual({ name: 'ping' })
  })

  test('names the nearest tools if there is none of that name', async () => {
    const w = opened(budgeted())
    expect(await call(w, 'call_tool', { name: 'github_createIssue' })).toMatchObject({
      code: -32602,
      message: 'Unknown tool: github_createIssue. Did you mean github__create_issue?',
    })
    expect(await call(w, 'call_tool', { name: 'x'.repeat(10_000) })).toMatchObject({ code: -32602 })
  })

  test('gives the signature with an error about arguments', async () => {
    const invalid = rpcError('invalidParams', 'title is missing')
    const w = opened(budgeted(undefined, {}, () => ({ ...invalid }) as PlainObject))
    const signature = 'github__create_issue(repository: string, title: string, labels?: any[])'
    const wrong = { name: 'github__create_issue', arguments: { repository: 'r' } }
    expect(await call(w, 'call_tool', wrong)).toMatchObject({
      code: -32602,
      message: `title is missing. Signature: ${signature}`,
    })
    const failed = { content: [{ type: 'text', text: 'Input validation error' }], isError: true }
    const t = opened(budgeted(undefined, {}, () => failed))
    expect(textOf(await call(t, 'call_tool', wrong))).toBe(
      `Input validation error\nArguments missing: title. Signature: ${signature}`,
    )
    const right = { name: 'github__create_issue', arguments: { repository: 'r', title: 't' } }
    expect(textOf(await call(t, 'call_tool', right))).toBe('Input validation error')
  })

  test.each([[{}], [{ name: 5 }], [{ name: 'other__ping', arguments: [] }], [{ name: 'other__ping', arguments: 'x' }]])(
    'rejects %j',
    async args => {
      const w = opened(budgeted())
      expect(await call(w, 'call_tool', args)).toMatchObject({ code: -32602 })
      expect(w.other.count('tools/call')).toBe(0)
    },
  )

  test('says that a tool is gone that was there when it was found', async () => {
    const tools: PlainObject[] = [issue, ...filler(40)]
    const rules = { policy: { ...EVERYTHING, deny: { tools: ['github/never'] } } }
    const w = opened(budgeted(tools, rules))
    expect(textOf(await call(w, 'search_tools', { query: 'create issue' }))).toContain('github__create_issue')
    tools.shift()
    w.github.say('notifications/tools/list_changed')
    await w.ask('tools/list')
    await call(w, 'call_tool', { name: 'github__create_issues' }) // an unknown name fetches the lists again
    expect(await call(w, 'call_tool', { name: 'github__create_issue' })).toMatchObject({
      code: -32602,
      message: expect.stringContaining('Unknown tool: github__create_issue'),
    })
  })
})

describe('what a policy hides', () => {
  const policy = { ...EVERYTHING, deny: { tools: ['github/create_issue'] } }
  test('is not found, described or called', async () => {
    const w = opened(budgeted())
    const caller = { policy }
    expect(textOf(await call(w, 'search_tools', { query: 'create issue repository' }, caller))).not.toContain('issue')
    expect(await call(w, 'describe_tool', { name: 'github__create_issue' }, caller)).toMatchObject({ isError: true })
    expect(await call(w, 'call_tool', { name: 'github__create_issue' }, caller)).toMatchObject({ code: -32602 })
    expect(w.github.count('tools/call')).toBe(0)
    const all = await w.ask('tools/list', { _meta: { 'dragoman/allTools': true } }, caller)
    expect(toolsIn(all)).not.toContain('github__create_issue')
    expect(textOf(await call(w, 'search_tools', { query: 'create issue' }))).toContain('github__create_issue')
  })
})

test('describe_tool gives the definition', async () => {
  const w = opened(budgeted())
  expect(JSON.parse(textOf(await call(w, 'describe_tool', { name: 'create_issue' })))).toMatchObject({
    ...issue,
    name: 'github__create_issue',
  })
  expect(textOf(await call(w, 'describe_tool', { name: 'create_isue' }))).toContain(
    'Did you mean github__create_issue?',
  )
  expect(await call(w, 'describe_tool', {})).toMatchObject({ isError: true })
})

test('a tool that needs a scope says so when it is found, and is not called without it', async () => {
  const scopes = new Map([['write', { tools: ['github/create_*'] }]])
  const github = member('github', [issue, ...filler(40)])
  const w = opened(workspaceOf([github], { budget: BUDGET }, { scopes }))
  const caller = { scopes: new Set(['read']) }
  expect(textOf(await call(w, 'search_tools', { query: 'create issue' }, caller))).toContain(
    'needs a token with the scope write',
  )
  const through = { name: 'create_issue', arguments: { repository: 'r', title: 't' } }
  const direct = await call(w, 'create_issue', through.arguments, caller)
  expect(direct).toMatchObject({ data: { reason: 'insufficient_scope', scopes: ['write'] } })
  expect(await call(w, 'call_tool', through, caller)).toMatchObject({ code: direct.code, data: direct.data })
  expect(github.count('tools/call')).toBe(0)
})
