import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { scriptedMember, toolsOf } from '../../test/support/scripted-member.ts'
import { toolsIn, workspaceOf } from '../../test/support/workspace.ts'
import { NEWEST_LEGACY } from '../protocol/revisions.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const SERVER_INFO = 'io.modelcontextprotocol/serverInfo'
const never = () => new Promise<never>(() => {})

test('several members are shown as one server with the capabilities of all', async () => {
  const a = scriptedMember('a', { capabilities: { tools: {}, extensions: { 'x/y': {} } }, instructions: 'Be A.' })
  const b = scriptedMember('b', { capabilities: { completions: {} }, revision: NEWEST_LEGACY })
  const w = workspaceOf([a, b])
  expect(await w.ask('server/discover')).toMatchObject({
    resultType: 'complete',
    capabilities: { tools: { listChanged: true }, completions: {}, extensions: { 'x/y': {} } },
    instructions: expect.stringContaining('## a\n\nBe A.'),
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { [SERVER_INFO]: { name: 'dragoman' } },
  })
  w.close()
})

test('a single member is shown as it is', async () => {
  const answer = { resultType: 'complete', capabilities: { tools: {} }, instructions: 'Me.', ttlMs: 7, x: [1] }
  const w = workspaceOf([scriptedMember('a', { answers: { 'server/discover': () => answer } })])
  expect(await w.ask('server/discover')).toEqual(answer)
  w.close()
})

test('the ttl of a single member is passed on as far as it remains', async () => {
  const answer = { resultType: 'complete', capabilities: { tools: {} }, ttlMs: 60_000, cacheScope: 'public' }
  const a = scriptedMember('a', { answers: { 'server/discover': () => answer } })
  const w = workspaceOf([a])
  expect(await w.ask('server/discover')).toEqual(answer)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await w.ask('server/discover')).toEqual({ ...answer, ttlMs: 40_000 })
  expect(a.count('server/discover')).toBe(1)
  w.close()
})

test('a client waits at most twelve seconds, and only once for the same server', async () => {
  const a = scriptedMember('a', { answers: { 'server/discover': never } })
  const b = scriptedMember('b', { instructions: 'Be B.', answers: { 'tools/list': () => ({ tools: toolsOf('x') }) } })
  const w = workspaceOf([a, b])
  const asking = w.ask('server/discover')
  await vi.advanceTimersByTimeAsync(12_000)
  expect(await asking).toMatchObject({ instructions: expect.stringContaining('## b'), ttlMs: 0 })
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['b__x'])
  await w.ask('server/discover')
  w.close()
})

test('if no server answers in time, tools, prompts and resources are offered', async () => {
  const w = workspaceOf([
    scriptedMember('a', { answers: { 'server/discover': never } }),
    scriptedMember('b', { answers: { 'server/discover': never } }),
  ])
  const asking = w.ask('server/discover')
  await vi.advanceTimersByTimeAsync(12_000)
  const listChanged = { listChanged: true }
  expect(await asking).toMatchObject({
    capabilities: { tools: listChanged, prompts: listChanged, resources: listChanged },
  })
  w.close()
})

test('a member that the token hides is left out', async () => {
  const [a, b] = [scriptedMember('a', { instructions: 'A.' }), scriptedMember('b', { instructions: 'B.' })]
  const w = workspaceOf([a, b])
  const policy = { allow: {}, deny: { servers: ['b'] }, readOnly: false }
  expect((await w.ask('server/discover', {}, { policy })).instructions).not.toContain('## b')
  expect(b.asked).toEqual([])
  w.close()
})

test('configured instructions that name a hidden server are not shown', async () => {
  const members = [scriptedMember('files', { instructions: 'F.' }), scriptedMember('secret_db', { instructions: 'S.' })]
  const w = workspaceOf(members, { instructions: 'Use files for notes. Secrets are in Secret-DB.' })
  const denying = (server: string) => ({ policy: { allow: {}, deny: { servers: [server] }, readOnly: false } })
  expect((await w.ask('server/discover', {}, denying('secret_db'))).instructions).toMatch(/## files\n\nF\.$/)
  expect((await w.ask('server/discover', {}, denying('other'))).instructions).toContain('Secret-DB')
  expect((await w.ask('server/discover')).instructions).toContain('Secret-DB')
  w.close()
})

test('configured instructions that name no hidden server are shown to all callers', async () => {
  const w = workspaceOf([scriptedMember('db'), scriptedMember('files')], { instructions: 'The databases are slow.' })
  const policy = { allow: {}, deny: { servers: ['db'] }, readOnly: false }
  expect((await w.ask('server/discover', {}, { policy })).instructions).toBe('The databases are slow.')
  w.close()
})

test('a token that may see no server of a workspace gets no instructions that name one', async () => {
  const w = workspaceOf([scriptedMember('db', { instructions: 'D.' })], { instructions: 'Ask db.' })
  const policy = { allow: { servers: [] }, deny: {}, readOnly: false }
  expect((await w.ask('server/discover', {}, { policy })).instructions).toBeUndefined()
  w.close()
})

test('a workspace that replaces another starts with its cached lists of the same servers', async () => {
  const lists = { 'tools/list': () => ({ tools: toolsOf('x') }) }
  const [a, b] = [scriptedMember('a', { answers: lists }), scriptedMember('b', { answers: lists })]
  const before = workspaceOf([a, b])
  await before.ask('tools/list')
  const other = scriptedMember('b', { answers: lists })
  const after = workspaceOf([a, other], {}, { previous: before })
  before.close()
  expect(toolsIn(await after.ask('tools/list'))).toEqual(['a__x', 'b__x'])
  expect([a.count('tools/list'), other.count('tools/list')]).toEqual([1, 1])
  after.close()
})

test('a list that is cut off is reported until it is complete', async () => {
  let isRound = true
  const a = scriptedMember('a', {
    answers: { 'tools/list': () => ({ tools: toolsOf('x'), ...(isRound && { nextCursor: 'again' }) }) },
  })
  const said: (string | undefined)[] = []
  const w = workspaceOf(
    [a, scriptedMember('b')],
    {},
    { onListFault: (server, reason) => said.push(reason && `${server}: ${reason}`) },
  )
  expect(toolsIn(await w.ask('tools/list'))).toEqual(['a__x'])
  isRound = false
  await vi.advanceTimersByTimeAsync(6000)
  await w.ask('tools/list')
  await vi.advanceTimersByTimeAsync(10)
  expect(said).toEqual([expect.stringContaining('a: its list of tools: its cursors repeat'), undefined])
  w.close()
})
