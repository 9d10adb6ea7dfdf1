import { afterEach, describe, expect, it } from 'vitest'
import { callTool, closeAll, connectSmall, eventually } from '../../test/support/processes.ts'
import { callerOf, exchangeWith } from '../../test/support/scripted-server.ts'
import type { Caller, Frame } from '../protocol/exchange.ts'
import { Json, type Plain } from '../wire/json/json.ts'

afterEach(closeAll)

type Small = ReturnType<typeof connectSmall>

const LISTS = { notifications: { toolsListChanged: true } }
const ASKED = Json.of({ elicitation: {}, sampling: {} })
const client = (session: string, more: Partial<Caller> = {}) => callerOf({ revision: '2025-11-25', session, ...more })

/** One legacy client: its listener, and how it calls. */
const join = async ({ open }: Small, caller: Caller, more: object = {}) => {
  const send = async (method: string, params: Plain) => exchangeWith(await open(caller), method, { caller, params })
  const listen = exchangeWith(await open(caller), 'subscriptions/listen', { caller, params: LISTS, ...more })
  return {
    listen,
    send,
    start: (name: string, given: Plain = {}, meta: Plain = {}) =>
      send('tools/call', { name, arguments: given, _meta: meta }),
    call: async (name: string, given: Plain = {}) => callTool(await open(caller), name, given, caller),
    request: async (method: string, params: Plain) => (await send(method, params)).result(),
    seen: (method: string) =>
      listen.frames.flatMap(frame =>
        frame.kind === 'notice' && frame.method === method ? [frame.params.toValue()] : [],
      ),
  }
}

const settingsOf = async ({ call }: Awaited<ReturnType<typeof join>>) => JSON.parse(await call('settings')) as object

