import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { callTool, closeAll, connectSmall, eventually, failTool, SERVER } from '../../test/support/processes.ts'
import { callerOf, exchangeWith } from '../../test/support/scripted-server.ts'
import type { ProcessSharing } from '../config/snapshot.ts'
import { summaryOf } from '../protocol/errors.ts'
import type { Caller } from '../protocol/exchange.ts'
import { type Log, SILENT } from '../telemetry/log.ts'
import { Json } from '../wire/json/json.ts'
import { ProcessHost } from './process/process-host.ts'
import { KnownEras } from './stdio/known-era.ts'

afterEach(closeAll)

const list = async (peer: Parameters<typeof exchangeWith>[0]) =>
  ((await exchangeWith(peer, 'tools/list').result()) as { tools: unknown[] }).tools.length

describe('a server that is started', () => {
  it.each([
    ['legacy', { era: 'legacy' }, '2025-11-25', true],
    ['legacy of an old revision', { era: 'legacy', version: '2024-11-05' }, '2024-11-05', true],
    ['modern', { era: 'modern' }, '2026-07-28', false],
    ['legacy and prints a banner first', { era: 'legacy', banner: true }, '2025-11-25', true],
    ['legacy and quits when it is asked anything before initialize', { discover: 'exit' }, '2025-11-25', true],
    ['legacy and does not answer the probe', { discover: 'silence' }, '2025-11-25', true],
    ['modern and slower than the probe waits', { era: 'modern', slow: 600 }, '2026-07-28', false],
    ['of both eras', { era: 'both' }, '2026-07-28', false],
    ['of both eras and holds to the first', { era: 'dual' }, '2026-07-28', false],
    ['of both eras and slower than the probe waits', { era: 'both', slow: 600 }, '2026-07-28', false],
  ])('is found to be %s', async (_, habits, revision, asks) => {
    const { open } = connectSmall(habits, { options: { probeMs: 250 } })
    const peer = await open()
    expect(peer).toMatchObject({ revision, asks })
    expect(await callTool(peer, 'echo', { text: 'hello' })).toBe('hello')
    expect(await list(peer)).toBeGreaterThan(10)
  })

  it('is not probed if the configuration names its era', async () => {
    const legacy = connectSmall({ discover: 'exit' }, { server: { era: 'legacy' } })
    expect((await legacy.open()).revision).toBe('2025-11-25')
    const modern = connectSmall({ era: 'modern', discover: 'exit' }, { server: { era: 'modern' } })
    expect(await callTool(await modern.open(), 'echo', { text: 'hello' })).toBe('hello')
  })

  it('is probed once by callers that come at the same time, and the same program not again', async () => {
    const same = { server: { env: { TEST_RUN: 'asked-once' } } }
    const knownEras = new KnownEras()
    const { open, upstream } = connectSmall({ discover: 'silence' }, { ...same, options: { knownEras, probeMs: 150 } })
    await Promise.all(['a', 'b', 'c'].map(session => open(callerOf({ session }))))
    expect(upstream.status().processes).toHaveLength(1) // the others start when they are called
    const again = connectSmall({ discover: 'silence' }, { ...same, options: { knownEras, probeMs: 60_000 } })
    expect(await callTool(await again.open(), 'echo', { text: 'at once' })).toBe('at once')
  })

  it('is detected to be modern by calls that come at the same time', async () => {
    const { open, upstream } = connectSmall({ era: 'modern' })
    const peers = await Promise.all([open(), open(), open()])
    expect(new Set(peers.map(({ revision }) => revision))).toEqual(new Set(['2026-07-28']))
    expect(upstream.status().processes).toHaveLength(1)
  })

  it.each([
    ['legacy', 'modern'],
    ['modern', 'legacy'],
  ])('that was %s and is replaced by a %s one is probed again', async (before, after) => {
    const file = join(mkdtempSync(join(tmpdir(), 'dragoman-habits-')), 'habits.json')
    const become = (era: string) => writeFileSync(file, JSON.stringify({ era }))
    become(before)
    const { open } = connectSmall({}, { server: { env: { HABITS_FILE: file } } })
    const peer = await open()
    become(after)
    await failTool(peer, 'die')
    await failTool(peer, 'echo') // the old session fails: its caller has to open another
    const now = await open()
    expect(now.revision).not.toBe(peer.revision)
    expect(await callTool(now, 'echo', { text: 'new' })).toBe('new')
    rmSync(dirname(file), { recursive: true })
  })

  it('initializes as the caller', async () => {
    const capabilities = Json.of({ elicitation: {} })
    const caller = callerOf({ capabilities, info: Json.of({ name: 'client', version: '9' }) })
    const { open } = connectSmall()
    const { instructions } = (await exchangeWith(await open(caller), 'server/discover', { caller }).result()) as {
      instructions: string
    }
    expect(JSON.parse(instructions)).toEqual({
      capabilities: { elicitation: {} },
      clientInfo: { name: 'client', version: '9' },
    })
  })

  it('gets its arguments, its folder, and only the safe part of the environment', async () => {
    process.env.DRAGOMAN_TEST_SECRET = 'ours'
    const { config, open } = connectSmall({}, { server: { cwd: '/', env: { GIVEN: 'yes' } } })
    const peer = await open()
    expect(await callTool(peer, 'cwd')).toBe('/')
    const names = (await callTool(peer, 'env')).split(' ')
    expect(names).toEqual(expect.arrayContaining(['PATH', 'HOME', 'GIVEN', 'DRAGOMAN_CHILD']))
    expect(names).not.toContain('DRAGOMAN_TEST_SECRET')
    const shy = connectSmall({}, { server: { args: [...config.args, '$HOME', 'a b', '"; rm -rf x'] } })
    expect(await callTool(await shy.open(), 'arguments')).toBe(JSON.stringify(['$HOME', 'a b', '"; rm -rf x']))
  })
})

