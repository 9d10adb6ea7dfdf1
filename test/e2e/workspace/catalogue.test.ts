import { rm } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { BREAK_AFTER } from '../../../src/health/state.ts'
import { isModern } from '../../../src/protocol/revisions.ts'
import { CLIENTS, serverOf } from '../../matrix/cells.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { type MatrixServer, remoteConfig, ToolError } from '../../matrix/server.ts'
import { sessionServer } from '../../matrix/session-server.ts'
import { openSession } from '../../support/raw.ts'
import { scriptedServer } from '../../support/scripted-server.ts'
import { createToken, newDataDirectory } from '../auth/guarded.ts'
import { amongMany, type Many, namesIn } from './many.ts'

/** One client of each manner, before servers of three eras. */
const KINDS = CLIENTS.filter(({ name }) =>
  ['2026-07-28 stateless', '2026-07-28 stdio', '2025-11-25 streamable', '2024-11-05 http-sse'].includes(name),
)
const MEMBERS = {
  modern: serverOf('2026-07-28').start,
  legacy: serverOf('2025-06-18').start,
  pipe: serverOf('2025-06-18', 'stdio').start,
}
const UNAVAILABLE = 'dragoman/unavailable'
const CHANGED = 'notifications/tools/list_changed'

type Options = Parameters<typeof amongMany>[1] & { prepare?: (servers: Many['servers']) => void }
type Body = (many: Many, client: MatrixClient) => Promise<void>

/** Runs a body once for each kind of client, each time before servers and a gateway that are new. */
const everyKind = (name: string, body: Body, { prepare = () => {}, ...options }: Options = {}): void => {
  describe(name, () => {
    test.each(KINDS)('$name', kind =>
      amongMany(MEMBERS, options, async many => {
        prepare(many.servers)
        await body(many, many.lateClient(kind))
      }),
    )
  })
}

/** Runs a body that changes nothing with each kind of client in turn, before the same servers and gateway. */
const everyKindInTurn = (name: string, body: Body, { prepare = () => {}, ...options }: Options = {}): void => {
  test(name, () =>
    amongMany(MEMBERS, options, async many => {
      prepare(many.servers)
      for (const kind of KINDS) await body(many, many.lateClient(kind))
    }),
  )
}

const tool = (name: string) => ({ name, description: `It is ${name}`, inputSchema: { type: 'object' } })

/** Makes a server list its tools on pages of ten. */
const paginate = (server: MatrixServer | undefined, names: readonly string[]): void => {
  server?.methods.set('tools/list', ({ cursor }) => {
    const from = cursor === undefined ? 0 : Number(String(cursor).slice('from '.length))
    const rest = names.length > from + 10 ? { nextCursor: `from ${from + 10}` } : {}
    return { tools: names.slice(from, from + 10).map(tool), ...rest }
  })
}

const named = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)

const listAll = async (client: MatrixClient): Promise<{ names: unknown[]; sizes: number[]; cursors: string[] }> => {
  const [names, sizes, cursors]: [unknown[], number[], string[]] = [[], [], []]
  for (let cursor: string | undefined, more = true; more; ) {
    const { result, error } = await client.call('tools/list', cursor === undefined ? {} : { cursor })
    if (error) throw new Error(error.message)
    names.push(...namesIn(result, 'tools'))
    sizes.push(namesIn(result, 'tools').length)
    cursor = result?.nextCursor as string | undefined
    more = cursor !== undefined
    if (cursor) cursors.push(cursor)
  }
  return { names, sizes, cursors }
}

/** The answer to a handshake, or to the question that took its place. */
const introduction = async ({ gateway }: Many, client: MatrixClient): Promise<Record<string, unknown> | undefined> => {
  if (isModern(client.revision)) return (await client.call('server/discover')).result
  return (await openSession((await gateway()).url(), client.revision)).result
}

everyKind('D4: all tools of members that paginate, in the same order a hundred times', async ({ servers }, client) => {
  paginate(servers.modern, named('m', 25))
  paginate(servers.pipe, named('p', 31))
  servers.legacy?.methods.set('tools/list', () => ({ tools: [tool('only')] }))
  const expected = [...named('modern__m', 25), 'legacy__only', ...named('pipe__p', 31)]
  const begun = performance.now()
  for (let i = 0; i < 100; i++) {
    const { result } = await client.call('tools/list')
    expect(namesIn(result, 'tools')).toEqual(expected)
    expect(result).not.toHaveProperty('nextCursor')
  }
  // Three pages are read by the health monitor, for the list, and again whenever that list, which may be older than this
  // test, is five seconds old. The legacy server announces changes: its list stays.
  const readings = 3 + Math.floor((performance.now() - begun) / 5000)
  expect(servers.modern?.of('tools/list').length).toBeLessThanOrEqual(3 * readings)
  expect(servers.legacy?.of('tools/list').length).toBeLessThanOrEqual(2)
})