describe('clients that share a process', () => {
  it('start none as long as none of them calls', async () => {
    const small = connectSmall()
    await callTool(await small.open(client('first')), 'pid')
    const [pid] = small.living()
    await join(small, client('a'))
    await join(small, client('b', { capabilities: ASKED }))
    expect(small.living()).toEqual([pid])
  })

  it('each get the log messages of their own level, and the server logs what the most verbose one wants', async () => {
    const small = connectSmall()
    const [quiet, verbose, plain] = [
      await join(small, client('a')),
      await join(small, client('b')),
      await join(small, client('c')),
    ]
    await quiet.request('logging/setLevel', { level: 'error' })
    await verbose.request('logging/setLevel', { level: 'debug' })
    await quiet.request('logging/setLevel', { level: 'critical' })
    expect(await settingsOf(quiet)).toMatchObject({ level: 'debug' })
    const logged = async (level: string) => {
      const levels = []
      for (const { start } of [quiet, verbose, plain]) {
        const call = await start('log', { level })
        await call.result()
        levels.push(call.frames.filter(({ kind }) => kind === 'notice').length)
      }
      return levels
    }
    expect(await logged('debug')).toEqual([0, 1, 0])
    expect(await logged('info')).toEqual([0, 1, 1])
    expect(await logged('alert')).toEqual([1, 1, 1])
    verbose.listen.abort.abort({ kind: 'gone' })
    await eventually(() => settingsOf(quiet)).toMatchObject({ level: 'critical' })
  })

  it('get the updates of what they are subscribed to, until the last has unsubscribed or left', async () => {
    const small = connectSmall()
    const [a, b] = [await join(small, client('a')), await join(small, client('b'))]
    const updated = 'notifications/resources/updated'
    for (const uri of ['test://both', 'test://a']) await a.request('resources/subscribe', { uri })
    await b.request('resources/subscribe', { uri: 'test://both' })
    for (const uri of ['test://a', 'test://both/part', 'test://none']) await b.call('update', { uri })
    expect(a.seen(updated)).toEqual([{ uri: 'test://a' }, { uri: 'test://both/part' }])
    expect(b.seen(updated)).toEqual([{ uri: 'test://both/part' }])
    await b.request('resources/unsubscribe', { uri: 'test://both' })
    expect(await settingsOf(b)).toMatchObject({ watched: ['test://both', 'test://a'] })
    a.listen.abort.abort({ kind: 'gone' })
    await eventually(() => settingsOf(b)).toMatchObject({ watched: [] })
  })

  it('share one subscription to each resource, which ends with the last of them', async () => {
    const small = connectSmall()
    const uri = 'test://shared'
    const clients = await Promise.all([...'abcdefgh'].map(session => join(small, client(session))))
    const [first, ...others] = clients
    await Promise.all(clients.map(({ request }) => request('resources/subscribe', { uri })))
    const late = await join(small, client('late'))
    await late.request('resources/subscribe', { uri })
    expect(await settingsOf(late)).toMatchObject({ requested: [`+${uri}`] })
    await late.call('update', { uri })
    for (const { seen } of [...clients, late]) expect(seen('notifications/resources/updated')).toEqual([{ uri }])
    for (const { request } of others) await request('resources/unsubscribe', { uri })
    late.listen.abort.abort({ kind: 'gone' })
    if (!first) throw new Error('there is no client')
    expect(await settingsOf(first)).toMatchObject({ requested: [`+${uri}`], watched: [uri] })
    await first.request('resources/unsubscribe', { uri })
    expect(await settingsOf(first)).toMatchObject({ requested: [`+${uri}`, `-${uri}`], watched: [] })
  })

  it('share the refusal of a subscription, and may ask again', async () => {
    const small = connectSmall({ subscribe: 'held' })
    const [a, b] = [await join(small, client('a')), await join(small, client('b'))]
    const uri = 'test://refused'
    const asked = [await a.send('resources/subscribe', { uri }), await b.send('resources/subscribe', { uri })]
    await eventually(() => settingsOf(a)).toMatchObject({ requested: [`+${uri}`] })
    await a.call('grant', { code: -32002 })
    for (const request of asked) expect(await request.failure()).toMatchObject({ code: -32002 })
    const again = await b.send('resources/subscribe', { uri })
    await eventually(() => settingsOf(a)).toMatchObject({ requested: [`+${uri}`, `+${uri}`] })
    await a.call('grant')
    expect(await again.result()).toEqual({})
    await b.call('update', { uri })
    expect([a.seen('notifications/resources/updated'), b.seen('notifications/resources/updated')]).toEqual([
      [],
      [{ uri }],
    ])
  })

  it('do not lose a subscription with the client that asked for it first', async () => {
    const small = connectSmall({ subscribe: 'held' })
    const [a, b, c] = [await join(small, client('a')), await join(small, client('b')), await join(small, client('c'))]
    const uri = 'test://wanted'
    const [first, second, third] = [
      await a.send('resources/subscribe', { uri }),
      await b.send('resources/subscribe', { uri }),
      await c.send('resources/subscribe', { uri }),
    ]
    first.abort.abort({ kind: 'gone' })
    await eventually(() => settingsOf(b)).toMatchObject({ requested: [`+${uri}`, `+${uri}`] })
    second.abort.abort({ kind: 'gone' })
    await eventually(() => settingsOf(b)).toMatchObject({ requested: [`+${uri}`, `+${uri}`, `+${uri}`] })
    await b.call('grant')
    expect(await third.result()).toEqual({})
    expect([first.finals(), second.finals()]).toEqual([[], []])
    const other = 'test://abandoned'
    const abandoned = await a.send('resources/subscribe', { uri: other })
    await eventually(() => settingsOf(b)).toMatchObject({ requested: expect.arrayContaining([`+${other}`]) })
    abandoned.abort.abort({ kind: 'cancelled' })
    await eventually(() => settingsOf(b)).toMatchObject({ requested: expect.arrayContaining([`-${other}`]) })
  })

  it('get the updates of what is in a folder that they are subscribed to, however it is written', async () => {
    const small = connectSmall()
    const [a, b] = [await join(small, client('a')), await join(small, client('b'))]
    await a.request('resources/subscribe', { uri: 'test://dir/' })
    await b.request('resources/subscribe', { uri: 'test://dir' })
    for (const uri of ['test://dir/part', 'test://directory']) await b.call('update', { uri })
    for (const { seen } of [a, b]) expect(seen('notifications/resources/updated')).toEqual([{ uri: 'test://dir/part' }])
  })

  it('all hear of changed lists', async () => {
    const small = connectSmall()
    const [a, b] = [await join(small, client('a')), await join(small, client('b'))]
    await a.call('change')
    await a.listen.notice('notifications/tools/list_changed')
    await b.listen.notice('notifications/tools/list_changed')
  })

  it('have their own progress, and cancel their own calls', async () => {
    const small = connectSmall()
    const [a, b] = [await join(small, client('a')), await join(small, client('b'))]
    const waiting = await b.start('wait')
    const [one, two] = [
      await a.start('many', { count: 2 }, { progressToken: 7 }),
      await b.start('many', { count: 1 }, { progressToken: 7 }),
    ]
    await Promise.all([one.result(), two.result()])
    expect(one.frames.filter(({ kind }) => kind === 'notice')).toHaveLength(2)
    expect(two.frames.filter(({ kind }) => kind === 'notice')).toHaveLength(1)
    const cancelled = await a.start('wait')
    cancelled.abort.abort({ kind: 'cancelled' })
    expect(await a.call('release')).toBe('done')
    expect(await waiting.result()).toMatchObject({ content: [{ text: 'released' }] })
    expect(cancelled.finals()).toEqual([])
  })

  it('all fail with the process, and all use the next one', async () => {
    const small = connectSmall()
    const [a, b] = [await join(small, client('a')), await join(small, client('b'))]
    await b.request('resources/subscribe', { uri: 'test://b' })
    const waiting = await b.start('wait')
    expect(await (await a.start('die')).failure()).toMatchObject({ data: { reason: 'upstream_lost' } })
    expect(await waiting.failure()).toMatchObject({ data: { reason: 'upstream_lost' } })
    for (const { listen } of [a, b]) await listen.notice('notifications/tools/list_changed')
    expect(await settingsOf(a)).toMatchObject({ watched: ['test://b'] })
    expect(await a.call('pid')).toBe(await b.call('pid'))
    expect(small.living()).toHaveLength(1)
  })

  it('are not disturbed by one that leaves', async () => {
    const small = connectSmall()
    const [a, b] = [await join(small, client('a')), await join(small, client('b'))]
    const pid = await a.call('pid')
    const waiting = await b.start('wait')
    a.listen.abort.abort({ kind: 'gone' })
    await b.call('release')
    expect(await waiting.result()).toMatchObject({ content: [{ text: 'released' }] })
    expect(await b.call('pid')).toBe(pid)
  })

  it('of several users get no log message and no other notification of each other', async () => {
    const small = connectSmall({}, { server: { share: 'everyone' } })
    const [ann, bob] = [
      await join(small, client('a', { principal: 'ann' })),
      await join(small, client('b', { principal: 'bob' })),
    ]
    const waiting = await bob.start('wait')
    const logging = await ann.start('log', { level: 'error' })
    await logging.result()
    await ann.call('release')
    await waiting.result()
    const seen = [...waiting.frames, ...bob.listen.frames].flatMap(frame =>
      frame.kind === 'notice' ? frame.method : [],
    )
    expect(seen).not.toContain('notifications/message')
  })
})