describe('a server that cannot be started', () => {
  const failureOf = (habits: object, server: object = {}, options: object = {}) =>
    connectSmall({ ...habits }, { server, options })
      .open()
      .then(
        () => '',
        (error: Error) => error.message,
      )

  it('says that the command was not found, and where', async () => {
    const env = { PATH: '/nowhere:/else' }
    expect(await failureOf({}, { command: 'no-such-server', env })).toBe(
      'Server "small" could not be started: "no-such-server" was not found (PATH was searched: /nowhere:/else)',
    )
    expect(await failureOf({}, { command: './no/server' })).toContain(
      '"./no/server" was not found (there is no such file)',
    )
    expect(await failureOf({}, { command: 'npx -y x', args: [] })).toContain(
      '"npx -y x" is taken for the name of one program; write "command": "npx", "args": ["-y", "x"]',
    )
  })

  it('says that its folder does not exist, or that it is no program', async () => {
    expect(await failureOf({}, { cwd: '/no/such/folder' })).toContain('its folder "/no/such/folder" does not exist')
    expect(await failureOf({}, { command: SERVER })).toContain('may not be executed')
  })

  it('that exits at once is reported with its exit code and its last lines, without secrets', async () => {
    const env = { API_KEY: 'sk-very-secret' }
    expect(await failureOf({ exit: 7, stderr: 'Error: sk-very-secret is no key' }, { env })).toBe(
      'Server "small" exited with code 7 before it answered; it last wrote: Error: *** is no key',
    )
  })

  it('that never answers times out, and is ended', async () => {
    const silent = connectSmall(
      { initialize: 'silence', stderr: 'waiting for a database' },
      { options: { probeMs: 50, startMs: 300 } },
    )
    await expect(silent.open()).rejects.toThrow(
      'did not answer initialize within 0.3 s; it last wrote: waiting for a database',
    )
    await eventually(silent.living).toEqual([])
  })

  it('that has no known revision is reported with the one it has', async () => {
    expect(await failureOf({ version: '1999-01-01' })).toContain('protocol version 1999-01-01')
    expect(await failureOf({ era: 'modern' }, { era: 'legacy' })).toContain('refused initialize: Unsupported')
  })

  it('is started with backoff, and then callers fail at once', async () => {
    const { open, upstream } = connectSmall({ exit: 1, stderr: 'no key' }, { options: { breakAfter: 3 } })
    for (let i = 0; i < 3; i++) await expect(open()).rejects.toThrow('exited with code 1')
    expect(upstream.status().crashes).toBe(3)
    await expect(open()).rejects.toThrow(
      /exited with code 1 before it answered\. It failed 3 times and is tried again in \d+ s/,
    )
    expect(upstream.status().crashes).toBe(3) // no process was started
  })
})

