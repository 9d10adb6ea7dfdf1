import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { NEVER } from '../../protocol/cancellation.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import type { RecordingSummary } from '../../protocol/recording.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification, readIncoming } from '../../wire/json-rpc.ts'
import { FlightRecorder } from './flight-recorder.ts'
import type { RecordedExchange } from './recorded-exchange.ts'
import { openRecorder } from './recorder-access.ts'
import type { RecordingFilter } from './recording-query.ts'
import { createRedactor } from './redact.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const MIB = 1024 * 1024
const SERVER = { name: 'files', dialect: 'stdio', revision: '2025-11-25' }

const create = (maxBytes = 2 * MIB, maxMessageBytes = 64 * 1024, isBurst = false) => {
  const recorder = new FlightRecorder({ maxBytes, maxMessageBytes }, true, { take: () => !isBurst })
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
  const recording = recorder.begin(exchange, 'stateless') as RecordedExchange
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

/** The newest that match: on a slow machine a search stops before its page is full. */
const findNewest = async (
  access: ReturnType<typeof create>['access'],
  filter: RecordingFilter,
  most = Number.POSITIVE_INFINITY,
) => {
  const found: RecordingSummary[] = []
  let before = filter.before
  do {
    const page = await access.query({ ...filter, before }, Math.min(10, most - found.length), true)
    found.push(...page.recordings)
    before = page.next
  } while (before !== undefined && found.length < most)
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

  test.each([
    ['as it travelled, with members that the gateway does not know', '', ''],
    ['by its params, if it came in a batch', '[', ',{"jsonrpc":"2.0","method":"other"}]'],
    ['by its params, if they are followed by much else', '', `,"extra":"${'x'.repeat(1000)}"}`],
  ])('keeps a message that was read %s', async (_, before, after) => {
    const { recorder, access } = create()
    const request = '{ "method":"tools/call", "x":1.0, "params":{"name":"echo", "n":1e2}, "id":"a", "jsonrpc":"2.0"'
    const text = `${before}${request}${after.startsWith(',"') ? after : `}${after}`}`
    const incoming = readIncoming(Buffer.from(text))
    const message = incoming.kind === 'batch' ? incoming.messages[0] : incoming
    if (message?.kind !== 'request') throw new Error('not a request')
    const reply = readIncoming(Buffer.from('{"result":{"content":[ ],"y":2},"id":1,"jsonrpc":"2.0"}'))
    if (reply.kind !== 'response') throw new Error('not a response')
    const { id, params } = message
    const recording = recorder.begin(exchangeOf({}, { params, origin: { id } }), 'stateless') as RecordedExchange
    recording.serverMessage(SERVER, 'out', 'request', 'tools/call', { ...message, id: 1 })
    recording.serverMessage(SERVER, 'in', 'result', undefined, reply)
    recording.ended({ kind: 'result', result: reply.result }, 1)
    recording.clientMessage('out', 'result', undefined, { kind: 'response', id, result: reply.result })
    const whole = before === '' && after === '' ? text : undefined
    expect((await newest(access))?.all.map(each => each.text)).toEqual([
      whole ?? '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo", "n":1e2}}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo", "n":1e2}}',
      '{"result":{"content":[ ],"y":2},"id":1,"jsonrpc":"2.0"}',
      '{"jsonrpc":"2.0","id":"a","result":{"content":[ ],"y":2}}',
    ])
  })

  test.each([0, 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 3 * 2 ** 32 + 5, 2 ** 53 - 1])(
    'keeps the id %d of a request of the gateway',
    async id => {
      const { recorder, access } = create()
      const recording = recorder.begin(exchangeOf({}), 'stateless') as RecordedExchange
      const { result } = RESULT as { result: Json }
      recording.serverMessage(SERVER, 'out', 'request', 'ping', { kind: 'request', id, method: 'ping', params: result })
      recording.serverMessage(SERVER, 'in', 'result', undefined, { kind: 'response', id, result })
      recording.ended(RESULT, 1)
      const found = await newest(access)
      expect(found?.all.slice(1).map(({ text }) => JSON.parse(text).id)).toEqual([id, id])
      expect(found?.all[2]?.text).toContain('"text":"done"')
    },
  )

  test('keeps the times of messages over months, to the microsecond', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { recorder, access } = create()
    const recording = recorder.begin(exchangeOf({}), 'stateless') as RecordedExchange
    const notice = encodeNotification('notifications/message', Json.empty)
    const times = [0.25, 40 * 60_000, 72 * 60_000, 30 * 86_400_000, 400 * 86_400_000 + 0.125]
    let now = 0
    for (const at of times) {
      vi.advanceTimersByTime(at - now)
      now = at
      recording.clientMessage('out', 'notification', 'notifications/message', notice, ['200', 'content-type', 'a/b'])
    }
    const found = await newest(access)
    expect(found?.all.slice(1).map(({ atMs }) => atMs)).toEqual(times)
    expect(found?.all.slice(1).map(({ kind, direction }) => `${kind} ${direction}`)).toEqual(
      times.map(() => 'notification out'),
    )
  })

  test('shows what the client got, whatever else the response of the server has', async () => {
    const { recorder, access } = create()
    const recording = recorder.begin(exchangeOf({}), 'stateless') as RecordedExchange
    const text = '{"params":{"content":[]},"result":{"content":[1]},"id":1,"jsonrpc":"2.0"}'
    const reply = readIncoming(Buffer.from(text))
    if (reply.kind !== 'response') throw new Error('not a response')
    recording.serverMessage(SERVER, 'in', 'result', undefined, reply)
    recording.ended({ kind: 'result', result: reply.result }, 1)
    recording.clientMessage('out', 'result', undefined, { kind: 'response', id: Json.of(7), result: reply.result })
    expect((await newest(access))?.all.slice(1).map(message => message.text)).toEqual([
      text,
      '{"jsonrpc":"2.0","id":7,"result":{"content":[1]}}',
    ])
  })

  test('is shown while it runs, and gets messages after its end', async () => {
    const { recorder, access } = create()
    const recording = recorder.begin(exchangeOf({}), 'stdio') as RecordedExchange
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
    const [failed] = await findNewest(access, { outcome: 'error' }, 1)
    const found = access.find(failed?.id ?? '')
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
    const recording = recorder.begin(exchangeOf({}), 'stateless') as RecordedExchange
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
    const slow = recorder.begin(exchangeOf({ name: 'slow' }), 'stateless') as RecordedExchange
    for (let at = 0; at < 5000; at++) record(recorder, { name: 'x'.repeat(500) })
    slow.ended(RESULT, 60_000)
    slow.clientMessage('out', 'result', undefined, { kind: 'response', id: 7, result: Json.empty })
    for (let at = 0; at < 20; at++) record(recorder)
    const recordings = await findNewest(access, { subject: 'slow' })
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
    const recordings = await findNewest(access, {}, 101)
    expect(recordings.map(({ order }) => order)).toEqual(Array.from({ length: 101 }, (_, at) => 100_000 - at))
    expect(access.find(recordings[0]?.id ?? '')?.all[0]?.text).toContain('"at":100000')
  })

  test('is given back by clear, and nothing is recorded while it is off', async () => {
    const { recorder, access } = create()
    const running = recorder.begin(exchangeOf({}), 'stateless')
    record(recorder)
    access.clear()
    running?.ended(RESULT, 1)
    access.switchTo(false)
    expect(recorder.begin(exchangeOf({}), 'stateless')).toBeUndefined()
    expect(access.state()).toMatchObject({ isOn: false, kept: 0, keptBytes: 0, forgotten: 0 })
    access.switchTo(true)
    record(recorder)
    expect((await newest(access))?.all.length).toBe(4)
  })
})