describe('a question of a process that several clients share', () => {
  const asked = (session: string) => client(session, { capabilities: ASKED })
  const yes = { kind: 'result', result: Json.of({ action: 'accept' }) } as const

  it('goes to the client whose call caused it', async () => {
    const small = connectSmall()
    const [a, b] = [await join(small, asked('a')), await join(small, asked('b'))]
    await b.call('pid')
    const asking = await a.start('ask')
    ;(await asking.question()).answer(yes)
    expect(await asking.result()).toMatchObject({ content: [{ text: '{"action":"accept"}' }] })
    expect(b.listen.frames.filter(({ kind }) => kind === 'question')).toEqual([])
  })

  it('goes to the right one of clients that call at the same time: each gets its own process', async () => {
    const small = connectSmall()
    const clients = await Promise.all(['a', 'b', 'c'].map(name => join(small, asked(name))))
    for (let round = 0; round < 2; round++) {
      const calls = await Promise.all(clients.map(({ start }) => start('ask')))
      const answers = calls.map(async (call, at) => {
        ;(await call.question()).answer({ kind: 'result', result: Json.of({ action: 'accept', content: { at } }) })
        return ((await call.result()) as { content: { text: string }[] }).content[0]?.text
      })
      expect(await Promise.all(answers)).toEqual(
        clients.map((_, at) => JSON.stringify({ action: 'accept', content: { at } })),
      )
    }
    expect(small.living()).toHaveLength(3)
    await clients[2]?.call('change') // what it listens to has moved with it
    await clients[2]?.listen.notice('notifications/tools/list_changed')
    expect(clients[0]?.seen('notifications/tools/list_changed')).toEqual([])
  })

  /** Two clients whose calls both run in one process, because the server may hold state of both. */
  const overlapping = async (small: Small) => {
    const [a, b] = [await join(small, asked('a')), await join(small, asked('b'))]
    expect(await a.call('pid')).toBe(await b.call('pid'))
    const calls = { pausing: await b.start('pause', { ms: 300 }), asking: await a.start('ask') }
    await a.request('tools/list', {}) // the server has asked by now
    return calls
  }

  it('waits until it is clear whose it is', async () => {
    const { pausing, asking } = await overlapping(connectSmall())
    expect(await pausing.result()).toMatchObject({ content: [{ text: 'paused' }] })
    expect(pausing.frames).toHaveLength(1)
    ;(await asking.question()).answer(yes)
    expect(await asking.result()).toMatchObject({ content: [{ text: '{"action":"accept"}' }] })
  })

  it('is refused if the call that may have caused it is cancelled', async () => {
    const { pausing, asking } = await overlapping(connectSmall())
    pausing.abort.abort({ kind: 'cancelled' })
    const { content } = (await asking.result()) as { content: { text: string }[] }
    expect(content[0]?.text).toContain('cannot tell which of them to ask')
  })

  it('gives every later client that can be asked its own process', async () => {
    const small = connectSmall()
    const [a, b, c] = [await join(small, asked('a')), await join(small, asked('b')), await join(small, asked('c'))]
    const pid = await a.call('pid')
    expect(await b.call('pid')).toBe(pid)
    await c.listen.notice('notifications/subscriptions/acknowledged')
    const asking = await a.start('ask')
    ;(await asking.question()).answer(yes)
    await asking.result()
    expect([await a.call('pid'), await b.call('pid')]).toEqual([pid, pid]) // the server may hold state of them
    expect(await c.call('pid')).not.toBe(pid)
    await c.call('change') // what it listens to has moved with it
    await c.listen.notice('notifications/tools/list_changed')
    expect(a.seen('notifications/tools/list_changed')).toEqual([])
    const plain = await join(small, client('plain'))
    expect(await plain.call('pid')).toBe(await (await join(small, client('simple'))).call('pid'))
  })

  it('outside any call goes to the client that called last', async () => {
    const small = connectSmall()
    const [a, b] = [await join(small, asked('a')), await join(small, asked('b'))]
    await b.call('pid')
    await a.call('askLater')
    await a.listen.question()
    expect(b.listen.frames.filter(({ kind }) => kind === 'question')).toEqual([])
  })

  it('outside any call is refused if the clients are of several users', async () => {
    const small = connectSmall({}, { server: { share: 'everyone' } })
    const [a, b] = [await join(small, asked('a')), await join(small, { ...asked('b'), principal: 'bob' })]
    await b.call('pid')
    await a.call('askLater')
    await eventually(() => a.call('heard')).toContain('cannot tell which of them to ask')
  })
})

