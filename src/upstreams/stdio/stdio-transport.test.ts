import { afterEach, describe, expect, it } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { callTool, closeAll, connectSmall, eventually, failTool, keepLog } from '../../../test/support/processes.ts'
import { callerOf, exchangeWith } from '../../../test/support/scripted-server.ts'
import { META } from '../../protocol/meta.ts'
import { Json, type Plain } from '../../wire/json/json.ts'

afterEach(closeAll)

const ERAS = ['legacy', 'modern'] as const
const MIB = 1024 * 1024

const capabilities = Json.of({ elicitation: {}, roots: {} })
const caller = callerOf({ session: 'client', revision: '2025-11-25', capabilities })

type Peer = Parameters<typeof exchangeWith>[0]
const start = (peer: Peer, name: string, given: Plain = {}, more: Record<string, Plain> = {}) =>
  exchangeWith(peer, 'tools/call', { caller, params: { name, arguments: given, ...more } })

describe.each(ERAS)('a %s server over stdio', era => {
  it('that prints text to stdout can be used, and the text is counted and logged once', async () => {
    const { log, lines } = keepLog('warn')
    const { open, upstream } = connectSmall({ era, banner: true }, { options: { log } })
    const peer = await open()
    for (let i = 0; i < 3; i++) expect(await callTool(peer, 'chatter')).toBe('done')
    expect(upstream.status().processes[0]?.invalidLines).toBe(5)
    expect(lines).toEqual(['the server writes text to stdout that is no message; such lines are ignored'])
  })

  it('that prints text is logged once, however many processes it has', async () => {
    const { log, lines } = createTestLog()
    const server = { share: 'session' } as const
    const { open, upstream } = connectSmall({ era: 'legacy', banner: true }, { server, options: { log } })
    for (const session of ['one', 'two', 'three'])
      expect(await callTool(await open(callerOf({ ...caller, session })), 'chatter')).toBe('done')
    expect(upstream.status().processes.length).toBeGreaterThan(1)
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  })

  it('has its stderr in the log line by line where the level is debug, without its secrets', async () => {
    const { log, lines, saw } = createTestLog({ isDebug: true })
    const stderr = 'first \u001b[31mline\u001b[0m\n\nthe key is s3cret-key-value'
    const server = { env: { KEY: 's3cret-key-value' } }
    const { open } = connectSmall({ era, stderr }, { server, options: { log: log.child({ server: 'small' }) } })
    const peer = await open()
    await callTool(peer, 'shout', { bytes: MIB }) // one line that never ends
    await callTool(peer, 'echo', { text: 'hello' })
    await saw(({ fields }) => String(fields.text).startsWith('eee'))
    const said = lines.filter(({ message }) => message === 'server wrote to stderr')
    expect(new Set(said.map(({ level, fields }) => `${level} ${fields.server}`))).toEqual(new Set(['debug small']))
    const texts = said.map(({ fields }) => String(fields.text))
    expect(texts.slice(0, 2)).toEqual(['first line', 'the key is ***'])
    expect(texts.every(text => text.length <= 2000)).toBe(true)
    expect(texts.filter(text => text.startsWith('eee')).length).toBeLessThanOrEqual(2)
  })

  it('that floods stderr is not blocked, and its last lines are kept', async () => {
    const { open, upstream } = connectSmall({ era })
    expect(await callTool(await open(), 'shout', { bytes: 20 * MIB })).toBe('done')
    expect(upstream.status().processes[0]?.stderr).toMatch(/^e{600}$/)
  })

  it('may write a line of 20 MiB', { timeout: 30_000 }, async () => {
    const { open } = connectSmall({ era })
    expect((await callTool(await open(), 'large', { bytes: 20 * MIB })).length).toBe(20 * MIB)
  })

  it('that writes a line beyond the limit fails its calls with that reason, and is started again', async () => {
    const { open } = connectSmall({ era }, { options: { maxBytes: MIB } })
    const failure = await failTool(await open(), 'large', { bytes: 2 * MIB })
    expect(failure).toMatchObject({
      message: `Server "small" wrote a line of more than ${MIB} bytes`,
      data: { reason: 'too_large' },
    })
    expect(await callTool(await open(), 'echo', { text: 'again' })).toBe('again')
  })

  it('that closes its stdout has ended', async () => {
    const { open, living } = connectSmall({ era, stays: true }, { limits: { exitMs: 50 } })
    expect(await failTool(await open(), 'close')).toMatchObject({ data: { reason: 'upstream_lost' } })
    await eventually(living).toEqual([])
  })

  it('may answer in a batch', async () => {
    expect(await callTool(await connectSmall({ era }).open(), 'batch')).toBe('in a batch')
  })

  it('that answers an invalid message fails that call alone', async () => {
    const peer = await connectSmall({ era }).open()
    const waiting = start(peer, 'wait')
    expect(await failTool(peer, 'nonsense')).toMatchObject({ data: { reason: 'upstream_protocol' } })
    expect(waiting.finals()).toEqual([])
  })

  it('has its own errors passed on', async () => {
    const peer = await connectSmall({ era }).open()
    expect(await exchangeWith(peer, 'acme/unknown').failure()).toMatchObject({
      code: -32601,
      message: 'Method not found: acme/unknown',
    })
  })

  it('has nextCursor: null left out of its lists', async () => {
    expect(await exchangeWith(await connectSmall({ era }).open(), 'tools/list').result()).not.toHaveProperty(
      'nextCursor',
    )
  })

  it('reports progress under the token of the client, and only to clients that want it', async () => {
    const peer = await connectSmall({ era }).open()
    const wanting = start(peer, 'many', { count: 3 }, { _meta: { progressToken: 'mine' } })
    const [other] = await Promise.all([start(peer, 'many', { count: 3 }).result(), wanting.result()])
    expect(other).toBeDefined()
    const reports = wanting.frames.flatMap(frame => (frame.kind === 'notice' ? [frame.params.toValue()] : []))
    expect(reports).toEqual([1, 2, 3].map(progress => ({ progressToken: 'mine', progress })))
  })

  it('gets a cancellation when a call is cancelled', async () => {
    const { open, upstream } = connectSmall({ era })
    const peer = await open()
    const waiting = start(peer, 'wait')
    await callTool(peer, 'echo', { text: 'x' })
    waiting.abort.abort({ kind: 'cancelled', text: 'changed my mind' })
    await eventually(() => upstream.status().processes[0]?.stderr).toMatch(/cancelled \d+: changed my mind/)
    expect(waiting.frames).toEqual([])
  })

  it('that is silent in a call gets a cancellation, and the call times out', async () => {
    const { open, upstream } = connectSmall({ era }, { server: { timeoutMs: 150 } })
    expect(await failTool(await open(), 'wait')).toMatchObject({
      message: 'Server "small" was silent for 0.15 s after tools/call',
      data: { reason: 'upstream_timeout' },
    })
    await eventually(() => upstream.status().processes[0]?.stderr).toContain('timed out')
  })

  it('that does not read is sent a limited number of bytes', async () => {
    const { open } = connectSmall({ era }, { options: { pendingBytes: MIB } })
    const peer = await open()
    await callTool(peer, 'deafen')
    const text = 'x'.repeat(MIB)
    start(peer, 'echo', { text })
    start(peer, 'echo', { text })
    expect(await failTool(peer, 'echo', { text })).toMatchObject({ data: { reason: 'upstream_busy' } })
  })

  it('serves all other callers while one reads slowly; that one gets the latest progress', async () => {
    const peer = await connectSmall({ era }).open()
    let go = () => {}
    const slow = exchangeWith(peer, 'tools/call', {
      caller,
      params: { name: 'many', arguments: { count: 500 }, _meta: { progressToken: 1 } },
      onFrame: frame => (frame.kind === 'notice' ? new Promise<void>(resolve => (go = resolve)) : undefined),
    })
    expect(await callTool(peer, 'echo', { text: 'quick' })).toBe('quick')
    expect(slow.frames).toHaveLength(1)
    go()
    await eventually(() => slow.frames.length).toBe(2)
    go()
    await slow.result()
    expect(slow.frames[1]).toMatchObject({ kind: 'notice' })
    expect(slow.frames[1]?.kind === 'notice' && slow.frames[1].params.get('progress')?.asNumber()).toBe(500)
  })

  it('ends the call of a reader that is too far behind, and no other call', async () => {
    const { open, upstream } = connectSmall({ era })
    const peer = await open()
    let go = () => {}
    const slow = exchangeWith(peer, 'tools/call', {
      caller: { ...caller, logLevel: 'debug' },
      params: { name: 'logs', arguments: { count: 3000 } },
      onFrame: frame => (frame.kind === 'notice' ? new Promise<void>(resolve => (go = resolve)) : undefined),
    })
    await eventually(() => upstream.status().processes[0]?.stderr).toContain('too slowly')
    expect(await callTool(peer, 'echo', { text: 'quick' })).toBe('quick')
    go()
    expect(await slow.failure()).toMatchObject({ data: { reason: 'slow_reader' } })
    expect(slow.frames).toHaveLength(2)
    expect(upstream.status().crashes).toBe(0)
  })
})

