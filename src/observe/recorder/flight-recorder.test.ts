import { describe, expect, test } from 'vitest'
import { NEVER } from '../../protocol/cancellation.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import type { RecordingSummary } from '../../protocol/recording.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification } from '../../wire/json-rpc.ts'
import { FlightRecorder } from './flight-recorder.ts'
import type { RecordedExchange } from './recorded-exchange.ts'
import { openRecorder } from './recorder-access.ts'
import type { RecordingFilter } from './recording-query.ts'
import { createRedactor } from './redact.ts'

const MIB = 1024 * 1024
const SERVER = { name: 'files', dialect: 'stdio', revision: '2025-11-25' }

const create = (maxBytes = 2 * MIB, maxMessageBytes = 64 * 1024) => {
  const recorder = new FlightRecorder({ maxBytes, maxMessageBytes }, true)
  const access = openRecorder(recorder, { redactor: createRedactor({ names: [], secrets: () => [] }) })
  return { recorder, access }
}

const exchangeOf = (params: object, more: Partial<Exchange> = {}): Exchange => ({
  kind: 'request',
  method: 'tools/call',
  params: Json.of(params as never),
  caller: {
    workspace: 'default',
    principal: 'ann',
    revision: '2026-07-28',
    capabilities: Json.empty,
    info: Json.of({ name: 'test', version: '1' }),
    headers: new Map(),
  },
  signal: NEVER,
  sink: () => {},
  origin: { id: Json.of(7), headers: { 'mcp-method': 'tools/call', 'mcp-session-id': 'abcdefghijklmnop' } },
  ...more,
})

const RESULT: Frame = { kind: 'result', result: Json.of({ content: [{ type: 'text', text: 'done' }] }) }

/** A whole call: the request, what the server hears and answers, and the answer to the client. */
const record = (recorder: FlightRecorder, params: object = { name: 'echo' }): RecordedExchange => {
  const exchange = exchangeOf(params)
  const recording = recorder.begin(exchange, 'stateless', 'echo') as RecordedExchange
  recording.serverMessage(SERVER, 'out', 'request', 'tools/call', {
    kind: 'request',
    id: 1,
    method: 'tools/call',
    params: exchange.params,
  })
  recording.serverMessage(SERVER, 'in', 'result', undefined, { kind: 'response', id: 1, result: RESULT.result })
  recording.ended(RESULT, 2.5)
  recording.clientMessage('out', 'result', undefined, { kind: 'response', id: Json.of(7), result: RESULT.result })
  return recording
}

const newest = async (access: ReturnType<typeof create>['access']) => {
  const { recordings } = await access.query({}, 1, true)
  return access.find(recordings[0]?.id ?? '')
}

/** Everything that matches: on a slow machine a search stops before its page is full. */
const findAll = async (access: ReturnType<typeof create>['access'], filter: RecordingFilter) => {
  const found: RecordingSummary[] = []
  let before: number | undefined
  do {
    const page = await access.query({ ...filter, before }, 10, true)
    found.push(...page.recordings)
    before = page.next
  } while (before !== undefined)
  return found
}

describe('an exchange', () => {
  test('is kept with the messages of both sides as they travelled', async () => {
    const { recorder, access } = create()
    record(recorder, { name: 'echo', big: 1 })
    expect(await newest(access)).toMatchObject({
      method: 'tools/call',
      subject: 'echo',
      client: 'test 1',
      principal: 'ann',
      outcome: 'ok',
      durationMs: 2.5,
      isTranslated: true,
      servers: [SERVER],
      messages: 4,
      dropped: 0,
      all: [
        {
          side: 'client',
          direction: 'in',
          kind: 'request',
          headers: [
            ['mcp-method', 'tools/call'],
            ['mcp-session-id', 'abcdefgh…'],
          ],
          text: '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","big":1}}',
          isCut: false,
        },
        {
          side: 'server',
          server: 'files',
          text: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","big":1}}',
        },
        { side: 'server', text: '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}' },
        { side: 'client', text: '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"done"}]}}' },
      ],
    })
  })

  test('is shown while it runs, and gets messages after its end', async () => {
    const { recorder, access } = create()
    const recording = recorder.begin(exchangeOf({}), 'stdio', undefined) as RecordedExchange
    expect(await newest(access)).toMatchObject({ outcome: 'running', messages: 1 })
    recording.ended({ kind: 'failure', error: { code: -32603, message: 'broken' } }, 1)
    for (let at = 0; at < 20; at++) record(recorder) // the first one is written by then
    recording.serverMessage(
      SERVER,
      'in',
      'notification',
      'notifications/message',
      encodeNotification('notifications/message', Json.empty),
    )
    const found = access.find((await access.query({ outcome: 'error' }, 1, true)).recordings[0]?.id ?? '')
    expect(found).toMatchObject({ outcome: 'error', error: 'broken', messages: 2 })
    expect(found?.all.map(({ kind }) => kind)).toEqual(['request', 'notification'])
  })

  test('keeps the start of a large message, and says how large it was', async () => {
    const { recorder, access } = create(2 * MIB, 1024)
    record(recorder, { text: 'ü'.repeat(100_000) })
    const [request, sent] = (await newest(access))?.all ?? []
    for (const message of [request, sent]) {
      expect(message).toMatchObject({ isCut: true })
      expect(Buffer.byteLength(message?.text ?? '')).toBeLessThan(1200)
      expect(message?.bytes).toBeGreaterThan(200_000)
      expect(message?.text).toMatch(/ü$/)
    }
  })

  test('keeps a thousand messages and how it ended', async () => {
    const { recorder, access } = create()
    const recording = recorder.begin(exchangeOf({}), 'stateless', undefined) as RecordedExchange
    for (let at = 0; at < 1500; at++)
      recording.clientMessage(
        'out',
        'notification',
        'notifications/progress',
        encodeNotification('notifications/progress', Json.of({ progress: at })),
      )
    recording.clientMessage('out', 'result', undefined, { kind: 'response', id: 7, result: Json.empty })
    recording.ended(RESULT, 1)
    const found = await newest(access)
    expect([found?.all.length, found?.dropped, found?.all.at(-1)?.kind]).toEqual([1001, 501, 'result'])
  })

  test('that runs for long is kept, though others of its time are forgotten', async () => {
    const { recorder, access } = create(MIB)
    const slow = recorder.begin(exchangeOf({}), 'stateless', 'slow') as RecordedExchange
    for (let at = 0; at < 5000; at++) record(recorder, { name: 'x'.repeat(500) })
    slow.ended(RESULT, 60_000)
    slow.clientMessage('out', 'result', undefined, { kind: 'response', id: 7, result: Json.empty })
    for (let at = 0; at < 20; at++) record(recorder)
    const recordings = await findAll(access, { subject: 'slow' })
    expect(recordings).toMatchObject([{ subject: 'slow', outcome: 'ok' }])
    expect(access.find(recordings[0]?.id ?? '')?.all.map(({ kind }) => kind)).toEqual(['request', 'result'])
  })
})