everyKind(
  'D5, H11: five thousand tools come in pages, each once; a begun list goes on as it was, a foreign cursor is refused',
  async ({ servers }, client) => {
    const names = named('t', 5000)
    servers.legacy?.methods.set('tools/list', () => ({ tools: names.map(tool) }))
    const { names: read, sizes, cursors } = await listAll(client)
    expect(read).toEqual(names.map(name => `legacy__${name}`))
    expect(sizes.length).toBeGreaterThan(4)
    expect(Math.min(...sizes)).toBeGreaterThan(0)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1000)
    expect(new Set(cursors).size).toBe(cursors.length)
    await client.listen()
    names.push('new')
    servers.legacy?.say(CHANGED)
    await client.heard(CHANGED)
    const refused = { code: -32602, message: expect.stringContaining('list again without a cursor') }
    const { result } = await client.call('tools/list', { cursor: cursors[0] })
    expect(namesIn(result, 'tools')).toEqual(read.slice(sizes[0], (sizes[0] ?? 0) + (sizes[1] ?? 0)))
    const yesterday = 'l.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    expect((await client.call('tools/list', { cursor: yesterday })).error).toMatchObject(refused)
    expect((await listAll(client)).names).toHaveLength(5001)
  },
)

everyKindInTurn(
  'D6: prompts of those who have some; the others are no error',
  async ({ servers }, client) => {
    const { result } = await client.call('prompts/list')
    expect(namesIn(result, 'prompts')).toEqual(['pipe__p'])
    expect(result?._meta).toBeUndefined()
    expect(servers.modern?.of('prompts/list')).toEqual([])
  },
  {
    prepare: ({ legacy, modern }) => {
      legacy?.methods.delete('prompts/list')
      modern?.methods.set('server/discover', () => ({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }))
    },
  },
)

everyKind('D4: the same list after a server has started anew', async ({ servers }, client) => {
  for (const [name, server] of Object.entries(servers)) paginate(server, named(name, 15))
  const { names } = await listAll(client)
  expect(names).toHaveLength(45)
  await client.listen()
  const { sessions } = servers.legacy as Awaited<ReturnType<typeof sessionServer>>
  ;(sessions as Set<string>).clear() // nothing is left of what it knew
  await client.call('tools/call', { name: 'legacy__legacy0' })
  expect((await listAll(client)).names).toEqual(names)
})

test('callers nobody knows are listed for in sessions that end at once', async () => {
  await amongMany(
    { modern: MEMBERS.modern, legacy: () => sessionServer('2025-06-18') },
    { insecure: true },
    async ({ servers, client }) => {
      const { sessions } = servers.legacy as Awaited<ReturnType<typeof sessionServer>>
      servers.legacy?.tools.set('x', () => ({ content: [] }))
      const before = sessions.size
      const one = await client(KINDS[0] as (typeof KINDS)[0])
      expect(namesIn((await one.call('tools/list')).result, 'tools')).toEqual(['legacy__x'])
      await expect.poll(() => sessions.size).toBe(before)
      await one.call('tools/list')
      expect(servers.legacy?.of('tools/list')).toHaveLength(1)
    },
  )
})

test('D7, H28: a public list is asked for once for two users, a private one twice', async () => {
  const data = await newDataDirectory()
  const [ann, bob] = [await createToken(data), await createToken(data)]
  const hinted = (server: MatrixServer | undefined, cacheScope: string) =>
    server?.methods.set('tools/list', () => ({ tools: [tool('x')], ttlMs: 60_000, cacheScope }))
  try {
    await amongMany({ a: MEMBERS.modern, b: MEMBERS.modern }, { data }, async ({ servers, client }) => {
      hinted(servers.a, 'public')
      hinted(servers.b, 'private')
      const one = await client(KINDS[0] as (typeof KINDS)[0])
      const list = (headers: Record<string, string>) => one.call('tools/list', {}, { headers })
      const first = await list(ann.headers)
      expect(first.result).toMatchObject({ ttlMs: expect.any(Number), cacheScope: 'private' })
      await new Promise(resolve => setTimeout(resolve, 5)) // so that some of the time has gone by
      const second = await list(bob.headers)
      expect(second.result?.ttlMs).toBeLessThan(60_000)
      expect(second.result?.ttlMs).toBeGreaterThan(0)
      await list(ann.headers)
      expect(servers.a?.of('tools/list')).toHaveLength(1)
      expect(servers.b?.of('tools/list')).toHaveLength(2)
      expect((await list({})).error ?? (await list({})).result).not.toHaveProperty('tools')
    })
  } finally {
    await rm(data, { recursive: true, force: true })
  }
})