describe('a legacy server over stdio', () => {
  it('asks on the latest call that can be asked, and gets the answer', async () => {
    const peer = await connectSmall().open(caller)
    const earlier = start(peer, 'wait')
    const asking = start(peer, 'ask')
    const question = await asking.question()
    expect(question).toMatchObject({ method: 'elicitation/create' })
    question.answer({ kind: 'result', result: Json.of({ action: 'decline' }) })
    expect(await asking.result()).toMatchObject({ content: [{ text: '{"action":"decline"}' }] })
    expect(earlier.frames).toEqual([])
  })

  it('does not time out while it waits for the user', async () => {
    const peer = await connectSmall({}, { server: { timeoutMs: 500 } }).open(caller)
    const asking = start(peer, 'ask')
    const question = await asking.question()
    expect((await start(peer, 'wait').failure()).data?.reason).toBe('upstream_timeout')
    question.answer({ kind: 'result', result: Json.of({ action: 'accept', content: {} }) })
    expect(await asking.result()).toBeDefined()
  })

  it('withdraws a question', async () => {
    const asking = start(await connectSmall().open(caller), 'ask', { withdraw: true })
    const question = await asking.question()
    await asking.result()
    expect(question.withdrawn.reason).toBeDefined()
  })

  it('gets a cancellation as its answer when the call is cancelled', async () => {
    const peer = await connectSmall().open(caller)
    const asking = start(peer, 'ask')
    const question = await asking.question()
    asking.abort.abort({ kind: 'gone' })
    expect(question.withdrawn.reason).toBeDefined()
    expect(asking.finals()).toEqual([])
    expect(await callTool(peer, 'echo', { text: 'alive' })).toBe('alive')
  })

  it('gets the answer to a question whose call it has answered meanwhile', async () => {
    const peer = await connectSmall().open(caller)
    const asking = start(peer, 'askAlong')
    const question = await asking.question()
    await asking.result()
    expect(question.withdrawn.reason).toBeUndefined()
    question.answer({ kind: 'result', result: Json.of({ action: 'accept', content: { name: 'Ada' } }) })
    expect(await callTool(peer, 'heard')).toBe('[{"action":"accept","content":{"name":"Ada"}}]')
  })

  it('gets the answer to a question that may belong to another call than the cancelled one', async () => {
    const peer = await connectSmall().open(caller)
    const asking = start(peer, 'ask')
    const latest = start(peer, 'wait')
    const question = await latest.question()
    latest.abort.abort({ kind: 'gone' })
    expect(question.withdrawn.reason).toBeUndefined()
    question.answer({ kind: 'result', result: Json.of({ action: 'decline' }) })
    expect(await asking.result()).toMatchObject({ content: [{ text: '{"action":"decline"}' }] })
  })

  it('gets the roots it asked for even if the client cancels the call meanwhile', async () => {
    const peer = await connectSmall({ roots: true }).open(caller)
    const dropped = start(peer, 'wait')
    const question = await dropped.question()
    dropped.abort.abort({ kind: 'gone' })
    question.answer({ kind: 'result', result: Json.of({ roots: [] }) })
    expect(await callTool(peer, 'heard')).toBe('[{"roots":[]}]')
  })

  it('has its questions withdrawn when it dies', async () => {
    const peer = await connectSmall().open(caller)
    const asking = start(peer, 'ask')
    const question = await asking.question()
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller })
    await failTool(peer, 'die')
    expect(question.withdrawn.reason).toBeDefined()
    await start(peer, 'askLater').result()
    const another = await listen.question()
    await failTool(peer, 'die')
    expect(another.withdrawn.reason).toBeDefined()
    expect(await asking.failure()).toMatchObject({ data: { reason: 'upstream_lost' } })
  })

  it('asks the listener outside any call', async () => {
    const peer = await connectSmall().open(caller)
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller })
    await start(peer, 'askLater').result()
    expect(await listen.question()).toMatchObject({ method: 'roots/list' })
  })

  it('that is started by a call gets the roots it asks for before that call', async () => {
    const { open, upstream } = connectSmall({ roots: true })
    await open(callerOf({ session: 'first' }))
    const peer = await open(caller)
    expect(upstream.status().processes).toHaveLength(1) // the second starts when it is called
    const call = exchangeWith(peer, 'tools/call', { caller, params: { name: 'heard' } })
    const question = await call.question()
    expect(question.method).toBe('roots/list')
    question.answer({ kind: 'result', result: Json.of({ roots: [{ uri: 'file:///home/ada' }] }) })
    expect(await call.result()).toMatchObject({ content: [{ text: '[{"roots":[{"uri":"file:///home/ada"}]}]' }] })
  })

  it('has its ping answered', async () => {
    expect(await callTool(await connectSmall().open(caller), 'ping')).toBe('{}')
  })

  it('that asks without end and reads nothing gets a limited number of answers', async () => {
    const { log, lines } = keepLog('warn')
    const { open } = connectSmall({}, { options: { pendingBytes: 1000, log } })
    const peer = await open(caller)
    expect(Number(await callTool(peer, 'pester', { count: 20_000 }))).toBeLessThan(10_000)
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.length).toBeLessThan(200) // not one for each
    expect(await callTool(peer, 'ping')).toBe('{}')
  })

  it('announces changes to the listener, and logs there too unless exactly one call is under way', async () => {
    const peer = await connectSmall().open(caller)
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller })
    await start(peer, 'change').result()
    await listen.notice('notifications/tools/list_changed')
    const logging = start(peer, 'logs', { count: 2 })
    await logging.result()
    expect(logging.frames.map(({ kind }) => kind)).toEqual(['notice', 'notice', 'result'])
    start(peer, 'wait')
    await start(peer, 'logs', { count: 2 }).result()
    await listen.notice('notifications/message')
  })

  it('that answers without an id answers the only call there is', async () => {
    const peer = await connectSmall().open(caller)
    expect(await failTool(peer, 'unanswerable')).toMatchObject({ code: -32700, message: 'could not read that' })
  })

  it('is not sent server/discover and subscriptions/listen', async () => {
    const peer = await connectSmall({}, { server: { env: { TEST_RUN: 'introduced' } } }).open(caller)
    expect(await exchangeWith(peer, 'server/discover', { caller }).result()).toMatchObject({
      resultType: 'complete',
      capabilities: { tools: { listChanged: true } },
      _meta: { [META.serverInfo]: { name: 'small', version: '1' } },
    })
  })
})