describe('clients with roots', () => {
  const rooted = (session: string) => client(session, { capabilities: Json.of({ roots: {} }) })
  const rootsOf = (name: string) => (frame: Frame) => {
    if (frame.kind === 'question')
      setTimeout(() => frame.answer({ kind: 'result', result: Json.of({ roots: [{ uri: `file:///${name}` }] }) }), 20)
  }

  it('share a process of a server that does not ask for them, also if they call at the same time', async () => {
    const small = connectSmall()
    const clients = await Promise.all(['a', 'b', 'c', 'd'].map(name => join(small, rooted(name))))
    const pids = await Promise.all(clients.map(({ call }) => call('pid')))
    expect(new Set(pids).size).toBe(1)
  })

  const heard = async (small: Small, caller: Caller, name: string) => {
    const params = { name: 'heard', arguments: {} }
    const call = exchangeWith(await small.open(caller), 'tools/call', { caller, params, onFrame: rootsOf(name) })
    return ((await call.result()) as { content: { text: string }[] }).content[0]?.text
  }
  const given = (name: string) => JSON.stringify([{ roots: [{ uri: `file:///${name}` }] }])

  it.each(['one after the other', 'at the same time'])(
    'have one for each set of roots of a server that does, if they call %s',
    async how => {
      const small = connectSmall({ roots: true })
      const folders = ['a', 'b', 'b', 'a']
      const callers = folders.map((_, at) => rooted(`client ${at}`))
      const names = folders.entries()
      for (const [at, name] of names) await join(small, callers[at] as Caller, { onFrame: rootsOf(name) })
      const call = (at: number) => heard(small, callers[at] as Caller, folders[at] ?? '')
      const told: (string | undefined)[] = []
      if (how === 'at the same time') told.push(...(await Promise.all(folders.map((_, at) => call(at)))))
      else for (const at of folders.keys()) told.push(await call(at))
      expect(told).toEqual(folders.map(given))
      expect(small.living().length).toBeLessThanOrEqual(3) // the two clients with `b` do not find each other
    },
  )

  it('leave the process they share when their roots change', async () => {
    const small = connectSmall({ roots: true })
    const [a, b] = [rooted('a'), rooted('b')]
    for (const caller of [a, b]) await join(small, caller, { onFrame: rootsOf('same') })
    expect([await heard(small, a, 'same'), await heard(small, b, 'same')]).toEqual([given('same'), given('same')])
    expect(small.living()).toHaveLength(1)
    const method = 'notifications/roots/list_changed'
    exchangeWith(await small.open(b), method, { caller: b, kind: 'notification' })
    expect(await heard(small, b, 'other')).toBe(given('other'))
    expect(await heard(small, a, 'same')).toBe(given('same'))
  })

  it('get an answer to a request that is named like a notification about roots', async () => {
    const small = connectSmall()
    const [a] = [await join(small, client('a')), await join(small, client('b'))]
    await expect(a.request('notifications/roots/list_changed', {})).rejects.toThrow()
  })
})