describe('a server that crashes', () => {
  it.each(['legacy', 'modern'])('fails its calls with one clear error and is restarted at once (%s)', async era => {
    const { open, upstream } = connectSmall({ era })
    const peer = await open()
    const [died, other] = [failTool(peer, 'die'), failTool(peer, 'wait')]
    for (const failure of [await died, await other])
      expect(failure).toMatchObject({
        message: 'Server "small" exited with code 3; it last wrote: fatal: out of luck',
        data: { reason: 'upstream_lost', upstream: 'small' },
      })
    expect(await callTool(await open(), 'echo', { text: 'back' })).toBe('back')
    expect(upstream.status().processes).toHaveLength(1)
  })

  it.each([
    ['legacy', 'stateless'],
    ['modern', undefined],
  ] as const)('and has served several users quotes stderr in the log, and to none of them (%s)', async (era, pool) => {
    const told: object[] = []
    const log: Log = { ...SILENT, warn: fields => void told.push(fields), child: () => log }
    const { open } = connectSmall({ era }, { server: { pool, share: 'everyone' }, options: { log } })
    const [ann, bob] = [callerOf({ principal: 'ann' }), callerOf({ principal: 'bob' })]
    expect(await callTool(await open(ann), 'echo', { text: 'secret of ann' }, ann)).toBe('secret of ann')
    const params = { name: 'die', arguments: { words: 'failed on: secret of ann' } }
    const died = await exchangeWith(await open(bob), 'tools/call', { caller: bob, params }).failure()
    expect(died).toMatchObject({ message: 'Server "small" exited with code 3', data: { reason: 'upstream_lost' } })
    expect(JSON.stringify(told)).toContain('failed on: secret of ann')
  })

  it('shows its last lines to the user it was started for, and not in the summary that others see', async () => {
    const { open } = connectSmall({ exit: 1, stderr: 'no such file: secret.txt' })
    const error = await open().catch((thrown: unknown) => thrown)
    expect((error as Error).message).toContain('secret.txt')
    expect(summaryOf(error)).toBe('Server "small" exited with code 1 before it answered')
  })

  it.each([
    ['that finds out what the server speaks', 'auto', {}],
    ['of a legacy process for everyone', 'legacy', { share: 'everyone', pool: 'stateless' }],
  ] as const)('tells nothing of stderr to another user who waits for the start %s', async (_, era, server) => {
    const { open } = connectSmall({ exit: 1, stderr: 'no such file: secret.txt' }, { server: { era, ...server } })
    const opening = ['ann', 'bob'].map(principal => open(callerOf({ principal })))
    const [, told] = (await Promise.allSettled(opening)).map(outcome =>
      String((outcome as PromiseRejectedResult).reason),
    )
    expect(told).toContain('exited with code 1')
    expect(told).not.toContain('secret.txt')
  })

  it('in the middle of a line has not answered', async () => {
    expect(await failTool(await connectSmall().open(), 'half')).toMatchObject({ data: { reason: 'upstream_lost' } })
  })

  it('by a signal is reported with it', async () => {
    const { open, upstream } = connectSmall()
    const waiting = failTool(await open(), 'wait')
    process.kill(upstream.status().processes[0]?.pid ?? 0, 'SIGSEGV')
    expect((await waiting).message).toContain('was ended by SIGSEGV')
  })

  it('gets the requests again that are safe to repeat', async () => {
    const { open, upstream } = connectSmall({ era: 'modern' })
    const peer = await open()
    const dying = failTool(peer, 'die')
    const listing = exchangeWith(peer, 'tools/list').result()
    await dying
    expect(await listing).toMatchObject({ tools: expect.any(Array) })
    expect(upstream.status().crashes).toBe(1)
  })

  it('gets its subscriptions and its log level again', async () => {
    const caller = callerOf({ session: 'client', revision: '2025-11-25' })
    const { open, upstream } = connectSmall()
    const peer = await open(caller)
    const notifications = { toolsListChanged: true }
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller, params: { notifications } })
    await exchangeWith(peer, 'resources/subscribe', { caller, params: { uri: 'test://watched' } }).result()
    await failTool(peer, 'die')
    await listen.notice('notifications/tools/list_changed') // of the new process, which no call had to start
    await eventually(() => upstream.status().processes[0]?.stderr).toBe('watches test://watched')
  })
})