everyKindInTurn('H9: the workspace can what one of its members can', async (many, client) => {
  const found = await introduction(many, client)
  expect(found?.capabilities).toMatchObject({
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    logging: {},
  })
  // Tasks of 2025-11-25, for the tools of the modern members; no list of them all.
  const tasks = { cancel: {}, requests: { tools: { call: {} } } }
  const capabilities = (found?.capabilities ?? {}) as { readonly tasks?: object }
  expect(capabilities.tasks).toEqual(client.revision === '2025-11-25' ? tasks : undefined)
})

test('H9: legacy clients are told what may come later, modern ones what there is', async () => {
  await amongMany({ a: MEMBERS.modern, b: MEMBERS.modern }, {}, async many => {
    const { servers, client } = many
    for (const server of Object.values(servers))
      server.methods.set('server/discover', () => ({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }))
    for (const kind of KINDS) {
      const found = await introduction(many, await client(kind))
      const all = ['tools', 'prompts', 'resources']
      if (kind.revision === '2025-11-25') all.push('tasks')
      expect(Object.keys(found?.capabilities as object).sort()).toEqual(
        isModern(kind.revision) ? ['tools'] : all.sort(),
      )
    }
  })
})

everyKind(
  'H10: one list_changed for what several members announce, and none for what changes nothing',
  async ({ servers }, client) => {
    for (const server of Object.values(servers)) server.tools.set('x', () => ({ content: [] }))
    await client.call('tools/list')
    await client.listen()
    await client.call('tools/call', { name: 'pipe__x', arguments: {} }) // starts its process
    const listed = Object.values(servers).map(server => server.of('tools/list').length)
    for (const server of Object.values(servers)) server.say(CHANGED)
    await Promise.all(Object.values(servers).map((server, i) => server.arrived('tools/list', (listed[i] ?? 0) + 1)))
    for (const server of Object.values(servers)) server.tools.set('y', () => ({ content: [] }))
    for (const server of Object.values(servers)) server.say(CHANGED)
    await client.heard(CHANGED)
    const { result } = await client.call('tools/list')
    expect(namesIn(result, 'tools')).toContain('modern__x')
    const notices = client.received.filter(({ method }) => method === CHANGED)
    expect(notices.length).toBeLessThanOrEqual(3) // not one for each announcement
  },
)

const nowhere = (name: string): ServerConfig => remoteConfig('http://127.0.0.1:9/mcp', name)

everyKindInTurn(
  'H12: one member is down: the others are listed, and it is named',
  async ({ servers }, client) => {
    for (const server of Object.values(servers)) server.tools.set('x', () => ({ content: [] }))
    const { result } = await client.call('tools/list')
    expect(namesIn(result, 'tools')).toEqual(['modern__x', 'legacy__x', 'pipe__x'])
    expect(result?._meta).toEqual({ [UNAVAILABLE]: ['dead'] })
    if (isModern(client.revision)) expect(result?.ttlMs).toBeLessThanOrEqual(5000)
  },
  { configs: [nowhere('dead')] },
)

everyKindInTurn(
  'H12: a strict workspace shows no list without it',
  async (_, client) => {
    const { error } = await client.call('tools/list')
    expect(error).toMatchObject({ code: -32603, data: { reason: 'incomplete', missing: ['dead'] } })
    expect(error?.message).toContain('dead')
  },
  { configs: [nowhere('dead')], rules: { strict: true } },
)

