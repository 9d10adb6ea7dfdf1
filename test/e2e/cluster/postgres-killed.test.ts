import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startPostgres, whyNoPostgres } from '../../support/postgres.ts'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
import {
  legacy,
  notice,
  openStream as openEvents,
  result,
  scriptedServer,
  sendJson,
} from '../../support/scripted-server.ts'
import { startServe } from '../cli/program.ts'

const why = whyNoPostgres()

/** Two programs on one PostgreSQL before a legacy server, and a session whose home is the first, which the client is connected to. */
const startTwo = async () => {
  let finish = (): void => {}
  const server = await scriptedServer(
    legacy((arrived, response) => {
      const { id, method, params } = arrived.body
      if (method !== 'tools/call') return sendJson(response, result(id, { tools: [] }))
      if (params?.name === 'answer')
        return sendJson(response, result(id, { content: [{ type: 'text', text: 'here' }] }))
      if (params?.name !== 'talk') return
      const stream = openEvents(response)
      stream.event(notice('notifications/message', { level: 'info', data: 1 }))
      finish = () => {
        stream.event(result(id, { content: [{ type: 'text', text: 'late' }] }))
        stream.end()
      }
    }),
  )
  onTestFinished(server.close)
  const postgres = await startPostgres()
  onTestFinished(postgres.stop)
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-killed-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const config = join(folder, 'dragoman.json')
  await writeFile(config, JSON.stringify({ store: postgres.url, mcpServers: { far: { url: server.url } } }))
  const start = async (name: string) => {
    const program = await startServe(['--config', config, '--data', join(folder, name)])
    onTestFinished(async () => {
      program.signal('SIGKILL')
      await program.ended
    })
    return { ...program, url: `${program.origin}/mcp` }
  }
  const [home, other] = await Promise.all([start('home'), start('other')])
  const { headers } = await openSession(home.url)
  const call = (name: string, id: number) => ({
    headers,
    body: { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } },
  })
  const kill = async (killed: Pick<typeof home, 'signal' | 'ended'> = home): Promise<void> => {
    killed.signal('SIGKILL')
    await killed.ended
  }
  const calledTimes = (name: string): number =>
    server.of('tools/call').filter(({ body }) => body.params?.name === name).length
  return { server, home, other, headers, call, kill, calledTimes, finish: () => finish() }
}

describe.skipIf(why !== undefined || process.platform === 'win32')('a home that is the entry, killed', () => {
  test('resets the connection of a call it has not answered; the session goes on at another replica, and the call is not repeated', async () => {
    const { server, home, other, headers, call, kill, calledTimes } = await startTwo()
    const json = { ...headers, accept: 'application/json' } // an answer that is not sent yet, not even its head
    const unanswered = send(home.url, { ...call('hang', 1), headers: json }).then(
      () => 'an answer',
      (error: NodeJS.ErrnoException) => error.code,
    )
    await server.until(() => calledTimes('hang') === 1, 'the call')
    await kill()
    expect(await unanswered).toBe('ECONNRESET')
    const next = await send(other.url, call('answer', 2))
    expect([next.status, next.json.result]).toEqual([200, { content: [{ type: 'text', text: 'here' }] }])
    expect([calledTimes('hang'), calledTimes('answer')]).toEqual([1, 1])
  })

  test('breaks off the stream of a call; another replica ends it with an error for the call', async () => {
    const { home, other, headers, call, kill, calledTimes } = await startTwo()
    const stream = await openStream(home.url, call('talk', 7))
    const seen = await stream.next()
    expect(seen?.json.method).toBe('notifications/message')
    await kill()
    expect(await stream.all()).toEqual([])
    const resumed = await openStream(other.url, {
      method: 'GET',
      headers: { ...headers, accept: 'text/event-stream', 'last-event-id': seen?.id ?? '' },
    })
    const [end, ...more] = (await resumed.all()).map(({ json }) => json)
    expect(end).toMatchObject({ id: 7, error: { code: -32603, data: { reason: 'gateway_restarted' } } })
    expect(more).toEqual([])
    expect((await send(other.url, call('answer', 8))).json.result).toBeDefined()
    expect(calledTimes('talk')).toBe(1)
  })
})

describe.skipIf(why !== undefined || process.platform === 'win32')(
  'an entry that is killed while the home lives',
  () => {
    test('resets the connection of a call without an answer; the session goes on', async () => {
      const { server, home, other, headers, call, kill, calledTimes } = await startTwo()
      const json = { ...headers, accept: 'application/json' }
      const unanswered = send(other.url, { ...call('hang', 1), headers: json }).then(
        () => 'an answer',
        (error: NodeJS.ErrnoException) => error.code,
      )
      await server.until(() => calledTimes('hang') === 1, 'the call')
      await kill(other)
      expect(await unanswered).toBe('ECONNRESET')
      expect((await send(home.url, call('answer', 2))).json.result).toBeDefined()
      expect([calledTimes('hang'), calledTimes('answer')]).toEqual([1, 1])
    })

    test('breaks off a stream, which the client resumes for the result: the call goes on', async () => {
      const { home, other, headers, call, kill, calledTimes, finish } = await startTwo()
      const stream = await openStream(other.url, call('talk', 7))
      const seen = await stream.next()
      await kill(other)
      expect(await stream.all()).toEqual([])
      finish()
      const resumed = await openStream(home.url, {
        method: 'GET',
        headers: { ...headers, accept: 'text/event-stream', 'last-event-id': seen?.id ?? '' },
      })
      const events = (await resumed.all()).filter(({ data }) => data !== '').map(({ json }) => json)
      expect(events).toMatchObject([{ id: 7, result: { content: [{ text: 'late' }] } }])
      expect(calledTimes('talk')).toBe(1)
    })
  },
)

describe.skipIf(why !== undefined || process.platform === 'win32')('the home of a shared session, killed', () => {
  test('within its lease, calls at another replica are not lost with it: they are served there', async () => {
    const { home, other, kill, calledTimes } = await startTwo()
    const ask = (at: { url: string }, id: number) => send(at.url, modern(id, 'tools/call', { name: 'answer' }))
    const text = { content: [{ type: 'text', text: 'here' }] }
    for (const [id, at] of [home, other].entries()) expect((await ask(at, id)).json.result).toMatchObject(text)
    await kill()
    const answers = await Promise.all([7, 8, 9].map(id => ask(other, id)))
    expect(answers.map(({ json }) => json.result ?? json)).toEqual(answers.map(() => expect.objectContaining(text)))
    expect(calledTimes('answer')).toBe(5)
  })
})
