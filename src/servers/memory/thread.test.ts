import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { isLast, noticesOf, talk } from '../../../test/support/embedded.ts'
import { temporaryFolder } from '../../../test/support/memory/sqlite-store.ts'
import type { Frame, Upstream } from '../../protocol/exchange.ts'
import { SILENT } from '../../telemetry/log.ts'
import type { PlainObject } from '../../wire/json/json.ts'
import { startInThread } from '../thread/upstream.ts'
import type { MemoryOptions } from './start.ts'

const start = (folder: string): Upstream =>
  startInThread({
    name: 'memory',
    entry: new URL('./thread-entry', import.meta.url),
    data: { tenant: 'workspace', group: 'main', version: '1', folder } satisfies Omit<MemoryOptions, 'log'>,
    log: SILENT,
  })

// One for most tests: from source, a thread takes a second to load.
let server: Upstream
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-memory-'))
  server = start(folder)
})
afterAll(async () => {
  await server.close()
  await rm(folder, { recursive: true, force: true })
})

const callOf = (name: string, args: PlainObject) => ['tools/call', { name, arguments: args }] as const
const call = async (server: Upstream, name: string, args: PlainObject = {}): Promise<string> =>
  JSON.stringify(await (await talk(server, ...callOf(name, args))).result())

const SENTENCES = 'met Bob in Berlin on Monday. They talked about Acme Corporation and the project Apollo.'
const longText = (salt: number, length = 100_000): string => {
  const lines = Array.from({ length: Math.ceil(length / 100) }, (_, i) => `Person${i % 5000} ${SENTENCES} ${salt}-${i}`)
  return lines.join('\n').slice(0, length)
}

/** How long work took, and the longest time this thread could do nothing else meanwhile; both in ms. */
const stallOf = async (work: () => Promise<unknown>): Promise<{ took: number; stall: number }> => {
  let [last, stall] = [performance.now(), 0]
  const timer = setInterval(() => {
    const now = performance.now()
    stall = Math.max(stall, now - last)
    last = now
  }, 1)
  const begun = performance.now()
  await work()
  const took = performance.now() - begun
  await delay(5) // so that a stall at the end is seen
  clearInterval(timer)
  return { took, stall }
}

test('adding, exporting and forgetting long texts does not block this thread', async () => {
  await call(server, 'get_status')
  const stalls: { took: number; stall: number }[] = []
  const measure = async (name: string, args: PlainObject): Promise<void> => {
    stalls.push(await stallOf(() => call(server, name, args)))
  }
  await measure('add_memory', { name: 'one', episode_body: longText(1, 500_000) })
  await measure('add_memory', { name: 'two', episode_body: longText(2, 500_000) })
  await measure('export_memory', {})
  await measure('forget', { subject: 'Person12' })
  const longest = Math.max(...stalls.map(({ stall }) => stall))
  const total = stalls.reduce((sum, { took }) => sum + took, 0)
  expect(longest).toBeLessThan(total / 8) // on this thread each of them was one stall of a quarter of it and more
}, 60_000)

test('an added episode is found, and subscribers are notified', async () => {
  const listening = await talk(server, 'subscriptions/listen', { notifications: { resourcesListChanged: true } })
  const isNotice = (frame: Frame): frame is Frame => frame.kind === 'notice'
  await listening.frame(isNotice)
  await call(server, 'add_memory', { name: 'Job', episode_body: 'Ann joined Acme.' })
  expect(await call(server, 'search_memory_facts', { query: 'Acme' })).toContain('Ann joined Acme')
  await listening.frame(isNotice, 1)
  expect(noticesOf(listening).map(({ method }) => method)).toEqual([
    'notifications/subscriptions/acknowledged',
    'notifications/resources/list_changed',
  ])
  listening.abort.abort({ kind: 'gone' })
})

test('a rejected, invalid or cancelled call does not disturb the next', async () => {
  expect(await call(server, 'add_memory', { name: 'x', episode_body: ' ' })).toContain('nothing to remember')
  const failure = await (await talk(server, 'no/such/method')).failure()
  expect(failure).toEqual({ code: -32601, message: 'Method not found: no/such/method', data: undefined })
  const cancelled = await talk(server, ...callOf('add_memory', { name: 'x', episode_body: longText(1) }))
  cancelled.abort.abort({ kind: 'cancelled' })
  expect(await call(server, 'get_status')).toContain('ok')
  expect(cancelled.frames).toEqual([])
})

test('closing waits for accepted calls, ends subscriptions and rejects new calls', async () => {
  const folder = await temporaryFolder()
  const server = start(folder)
  await call(server, 'add_memory', { name: 'Job', episode_body: 'Zoe joined Initech.' })
  const listening = await talk(server, 'subscriptions/listen', { notifications: { resourcesListChanged: true } })
  const waiting = await talk(server, ...callOf('add_memory', { name: 'x', episode_body: longText(1) }))
  await server.close()
  expect(await waiting.frame(isLast)).toMatchObject({ kind: expect.stringMatching(/result|failure/) })
  await listening.frame(isLast) // it ends with a result, as a shutdown says
  await expect(talk(server, 'tools/list')).rejects.toThrow('closing')
  const next = start(folder)
  onTestFinished(() => next.close())
  const found = await call(next, 'search_memory_facts', { query: 'Initech', max_facts: 1 })
  expect(found).toContain('Zoe joined Initech')
}, 60_000)