everyKindInTurn(
  'H25: instructions have a section for each server, and say how names are made',
  async (many, client) => {
    const found = await introduction(many, client)
    const text = String(found?.instructions)
    expect(text.match(/^## .+$/gm)).toEqual(['## modern', '## legacy', '## pipe'])
    expect(text.match(/<server>__<name>/g)).toHaveLength(1)
    expect(text.match(/be kind/g)).toHaveLength(3)
  },
)

everyKindInTurn(
  'H25: the operator may say it better',
  async (many, client) => {
    expect((await introduction(many, client))?.instructions).toBe('Ask Ann.')
  },
  { rules: { instructions: 'Ask Ann.' } },
)

test('a schema of 30 MiB has a page for itself and harms nobody', async () => {
  await amongMany({ modern: MEMBERS.modern, legacy: MEMBERS.legacy }, {}, async ({ servers, client }) => {
    const large = { ...tool('large'), inputSchema: { type: 'object', $comment: 'x'.repeat(30 << 20) } }
    servers.modern?.methods.set('tools/list', () => ({ tools: [tool('before'), large, tool('after')] }))
    servers.legacy?.methods.set('tools/list', () => ({ tools: [tool('x')] }))
    for (const kind of [KINDS[0], KINDS[1]] as (typeof KINDS)[0][]) {
      const { names, sizes } = await listAll(await client(kind))
      expect(names).toEqual(['modern__before', 'modern__large', 'modern__after', 'legacy__x'])
      expect(sizes).toEqual([1, 1, 2])
    }
  })
}, 60_000)

test('the REST door takes the server as a segment, and any form of a name', async () => {
  await amongMany(MEMBERS, {}, async ({ servers, gateway }) => {
    for (const [name, server] of Object.entries(servers))
      server.tools.set('x', () => ({ content: [{ type: 'text', text: name }] }))
    servers.pipe?.tools.set('only', () => {
      throw new ToolError(-32602, 'Invalid arguments')
    })
    const post = async (path: string) => {
      const { origin } = await gateway()
      const response = await fetch(`${origin}/actions/${path}`, { method: 'POST' })
      return { status: response.status, text: await response.text() }
    }
    expect(await post('default/legacy/x')).toMatchObject({ status: 200, text: expect.stringContaining('legacy') })
    expect(await post('pipe__x')).toMatchObject({ status: 200, text: expect.stringContaining('pipe') })
    expect(await post('default/modern%2Fx')).toMatchObject({ status: 200, text: expect.stringContaining('modern') })
    expect(await post('only')).toMatchObject({ status: 422, text: expect.stringContaining('Invalid arguments') })
    expect(await post('default/legacy/only')).toMatchObject({ status: 404 })
    expect(await post('x')).toMatchObject({ text: expect.stringContaining('legacy__x') }) // several have it
  })
})

test.each(KINDS.filter(({ revision }) => isModern(revision)))(
  'D3: a listener ($name) of a modern server, one without GET streams and a dead one survives restarts, and hears of each once',
  async kind => {
    const withoutGet = async () => {
      const server = await sessionServer('2025-06-18')
      server.refuseGet()
      return server
    }
    const starts = { modern: MEMBERS.modern, legacy: withoutGet }
    await amongMany(starts, { configs: [nowhere('dead')], isHasty: true }, async ({ servers, client }) => {
      for (const server of Object.values(servers)) server.tools.set('x', () => ({ content: [] }))
      const listener = await client(kind)
      await listener.call('tools/list')
      const started = performance.now()
      await listener.listen()
      expect(performance.now() - started).toBeLessThan(5000)
      const changes = () => listener.received.filter(({ method }) => method === CHANGED).length
      for (const name of ['modern', 'legacy']) {
        const before = changes()
        await servers[name]?.kill()
        for (let failed = 0; failed < BREAK_AFTER; failed++)
          expect((await listener.call('tools/call', { name: `${name}__x` })).error).toBeDefined()
        servers[name]?.tools.set(`new-${name}`, () => ({ content: [] }))
        await servers[name]?.restart()
        await expect.poll(changes, { timeout: 10_000 }).toBe(before + 1)
        const { result } = await listener.call('tools/list')
        expect(namesIn(result, 'tools')).toContain(`${name}__new-${name}`)
        expect(changes()).toBe(before + 1)
      }
      const answers = listener.received.filter(({ method }) => method === undefined)
      expect(answers).toHaveLength(1 + 2 * (BREAK_AFTER + 1)) // none to the listen
    })
  },
  30_000,
)

test('H38, D3: no client waits longer than the limit for a server that never answers', async () => {
  const silent = await scriptedServer(() => {})
  const configs = [remoteConfig(silent.url, 'silent')]
  const started = performance.now()
  const use = async (many: Many, kind: (typeof KINDS)[number]): Promise<MatrixClient> => {
    const client = await many.client(kind)
    expect((await introduction(many, client))?.capabilities).toMatchObject({ tools: {}, prompts: {}, resources: {} })
    const { result } = await client.call('tools/list')
    expect(namesIn(result, 'tools'), kind.name).toEqual(['modern__x', 'legacy__x', 'pipe__x'])
    expect(result?._meta).toEqual({ [UNAVAILABLE]: ['silent'] })
    await client.listen()
    return client
  }
  try {
    await amongMany(MEMBERS, { configs, isHasty: true, limits: { listWaitMs: 2000 } }, async many => {
      for (const server of Object.values(many.servers)) server.tools.set('x', () => ({ content: [] }))
      const clients = await Promise.all(KINDS.map(kind => use(many, kind)))
      many.servers.legacy?.tools.set('y', () => ({ content: [] }))
      many.servers.legacy?.say(CHANGED)
      await Promise.all(clients.map(client => client.heard(CHANGED)))
      expect(performance.now() - started).toBeLessThan(6000) // a client that waited once does not wait again
    })
  } finally {
    await silent.close()
  }
}, 30_000)
