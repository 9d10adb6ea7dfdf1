import { describe, expect, test } from 'vitest'
import { callerOf, isLast, noticesOf, type Talk, type TalkOptions, talk } from '../../../test/support/embedded.ts'
import { Abort } from '../../protocol/cancellation.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { type DefinedServer, defineServer } from './define.ts'
import { prompt } from './prompts.ts'
import { resource, template } from './resources.ts'
import { tool } from './tools.ts'

const everything = (): DefinedServer =>
  defineServer({
    name: 's',
    version: '1',
    tools: [
      tool({
        name: 'change',
        description: 'Changes',
        run: (_args, { changed }) => {
          changed.tools()
          return ''
        },
      }),
    ],
    prompts: [prompt({ name: 'p', description: 'P', get: () => '' })],
    resources: [resource({ uri: 'file:///dir', name: 'dir', read: () => '' })],
    templates: [template({ uriTemplate: 'note://{id}', name: 'note', read: ({ id }) => id })],
  })

const listen = (server: DefinedServer, notifications: PlainObject, options?: TalkOptions): Promise<Talk> =>
  talk(server, 'subscriptions/listen', { notifications }, options)

const ACK = 'notifications/subscriptions/acknowledged'
const methods = (t: Talk): string[] => noticesOf(t).map(({ method }) => method.replace('notifications/', ''))

describe('listening', () => {
  test('is acknowledged first, with what will be honoured', async () => {
    const t = await listen(everything(), {
      toolsListChanged: true,
      promptsListChanged: false,
      resourcesListChanged: true,
      resourceSubscriptions: ['file:///dir', 'note://7', 'gopher://unknown'],
      taskIds: ['later'],
    })
    expect(noticesOf(t)).toEqual([
      {
        method: ACK,
        params: {
          notifications: {
            toolsListChanged: true,
            resourcesListChanged: true,
            resourceSubscriptions: ['file:///dir', 'note://7'],
          },
        },
      },
    ])
  })

  test('for what a server does not have is acknowledged without it', async () => {
    const server = defineServer({ name: 's', version: '1', tools: [] })
    const t = await listen(server, {
      promptsListChanged: true,
      resourceSubscriptions: ['a://b'],
      toolsListChanged: true,
    })
    expect(noticesOf(t)[0]?.params).toEqual({ notifications: { toolsListChanged: true } })
  })

  test('sends the requested notifications and no others', async () => {
    const server = everything()
    const tools = await listen(server, { toolsListChanged: true })
    const prompts = await listen(server, { promptsListChanged: true })
    const all = await listen(server, { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true })
    const nothing = await listen(server, {})
    server.changed.tools()
    server.changed.prompts()
    server.changed.resources()
    server.changed.updated('file:///dir')
    expect(methods(tools)).toEqual(['subscriptions/acknowledged', 'tools/list_changed'])
    expect(methods(prompts)).toEqual(['subscriptions/acknowledged', 'prompts/list_changed'])
    expect(methods(all).slice(1)).toEqual(['tools/list_changed', 'prompts/list_changed', 'resources/list_changed'])
    expect(methods(nothing)).toEqual(['subscriptions/acknowledged'])
  })

  test('hears of changes that a call brings about, before its result', async () => {
    const server = everything()
    const order: string[] = []
    await listen(server, { toolsListChanged: true }, { onFrame: frame => void order.push(frame.kind) })
    await (
      await talk(server, 'tools/call', { name: 'change' }, { onFrame: ({ kind }) => void order.push(kind) })
    ).result()
    expect(order).toEqual(['notice', 'notice', 'result'])
  })

  test('to a resource hears of it and of what lies below it', async () => {
    const server = everything()
    const t = await listen(server, { resourceSubscriptions: ['file:///dir', 'note://7'] })
    for (const uri of ['file:///dir', 'file:///dir/a/b', 'file:///directory', 'note://7', 'note://70', 'note://8'])
      server.changed.updated(uri)
    expect(noticesOf(t).slice(1)).toEqual(
      ['file:///dir', 'file:///dir/a/b', 'note://7'].map(uri => ({
        method: 'notifications/resources/updated',
        params: { uri },
      })),
    )
  })

  test('that was cancelled gets no notification and no result', async () => {
    for (const reason of [{ kind: 'gone' }, { kind: 'cancelled' }, { kind: 'expired' }] as const) {
      const server = everything()
      const t = await listen(server, { toolsListChanged: true })
      t.abort.abort(reason)
      server.changed.tools()
      await server.close()
      expect(t.frames).toHaveLength(1)
    }
  })

  test('ends with a result when the gateway or the server closes, once', async () => {
    const byGateway = everything()
    const first = await listen(byGateway, { toolsListChanged: true })
    first.abort.abort({ kind: 'closing' })
    expect(await first.result()).toMatchObject({ resultType: 'complete' })

    const byServer = everything()
    const second = await listen(byServer, { toolsListChanged: true })
    await byServer.close()
    second.abort.abort({ kind: 'closing' })
    byServer.changed.tools()
    expect(await second.result()).toMatchObject({ resultType: 'complete' })
    expect(second.frames.filter(isLast)).toHaveLength(1)
    expect(second.frames).toHaveLength(2)
  })

  test('a listener that leaves while it is being acknowledged is let go', async () => {
    const server = everything()
    const abort = new Abort()
    const kinds: string[] = []
    const peer = await server.open(callerOf())
    peer.dispatch({
      kind: 'request',
      method: 'subscriptions/listen',
      params: Json.of({ notifications: { toolsListChanged: true } }),
      caller: callerOf(),
      signal: abort,
      sink: ({ kind }) => {
        kinds.push(kind)
        abort.abort({ kind: 'closing' })
      },
    })
    server.changed.tools()
    expect(kinds).toEqual(['notice', 'result'])
  })
})