describe('a modern server over stdio', () => {
  const modern = { era: 'modern' }

  it('gets the envelope with every request, also of legacy callers', async () => {
    const peer = await connectSmall(modern).open()
    const { params } = (await exchangeWith(peer, 'envelope', { caller }).result()) as { params: { _meta: object } }
    expect(params._meta).toEqual({
      [META.protocolVersion]: '2026-07-28',
      [META.clientCapabilities]: { elicitation: {}, roots: {} },
    })
  })

  it('that asks gets no answer, because it must not ask', async () => {
    const peer = await connectSmall(modern).open()
    const asking = start(peer, 'ask')
    expect(await callTool(peer, 'echo', { text: 'later' })).toBe('later')
    expect(asking.frames).toEqual([])
  })

  it('notifies listeners, and after a restart also of what they may have missed', async () => {
    const { open, upstream } = connectSmall(modern)
    const peer = await open()
    const params = { notifications: { toolsListChanged: true, resourceSubscriptions: ['test://a'] } }
    const listen = exchangeWith(peer, 'subscriptions/listen', { params })
    await listen.notice('notifications/subscriptions/acknowledged')
    await callTool(peer, 'change')
    expect(listen.frames).toHaveLength(2)
    await failTool(peer, 'die')
    const updated = await listen.notice('notifications/resources/updated')
    expect(updated).toMatchObject({ params: expect.anything() })
    await callTool(await open(), 'change')
    const methods = listen.frames.map(frame => frame.kind === 'notice' && frame.method)
    expect(methods).toEqual([
      'notifications/subscriptions/acknowledged',
      'notifications/tools/list_changed',
      'notifications/tools/list_changed',
      'notifications/resources/updated',
      'notifications/tools/list_changed',
    ])
    listen.abort.abort({ kind: 'gone' })
    await eventually(() => upstream.status().processes[0]?.stderr).toContain('cancelled')
  })

  it('ends its listens when the gateway closes', async () => {
    const { open, upstream } = connectSmall(modern)
    const listen = exchangeWith(await open(), 'subscriptions/listen', { params: { notifications: {} } })
    await upstream.close()
    expect(await listen.result()).toEqual({ resultType: 'complete' })
  })

  it('logs to the earliest call that wants logs', async () => {
    const peer = await connectSmall(modern).open()
    const curious = { ...caller, logLevel: 'info' as const }
    const first = exchangeWith(peer, 'tools/call', { caller: curious, params: { name: 'wait' } })
    const second = exchangeWith(peer, 'tools/call', { caller: curious, params: { name: 'wait' } })
    const logging = start(peer, 'logs', { count: 2 })
    await logging.result()
    expect([first.frames.length, second.frames.length, logging.frames.length]).toEqual([2, 0, 1])
  })

  it('logs to no call while calls of several users run, and to the call of a single user', async () => {
    const peer = await connectSmall(modern).open()
    const as = (principal: string | undefined, session?: string) =>
      ({ ...caller, principal, session, logLevel: 'info' }) as const
    const logs = { name: 'logs', arguments: { count: 1 } }
    for (const [curious, other] of [
      [as('ann'), as('bob')],
      [as('ann'), as(undefined)],
      [as(undefined, 'a'), as(undefined, 'b')],
      [as(undefined), as(undefined)],
    ] as const) {
      const waiting = exchangeWith(peer, 'tools/call', { caller: curious, params: { name: 'wait' } })
      const logging = exchangeWith(peer, 'tools/call', { caller: other, params: logs })
      await logging.result()
      waiting.abort.abort({ kind: 'gone' })
      expect([waiting.frames.length, logging.frames.length]).toEqual([0, 1])
    }
    const listening = exchangeWith(peer, 'subscriptions/listen', { caller: as('bob'), params: { notifications: {} } })
    await listening.notice('notifications/subscriptions/acknowledged')
    const alone = exchangeWith(peer, 'tools/call', { caller: as('ann'), params: logs })
    await alone.result()
    expect([listening.frames.length, alone.frames.length]).toEqual([1, 2])
  })
})