describe('the memory', () => {
  test('stays within the limit for 100,000 exchanges, and keeps the latest', async () => {
    const { recorder, access } = create(4 * MIB)
    let most = 0
    for (let at = 1; at <= 100_000; at++) {
      record(recorder, { name: 'echo', arguments: { at } })
      if (at % 1000 === 0) most = Math.max(most, recorder.keptBytes)
    }
    expect(most).toBeLessThanOrEqual(4 * MIB * 1.1)
    const { kept, forgotten } = access.state()
    expect(kept + forgotten).toBe(100_000)
    expect(kept).toBeGreaterThan(4000)
    const { recordings, next } = await access.query({}, 100, true)
    expect(recordings.map(({ order }) => order)).toEqual(Array.from({ length: 100 }, (_, at) => 100_000 - at))
    expect(access.find(recordings[0]?.id ?? '')?.all[0]?.text).toContain('"at":100000')
    const second = await access.query({ before: next }, 1, true)
    expect(second.recordings[0]?.order).toBe(99_900)
  })

  test('is given back by clear, and nothing is recorded while it is off', async () => {
    const { recorder, access } = create()
    const running = recorder.begin(exchangeOf({}), 'stateless', undefined)
    record(recorder)
    access.clear()
    running?.ended(RESULT, 1)
    access.switchTo(false)
    expect(recorder.begin(exchangeOf({}), 'stateless', undefined)).toBeUndefined()
    expect(access.state()).toMatchObject({ isOn: false, kept: 0, keptBytes: 0, forgotten: 0 })
    access.switchTo(true)
    record(recorder)
    expect((await newest(access))?.all.length).toBe(4)
  })
})

/** CPU of pages from a recorder that has so many recordings. */
const cpuOfPages = async (recordings: number): Promise<number> => {
  const { recorder, access } = create(32 * MIB)
  for (let at = 0; at < recordings; at++) record(recorder, { name: 'echo', arguments: { at } })
  const begun = process.cpuUsage()
  for (let at = 0; at < 40; at++)
    await access.query(at % 2 === 0 ? {} : { server: 'files', method: 'tools/call' }, 100, true)
  return process.cpuUsage(begun).user
}

test('a page of ten thousand recordings costs about as much as one of two hundred', async () => {
  await cpuOfPages(200) // compiles it
  const few = await cpuOfPages(200)
  expect((await cpuOfPages(10_000)) / few).toBeLessThan(5)
})

test('ten thousand recordings are searched', async () => {
  const { recorder, access } = create(32 * MIB)
  for (let at = 0; at < 10_000; at++)
    record(recorder, { name: 'echo', arguments: { at, word: at === 5 ? 'needle' : 'hay' } })
  const found = await findAll(access, { search: 'NEEDLE' })
  expect(found.length).toBe(1)
  expect((await access.query({ search: 'needle' }, 10, false)).recordings).toEqual([]) // viewers see no texts
})

test('changes are published together, each exchange once', async () => {
  const recorder = new FlightRecorder({ maxBytes: 2 * MIB, maxMessageBytes: 1024 }, true)
  const batches: { rows: number; dropped: number }[] = []
  openRecorder(recorder, {
    redactor: createRedactor({ names: [], secrets: () => [] }),
    publish: (rows, dropped) => batches.push({ rows: rows.length, dropped }),
  })
  for (let at = 0; at < 1000; at++) record(recorder)
  await expect.poll(() => batches.length, { timeout: 3000 }).toBe(1)
  expect(batches).toEqual([{ rows: 200, dropped: 800 }])
})