describe('how many processes there are', () => {
  it('one for a thousand calls', async () => {
    for (const era of ['legacy', 'modern']) {
      const { open, living } = connectSmall({ era })
      const pid = await callTool(await open(), 'pid')
      for (let i = 0; i < 1000; i++) await callTool(await open(), 'echo', { text: String(i) })
      expect(await callTool(await open(), 'calls')).toBe('1002')
      expect(await callTool(await open(), 'pid')).toBe(pid)
      expect(living()).toEqual([Number(pid)])
    }
  })

  /** The processes that serve these callers of a legacy server. */
  const pidsOf = async (callers: readonly Caller[], share?: ProcessSharing) => {
    const { open, upstream } = connectSmall({}, { server: { share } })
    const peers = await Promise.all(callers.map(open))
    expect(upstream.status().processes).toHaveLength(1) // the others start when they are called
    const pids: string[] = []
    for (const [at, peer] of peers.entries()) pids.push(await callTool(peer, 'pid', {}, callers[at]))
    expect(await callTool(await open(callers[0]), 'pid')).toBe(pids[0])
    return pids
  }
  const [a, b] = [callerOf({ session: 'a' }), callerOf({ session: 'b', workspace: 'other' })]
  const ana = callerOf({ principal: 'ana', session: 'c' })

  it('one for all clients of a user, with sessions and without, in every workspace', async () => {
    const pids = await pidsOf([a, b, callerOf(), ana, callerOf({ principal: 'ana' })])
    expect(new Set(pids.slice(0, 3)).size).toBe(1)
    expect(new Set(pids.slice(3)).size).toBe(1)
    expect(new Set(pids).size).toBe(2)
  })

  it('one for each set of capabilities, which servers adapt to', async () => {
    const asked = callerOf({ ...a, session: 'd', capabilities: Json.of({ elicitation: {} }) })
    expect(new Set(await pidsOf([a, asked, { ...asked, session: 'e' }])).size).toBe(2)
  })

  it('one for the modern clients that can be asked, whose roots may differ from those of a legacy client', async () => {
    const capabilities = Json.of({ roots: {} })
    const callers = [{ session: 'd' }, {}, {}, { workspace: 'other' }].map(more => callerOf({ ...more, capabilities }))
    const [legacy, first, second, elsewhere] = await pidsOf(callers)
    expect(second).toBe(first)
    expect(new Set([legacy, first, elsewhere]).size).toBe(3)
  })

  it('one for each client session if the configuration says so', async () => {
    expect(new Set(await pidsOf([a, b, callerOf(), ana], 'session')).size).toBe(4)
  })

  it('one for all users if the configuration says so', async () => {
    expect(new Set(await pidsOf([a, b, callerOf(), ana], 'everyone')).size).toBe(1)
  })

  it('one for each session of anonymous callers', async () => {
    const anonymous = ['a', 'b'].map(session => callerOf({ session, principal: undefined }))
    expect(new Set(await pidsOf(anonymous)).size).toBe(2)
  })

  it.each(['stateless', 'isolated'] as const)('one for each client session of a %s server', async pool => {
    const { open } = connectSmall({}, { server: { pool } })
    const pids = await Promise.all([a, ana].map(async caller => callTool(await open(caller), 'pid', {}, caller)))
    expect(new Set(pids).size).toBe(2)
  })

  it('one for all sessions of one principal of a modern server', async () => {
    const { open, living } = connectSmall({ era: 'modern' })
    const callers = [{ session: 'a' }, { session: 'b' }, { workspace: 'other' }].map(callerOf)
    const pids = await Promise.all(callers.map(async caller => callTool(await open(caller), 'pid')))
    expect(new Set(pids).size).toBe(1)
    expect(living()).toHaveLength(1)
  })

  it('none of a client session that ended and shared none, and none of an anonymous caller after its call', async () => {
    const { open, living } = connectSmall({}, { server: { share: 'session' } })
    const caller = callerOf({ session: 'a' })
    const peer = await open(caller)
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller })
    await callTool(peer, 'pid')
    listen.abort.abort({ kind: 'gone' })
    await eventually(living).toEqual([])
    await callTool(await open(callerOf({ principal: undefined })), 'pid')
    await eventually(living).toEqual([])
  })

  it('no more starts at a time than the limit', async () => {
    const host = new ProcessHost(1)
    const first = connectSmall({ slow: 300 }, { options: { host } })
    const second = connectSmall({}, { options: { host } })
    const opening = Promise.all([first.open(), second.open()])
    await eventually(() => first.living().length).toBe(1)
    expect(second.living()).toEqual([])
    await opening
    expect(second.living()).toHaveLength(1)
  })

  it('although others never answer, and a slow start is waited for all the same', async () => {
    const host = new ProcessHost(2, 50)
    const hanging = [1, 2, 3, 4].map(() =>
      connectSmall({ discover: 'silence', initialize: 'silence' }, { options: { host } }),
    )
    const opened: unknown[] = []
    for (const { open } of hanging)
      open().then(
        peer => opened.push(peer),
        () => {},
      )
    const slow = connectSmall({ slow: 500 }, { options: { host } }).open()
    const peer = await connectSmall({}, { options: { host } }).open()
    expect(await callTool(peer, 'echo', { text: 'in time' })).toBe('in time')
    expect(hanging.map(({ living }) => living().length)).toEqual([1, 1, 1, 1])
    expect(opened).toEqual([])
    expect(await callTool(await slow, 'echo', { text: 'late' })).toBe('late')
  })

  it('no more than configured: an idle process is ended for another, a busy one is not', async () => {
    const { open, living } = connectSmall({}, { limits: { processes: 1 } })
    const one = await open(callerOf({ principal: 'one' }))
    const two = await open(callerOf({ principal: 'two' }))
    const pid = await callTool(one, 'pid')
    expect(await callTool(two, 'pid')).not.toBe(pid)
    await eventually(() => living().length).toBe(1)
    exchangeWith(two, 'tools/call', { params: { name: 'wait' } })
    expect(await failTool(one, 'pid')).toMatchObject({ data: { reason: 'upstream_busy' } })
  })
})

