import { describe, expect, test } from 'vitest'
import { callerOf, isLast, noticesOf, talk } from '../../../test/support/embedded.ts'
import { SERVED } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { oneOf } from './completion.ts'
import { defineServer } from './define.ts'
import { failure } from './failures.ts'
import { prompt } from './prompts.ts'
import { resource, template } from './resources.ts'
import { tool } from './tools.ts'

const INFO = { 'io.modelcontextprotocol/serverInfo': { name: 'small', title: 'Small', version: '1.2.3' } }

const hello = tool({ name: 'hello', description: 'Says hello', run: () => 'Hello' })
const note = resource({ uri: 'note://1', name: 'one', read: () => 'One' })
const topic = prompt({
  name: 'topic',
  description: 'A topic',
  arguments: { of: { complete: oneOf('tea') } },
  get: () => 'Tea',
})

const full = () =>
  defineServer({
    name: 'small',
    title: 'Small',
    version: '1.2.3',
    instructions: 'Say hello',
    tools: [hello],
    prompts: [topic],
    resources: [note],
    templates: [template({ uriTemplate: 'note://{id}/x', name: 'x', read: ({ id }) => id })],
  })

describe('server/discover', () => {
  test('discovery names the versions, the capabilities, the instructions and the server', async () => {
    expect(await (await talk(full(), 'server/discover')).result()).toEqual({
      resultType: 'complete',
      supportedVersions: SERVED,
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        logging: {},
        completions: {},
      },
      instructions: 'Say hello',
      ttlMs: 0,
      cacheScope: 'private',
      _meta: INFO,
    })
  })

  test('lists that are not declared are neither advertised nor answered', async () => {
    const server = defineServer({ name: 'bare', version: '1', tools: [hello] })
    expect(await (await talk(server, 'server/discover')).result()).toMatchObject({
      capabilities: { logging: {}, tools: { listChanged: true } },
    })
    for (const method of ['prompts/list', 'prompts/get', 'resources/list', 'resources/read', 'completion/complete'])
      expect((await (await talk(server, method)).failure()).code).toBe(-32601)
  })

  test('a peer speaks the newest revision and may ask', async () => {
    expect(await full().open(callerOf())).toMatchObject({ revision: '2026-07-28', asks: true })
  })
})

describe('every result', () => {
  const requests: [string, { [member: string]: string | { [member: string]: string } }, boolean][] = [
    ['server/discover', {}, true],
    ['tools/list', {}, true],
    ['prompts/list', {}, true],
    ['resources/list', {}, true],
    ['resources/templates/list', {}, true],
    ['resources/read', { uri: 'note://1' }, true],
    ['tools/call', { name: 'hello' }, false],
    ['prompts/get', { name: 'topic' }, false],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'topic' }, argument: { name: 'of', value: '' } }, false],
  ]

  test.each(requests)(
    'of %s carries its type, its server and cache hints where they belong',
    async (method, params, cacheable) => {
      const result = await (await talk(full(), method, params)).result()
      expect(result).toMatchObject({ resultType: 'complete', _meta: INFO })
      expect(result).toMatchObject(cacheable ? { ttlMs: 0, cacheScope: 'private' } : {})
      expect(Object.keys(result as object).includes('ttlMs')).toBe(cacheable)
    },
  )

  test('keeps what its author wrote by hand', async () => {
    const raw =
      '{"content":[{"type":"text","text":"x","n":12345678901234567890}],"resultType":"other","_meta":{"mine":1.0}}'
    const server = defineServer({
      name: 'small',
      version: '1',
      tools: [tool({ name: 'raw', description: 'Raw', run: () => Json.parse(Buffer.from(raw)) })],
    })
    const { frames, result } = await talk(server, 'tools/call', { name: 'raw' })
    expect(await result()).toMatchObject({ resultType: 'other', _meta: { mine: 1 } })
    const last = frames.find(isLast)
    const text = last?.kind === 'result' ? last.result.toString() : ''
    expect(text).toContain('"n":12345678901234567890')
    expect(text).toContain('"mine":1.0')
    expect(text).toContain('io.modelcontextprotocol/serverInfo')
  })
})