describe('a reader that is behind', () => {
  test('finds one notice of each kind when it comes back', async () => {
    const server = everything()
    let catchUp = (): void => {}
    const behind = new Promise<void>(resolve => {
      catchUp = resolve
    })
    let slow = true
    const t = await listen(
      server,
      { toolsListChanged: true, resourceSubscriptions: ['file:///dir'] },
      { onFrame: () => (slow ? behind : undefined) },
    )
    for (let i = 0; i < 5; i++) {
      server.changed.tools()
      server.changed.updated('file:///dir/a')
      server.changed.updated('file:///dir/b')
    }
    expect(t.frames).toHaveLength(1)
    slow = false
    catchUp()
    await new Promise(setImmediate)
    expect(methods(t)).toEqual([
      'subscriptions/acknowledged',
      'tools/list_changed',
      'resources/updated',
      'resources/updated',
    ])
    server.changed.tools()
    expect(t.frames).toHaveLength(5)
  })

  test('does not keep others from hearing', async () => {
    const server = everything()
    await listen(server, { toolsListChanged: true }, { onFrame: () => new Promise<void>(() => {}) })
    const t = await listen(server, { toolsListChanged: true })
    server.changed.tools()
    expect(methods(t)).toEqual(['subscriptions/acknowledged', 'tools/list_changed'])
  })

  test('that never comes back gets nothing after it left', async () => {
    const server = everything()
    let catchUp = (): void => {}
    const t = await listen(
      server,
      { toolsListChanged: true },
      { onFrame: () => new Promise<void>(resolve => (catchUp = resolve)) },
    )
    server.changed.tools()
    t.abort.abort({ kind: 'gone' })
    catchUp()
    await new Promise(setImmediate)
    expect(t.frames).toHaveLength(1)
  })
})

describe('a filter that makes no sense', () => {
  test.each<[string, PlainObject, string]>([
    ['no filter', {}, 'notifications must be an object'],
    ['a list', { notifications: [] }, 'notifications must be an object'],
    [
      'a flag in words',
      { notifications: { toolsListChanged: 'yes' } },
      'notifications.toolsListChanged must be a boolean',
    ],
    [
      'a URI alone',
      { notifications: { resourceSubscriptions: 'a://b' } },
      'notifications.resourceSubscriptions must be a list of strings',
    ],
    [
      'a number among URIs',
      { notifications: { resourceSubscriptions: ['a://b', 1] } },
      'notifications.resourceSubscriptions must be a list of strings',
    ],
  ])('is refused: %s', async (_name, params, message) => {
    const t = await talk(everything(), 'subscriptions/listen', params)
    expect(await t.failure()).toMatchObject({ code: -32602, message })
    expect(t.frames).toHaveLength(1)
  })
})