describe('a process is ended', () => {
  it('when it is idle, although a client listens, and is started again for the next call', async () => {
    for (const era of ['legacy', 'modern']) {
      const { open, living } = connectSmall({ era }, { limits: { idleMs: 150 } })
      const caller = callerOf({ session: 'a' })
      const peer = await open(caller)
      const notifications = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
      const listen = () => exchangeWith(peer, 'subscriptions/listen', { caller, params: { notifications } })
      const first = listen()
      await first.notice('notifications/subscriptions/acknowledged')
      await exchangeWith(peer, 'server/discover', { caller }).result()
      const pid = await callTool(peer, 'pid')
      await eventually(living).toEqual([])
      const second = listen()
      await second.notice('notifications/subscriptions/acknowledged')
      expect(living()).toEqual([])
      expect(await callTool(await open(caller), 'pid')).not.toBe(pid)
      await callTool(await open(caller), 'change')
      for (const each of [first, second]) await each.notice('notifications/tools/list_changed')
    }
  })

  it('not while a call is under way or a resource is subscribed to', async () => {
    const { open, living } = connectSmall({}, { limits: { idleMs: 100 } })
    const [busy, watching] = [callerOf({ principal: 'a', session: 'a' }), callerOf({ principal: 'b', session: 'b' })]
    exchangeWith(await open(busy), 'tools/call', { caller: busy, params: { name: 'wait' } })
    const peer = await open(watching)
    exchangeWith(peer, 'subscriptions/listen', { caller: watching })
    await exchangeWith(peer, 'resources/subscribe', { caller: watching, params: { uri: 'test://x' } }).result()
    const pids = living()
    const later = callerOf({ session: 'later' })
    const idle = Number(await callTool(await open(later), 'pid', {}, later))
    await eventually(living).not.toContain(idle)
    expect(living()).toEqual(pids)
  })

  it('when it is old: a legacy one between two calls', async () => {
    const { open } = connectSmall({}, { limits: { lifetimeMs: 200 } })
    const pid = await callTool(await open(), 'pid')
    await eventually(async () => callTool(await open(), 'pid')).not.toBe(pid)
  })

  it('when it is old: a modern one once it has answered, and new calls go to another', async () => {
    const { open, living } = connectSmall({ era: 'modern' }, { limits: { lifetimeMs: 300 } })
    const peer = await open()
    const [pid = 0] = living()
    const waiting = exchangeWith(peer, 'tools/call', { params: { name: 'wait' } })
    await eventually(async () => callTool(await open(), 'pid')).not.toBe(String(pid))
    expect(living()).toContain(pid)
    expect(waiting.finals()).toEqual([])
    waiting.abort.abort({ kind: 'cancelled' })
    await eventually(living).not.toContain(pid)
  })

  it('when it uses too much memory, and its calls fail with that reason', async () => {
    const limits = { memoryBytes: 200 * 1024 * 1024, idleMs: 400 }
    const { open, living } = connectSmall({}, { limits })
    const peer = await open()
    expect(await callTool(peer, 'echo', { text: 'small' })).toBe('small')
    expect((await failTool(peer, 'grow', { bytes: 256 * 1024 * 1024 })).message).toBe(
      'Server "small" used more than 200 MiB of memory and was ended',
    )
    await eventually(living).toEqual([])
  })

  it.each(['legacy', 'modern'])('when it hangs: silent in a call, and silent to a ping (%s)', async era => {
    const { open, living } = connectSmall(
      { era },
      { server: { timeoutMs: 200 }, options: { pingMs: 150 }, limits: { exitMs: 50, termMs: 50 } },
    )
    const peer = await open()
    const [pid] = living()
    expect(await failTool(peer, 'wait')).toMatchObject({ data: { reason: 'upstream_timeout' } })
    await new Promise(resolve => setTimeout(resolve, 500))
    expect(living()).toEqual([pid]) // it answered the ping
    const hanging = failTool(peer, 'hang')
    expect(await hanging).toMatchObject({ data: { reason: 'upstream_timeout' } })
    const waiting = exchangeWith(peer, 'tools/list').result()
    expect(await waiting).toBeDefined() // of a new process
    await eventually(living).not.toContain(pid)
  })

  it('with everything it started, also what left its group', async () => {
    const { open, upstream, living } = connectSmall({ family: true }, { limits: { termMs: 100 } })
    await callTool(await open(), 'pid')
    await eventually(() => living().length).toBe(3)
    await upstream.close()
    expect(living()).toEqual([])
  })

  it('with everything it started when it dies by itself', async () => {
    const { open, living } = connectSmall({ family: true }, { limits: { termMs: 100 } })
    const peer = await open()
    await eventually(() => living().length).toBe(3)
    await failTool(peer, 'die')
    await eventually(living).toEqual([])
  })

  it('by force if it exits neither when stdin closes nor on SIGTERM', async () => {
    const limits = { exitMs: 100, termMs: 100 }
    const { open, upstream, living } = connectSmall({ stays: true, deaf: true }, { limits })
    await open()
    await upstream.close()
    expect(living()).toEqual([])
  })

  it('also in the middle of its start', async () => {
    const { open, upstream, living } = connectSmall({ slow: 10_000 }, { options: { probeMs: 60_000 } })
    const opening = open().catch((error: Error) => error.message)
    await eventually(() => living().length).toBe(1)
    await upstream.close()
    expect(living()).toEqual([])
    expect(await opening).toContain('is being disconnected')
    await expect(open()).rejects.toThrow('is being disconnected')
  })

  it('every time: two hundred starts and stops leave nothing', { timeout: 120_000 }, async () => {
    const script = fileURLToPath(new URL('../../test/support/servers/stdio/small.sh', import.meta.url))
    const { open, upstream, living } = connectSmall(
      {},
      { server: { command: 'sh', args: [script], era: 'legacy' }, limits: { termMs: 50, processes: 1000 } },
    )
    const start = async (number: number) => {
      const caller = callerOf({ session: String(number) })
      const peer = await open(caller)
      const listen = exchangeWith(peer, 'subscriptions/listen', { caller })
      expect(await exchangeWith(peer, 'tools/list', { caller }).result()).toEqual({ tools: [] })
      listen.abort.abort({ kind: 'gone' })
    }
    for (let i = 0; i < 200; i += 10) await Promise.all(Array.from({ length: 10 }, (_, k) => start(i + k)))
    await upstream.close()
    expect(living()).toEqual([])
  })
})