describe('lists', () => {
  test('come in the order of declaration, time after time', async () => {
    const names = ['c', 'a', 'b']
    const server = defineServer({
      name: 's',
      version: '1',
      tools: names.map(name => tool({ name, description: name, run: () => name })),
    })
    for (let i = 0; i < 3; i++) {
      const { tools } = (await (await talk(server, 'tools/list')).result()) as { tools: { name: string }[] }
      expect(tools.map(({ name }) => name)).toEqual(names)
    }
  })

  test.each(['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])(
    '%s rejects a cursor',
    async method => {
      expect(await (await talk(full(), method, { cursor: 'abc' })).failure()).toMatchObject({
        code: -32602,
        message: 'Unknown cursor: "abc"',
      })
      expect((await (await talk(full(), method, { cursor: '' })).failure()).code).toBe(-32602)
      expect(await (await talk(full(), method, { cursor: null })).result()).toMatchObject({ resultType: 'complete' })
    },
  )

  test('a list that changes is looked at each time, and so is what can be called', async () => {
    let tools = [hello]
    const server = defineServer({ name: 's', version: '1', tools: () => tools })
    expect((await (await talk(server, 'tools/call', { name: 'late' })).failure()).code).toBe(-32602)
    tools = [hello, tool({ name: 'late', description: 'Late', run: () => 'Here' })]
    expect(await (await talk(server, 'tools/call', { name: 'late' })).result()).toMatchObject({
      content: [{ type: 'text', text: 'Here' }],
    })
    expect(((await (await talk(server, 'tools/list')).result()) as { tools: unknown[] }).tools).toHaveLength(2)
  })
})

describe('bad requests', () => {
  test('an unknown method is named', async () => {
    expect(await (await talk(full(), 'tools/dance')).failure()).toMatchObject({
      code: -32601,
      message: 'Method not found: tools/dance',
    })
  })

  test.each(['ping', 'initialize', 'logging/setLevel', 'resources/subscribe', 'constructor', '__proto__'])(
    '%s is no method of a modern server',
    async method => {
      expect((await (await talk(full(), method)).failure()).code).toBe(-32601)
    },
  )

  test('a notification is never answered, whatever it says', async () => {
    for (const method of ['notifications/cancelled', 'tools/list', 'nonsense'])
      expect((await talk(full(), method, {}, { kind: 'notification' })).frames).toEqual([])
  })
})

describe('one call', () => {
  const serve = (run: Parameters<typeof tool>[0]['run']) =>
    defineServer({ name: 's', version: '1', tools: [tool({ name: 't', description: 'T', run })] })

  test('ends with exactly one frame, and nothing comes after it', async () => {
    let late = (): void => {}
    const server = serve((_args, call) => {
      late = () => {
        void call.progress(2)
        void call.log('error', 'late')
        call.ask('late', { method: 'roots/list', params: Json.empty, needs: 'roots', read: () => 1 }).catch(() => {})
      }
      void call.progress(1)
      return 'done'
    })
    const t = await talk(
      server,
      'tools/call',
      { name: 't', _meta: { progressToken: 1 } },
      { caller: { logLevel: 'debug' } },
    )
    await t.result()
    late()
    await Promise.resolve()
    expect(t.frames.map(({ kind }) => kind)).toEqual(['notice', 'result'])
  })

  test('that was cancelled sends no more frames', async () => {
    let proceed = (): void => {}
    const finished = new Promise<void>(resolve => {
      proceed = resolve
    })
    const reasons: unknown[] = []
    const server = serve(async (_args, call) => {
      call.signal.onAbort(reason => reasons.push(reason))
      await finished
      void call.progress(1)
      return 'too late'
    })
    const t = await talk(server, 'tools/call', { name: 't', _meta: { progressToken: 1 } })
    t.abort.abort({ kind: 'cancelled', text: 'never mind' })
    expect(reasons).toEqual([{ kind: 'cancelled', text: 'never mind' }])
    proceed()
    await new Promise(setImmediate)
    expect(t.frames).toEqual([])
  })

  test('that was cancelled before it began does not run', async () => {
    let runs = 0
    const server = serve(() => {
      runs += 1
      return ''
    })
    const peer = await server.open(callerOf())
    const { abort } = await talk(server, 'server/discover')
    abort.abort({ kind: 'gone' })
    peer.dispatch({
      kind: 'request',
      method: 'tools/call',
      params: Json.of({ name: 't' }),
      caller: callerOf(),
      signal: abort,
      sink: () => expect.unreachable(),
    })
    await new Promise(setImmediate)
    expect(runs).toBe(0)
  })

  test('may be answered with a JSON-RPC error of its handler', async () => {
    const server = serve(() => {
      throw failure('invalidParams', 'No such page', Json.of({ page: 7 }))
    })
    expect(await (await talk(server, 'tools/call', { name: 't' })).failure()).toEqual({
      code: -32602,
      message: 'No such page',
      data: { page: 7 },
    })
  })
})

describe('closing', () => {
  test('ends running calls, withdraws their questions, and rejects new ones', async () => {
    const server = defineServer({
      name: 'small',
      version: '1',
      tools: [
        tool({
          name: 'ask',
          description: 'Asks',
          run: async (_args, call) =>
            call.ask('roots', { method: 'roots/list', params: Json.empty, needs: 'roots', read: () => 'ok' }),
        }),
      ],
    })
    const peer = await server.open(callerOf())
    const running = await talk(server, 'tools/call', { name: 'ask' })
    const question = await running.question('roots')
    const listening = await talk(server, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    await server.close()

    expect(await running.failure()).toMatchObject({ code: -32603, message: 'The server small is closing' })
    expect(question.withdrawn.reason).toBeDefined()
    expect(await listening.result()).toMatchObject({ resultType: 'complete' })
    expect(noticesOf(listening)).toHaveLength(1)
    await expect(server.open(callerOf())).rejects.toThrow('The server small is closing')
    const late: unknown[] = []
    peer.dispatch({
      kind: 'request',
      method: 'tools/list',
      params: Json.empty,
      caller: callerOf(),
      signal: running.abort,
      sink: frame => void late.push(frame),
    })
    expect(late).toMatchObject([{ kind: 'failure', error: { code: -32603 } }])
    await new Promise(setImmediate)
    expect(running.frames.filter(isLast)).toHaveLength(1)
  })
})

describe("an author's mistakes show when the server is made", () => {
  test('two tools of one name', () => {
    expect(() => defineServer({ name: 's', version: '1', tools: [hello, hello] })).toThrow(
      'Two tools have the same name',
    )
  })

  test('a header annotation that no client would accept', () => {
    expect(() =>
      tool({
        name: 't',
        description: 'T',
        input: { type: 'object', properties: { a: { type: 'object', 'x-mcp-header': 'A' } } },
        run: () => '',
      }),
    ).toThrow('Tool t: x-mcp-header "A"')
  })
})