/** The least CPU of several rounds of pages from a recorder that has so many recordings: a round may have the garbage of others. */
const cpuOfPages = async (recordings: number): Promise<number> => {
  const { recorder, access } = create(32 * MIB)
  for (let at = 0; at < recordings; at++) record(recorder, { name: 'echo', arguments: { at } })
  const rounds: number[] = []
  while (rounds.length < 5) {
    const begun = process.cpuUsage()
    for (let at = 0; at < 20; at++)
      await access.query(at % 2 === 0 ? {} : { server: 'files', method: 'tools/call' }, 100, true)
    rounds.push(process.cpuUsage(begun).user)
  }
  return Math.min(...rounds)
}

test('a page of ten thousand recordings costs about as much as one of two hundred', async () => {
  await cpuOfPages(200) // compiles it
  const few = await cpuOfPages(200)
  expect((await cpuOfPages(10_000)) / few).toBeLessThan(5)
})

test('ten thousand recordings are searched', { timeout: 120_000 }, async () => {
  const { recorder, access } = create(32 * MIB)
  for (let at = 0; at < 10_000; at++)
    record(recorder, { name: 'echo', arguments: { at, word: at === 5 ? 'needle' : 'hay' } })
  const found = await findNewest(access, { search: 'NEEDLE' })
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

describe('in a burst', () => {
  const FAILURE: Frame = {
    kind: 'failure',
    error: { code: -32603, message: 'Server "files" did not answer', data: Json.of({ reason: 'upstream_timeout' }) },
  }
  const TOOL_ERROR: Frame = {
    kind: 'result',
    result: Json.of({ isError: true, content: [{ type: 'text', text: 'no' }] }),
  }

  /** A call of which the recorder sees what it sees of every exchange. */
  const follow = (recorder: FlightRecorder, frame: Frame): void => {
    const exchange = exchangeOf({ name: 'echo' })
    const follower = recorder.follow(exchange, 'stateless')
    follower?.sentTo('files')
    expect(follower?.tap).toBeUndefined()
    follower?.ended(frame, 12.5)
    const { origin } = exchange
    const content =
      frame.kind === 'failure'
        ? { kind: 'error' as const, id: origin?.id, error: frame.error }
        : { kind: 'response' as const, id: origin?.id, result: (frame as { result: Json }).result }
    origin?.tap?.clientMessage('out', frame.kind === 'failure' ? 'error' : 'result', undefined, content)
  }

  test('exchanges that succeed are only counted', async () => {
    const { recorder, access } = create(undefined, undefined, true)
    for (let at = 0; at < 10; at++) follow(recorder, RESULT)
    expect(access.state()).toMatchObject({ kept: 0, skipped: 10 })
    expect((await access.query({}, 10, true)).recordings).toEqual([])
    access.clear()
    expect(access.state()).toMatchObject({ skipped: 0 })
  })

  test.each([
    ['error', FAILURE, 'Server "files" did not answer'],
    ['tool_error', TOOL_ERROR, 'no'],
  ] as const)('one that fails is kept with what its client sent and got: %s', async (outcome, frame, error) => {
    const { recorder, access } = create(undefined, undefined, true)
    follow(recorder, frame)
    expect(access.state()).toMatchObject({ kept: 1, skipped: 0 })
    const recording = await newest(access)
    expect(recording).toMatchObject({ outcome, error, durationMs: 12.5, subject: 'echo', dropped: -1, messages: 2 })
    expect(recording?.servers.map(({ name }) => name)).toEqual(['files'])
    expect(recording?.all.map(({ direction, atMs }) => [direction, Math.round(atMs)])).toEqual([
      ['in', 0],
      ['out', 13],
    ])
    expect(Date.now() - (recording?.at ?? 0)).toBeGreaterThanOrEqual(12)
  })

  test('one whose client gives up is kept with what the client sent', async () => {
    const { recorder, access } = create(undefined, undefined, true)
    recorder.follow(exchangeOf({ name: 'echo' }), 'stateless')?.aborted({ kind: 'gone' }, 12.5)
    expect(access.state()).toMatchObject({ kept: 1, skipped: 0 })
    expect(await newest(access)).toMatchObject({ outcome: 'cancelled', error: 'gone', durationMs: 12.5, dropped: -1 })
  })

  const notice = encodeNotification('notifications/progress', Json.of({ progress: 1 }))

  test('one that fails stays marked as incomplete, however many messages follow', async () => {
    const { recorder, access } = create(undefined, undefined, true)
    const exchange = exchangeOf({ name: 'echo' })
    recorder.follow(exchange, 'stateless')?.ended(FAILURE, 12.5)
    for (let at = 0; at < 1500; at++) exchange.origin?.tap?.clientMessage('out', 'notification', undefined, notice)
    const recording = await newest(access)
    expect(recording).toMatchObject({ dropped: -1, messages: 1000 })
    expect(Date.now() - (recording?.at ?? 0)).toBeGreaterThanOrEqual(12)
  })

  test('one that fails stays marked as incomplete when its first messages are forgotten', async () => {
    let isBurst = true
    const recorder = new FlightRecorder({ maxBytes: MIB, maxMessageBytes: 1024 }, true, { take: () => !isBurst })
    const access = openRecorder(recorder, { redactor: createRedactor({ names: [], secrets: () => [] }) })
    const exchange = exchangeOf({ name: 'slow' })
    recorder.follow(exchange, 'stateless')?.ended(FAILURE, 12.5)
    isBurst = false
    recorder.flushAll()
    for (let at = 0; at < 5000; at++) record(recorder, { name: 'x'.repeat(500) })
    exchange.origin?.tap?.clientMessage('out', 'notification', undefined, notice)
    const [found] = await findNewest(access, { subject: 'slow' })
    const recording = access.find(found?.id ?? '')
    expect(recording?.all.length).toBeLessThan(recording?.messages ?? 0)
    expect(recording?.dropped).toBe(-1)
  })

  test('one that began before all were forgotten is neither recorded nor counted when it fails', () => {
    const { recorder, access } = create(undefined, undefined, true)
    const follower = recorder.follow(exchangeOf({ name: 'echo' }), 'stateless')
    access.clear()
    follower?.ended(FAILURE, 5000)
    expect(access.state()).toMatchObject({ kept: 0, skipped: 0 })
  })

  test('the first retry that answers a question is recorded', async () => {
    let isBurst = false
    const recorder = new FlightRecorder({ maxBytes: 2 * MIB, maxMessageBytes: 1024 }, true, { take: () => !isBurst })
    const state = Json.of({ resultType: 'input_required', requestState: 'abc', inputRequests: {} })
    recorder.follow(exchangeOf({ name: 'echo' }), 'stateless')?.ended({ kind: 'result', result: state }, 1)
    isBurst = true
    expect(recorder.follow(exchangeOf({ name: 'echo', requestState: 'abc' }), 'stateless')?.tap).toBeDefined()
    expect(recorder.follow(exchangeOf({ name: 'echo' }), 'stateless')?.tap).toBeUndefined()
    expect(recorder.skipped).toBe(1)
  })

  const asks = (requestState: string): Frame => ({
    kind: 'result',
    result: Json.of({ resultType: 'input_required', requestState, inputRequests: {} }),
  })

  /** A recorder in a burst, whose clock stands still, with a question of before that has this state. */
  const askBefore = (requestState: string) => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    let isBurst = false
    const recorder = new FlightRecorder({ maxBytes: 2 * MIB, maxMessageBytes: 1024 }, true, { take: () => !isBurst })
    recorder.follow(exchangeOf({ name: 'echo' }), 'stateless')?.ended(asks(requestState), 1)
    isBurst = true
    return recorder
  }

  const retry = (recorder: FlightRecorder, requestState: string, frame: Frame = RESULT): void =>
    recorder.follow(exchangeOf({ name: 'echo', requestState }), 'stateless')?.ended(frame, 1)

  test('further retries with the same state are recorded as others are', () => {
    const recorder = askBefore('abc')
    for (let at = 0; at < 5000; at++) retry(recorder, 'abc')
    expect([recorder.lastOrder, recorder.skipped]).toEqual([2, 4999])
  })

  test.each([
    ['the state of before', () => 'same'],
    ['a new state', (at: number) => `state ${at}`],
  ] as const)('retries that are asked again with %s are bounded', (_, stateAt) => {
    const recorder = askBefore(stateAt(0))
    for (let at = 0; at < 5000; at++) retry(recorder, stateAt(at), asks(stateAt(at + 1)))
    expect(recorder.lastOrder).toBeLessThanOrEqual(1 + 1000)
  })
})

describe('requests that answer questions', () => {
  const askAndAnswer = (recorder: FlightRecorder, requestState: string): RecordedExchange => {
    const question = Json.of({ resultType: 'input_required', requestState, inputRequests: {} })
    const asked = recorder.begin(exchangeOf({ name: 'echo' }), 'stateless') as RecordedExchange
    asked.ended({ kind: 'result', result: question }, 1)
    recorder.begin(exchangeOf({ name: 'echo', requestState }), 'stateless')?.ended(RESULT, 1)
    return asked
  }

  test.each([
    ['short', 'abc'],
    ['long', 'x'.repeat(MIB)],
    ['long, and differ from others at their end only', `${'x'.repeat(MIB)}y`],
  ])('are linked by states that are %s', (_, state) => {
    const { recorder } = create(8 * MIB)
    askAndAnswer(recorder, 'x'.repeat(MIB))
    const { order } = askAndAnswer(recorder, state)
    expect(recorder.continuedBy(order)).toBe(order + 1)
    recorder.flushAll()
    expect(recorder.find(order + 1)?.continues).toBe(order)
  })

  test('are linked for the latest thousand questions, though a server uses one state for all', () => {
    const { recorder } = create(8 * MIB)
    const orders = Array.from({ length: 2500 }, () => askAndAnswer(recorder, 'same').order)
    const linked = orders.filter(order => recorder.continuedBy(order) !== undefined)
    expect(linked).toEqual(orders.slice(-1000))
  })

  test('take little memory, however long their states are', () => {
    const { recorder } = create()
    gc()
    const begun = process.memoryUsage().heapUsed
    for (let at = 0; at < 200; at++) askAndAnswer(recorder, `${at} ${'x'.repeat(MIB / 2)}`)
    gc()
    expect(process.memoryUsage().heapUsed - begun).toBeLessThan(20 * MIB)
  })
})

test('a large request takes no place of an older exchange', async () => {
  const { recorder, access } = create()
  const first = record(recorder, { name: 'first' })
  for (let at = 2; at <= 1024; at++) record(recorder)
  record(recorder, { name: 'large', arguments: { text: 'x'.repeat(70_000) } })
  recorder.flushAll()
  expect(recorder.find(first.order)).toMatchObject({ order: first.order, subject: 'first' })
  expect(recorder.kept).toBe(1025)
  expect(await newest(access)).toMatchObject({ order: 1025, subject: 'large' })
})
