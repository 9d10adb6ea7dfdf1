import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startPostgres, whyNoPostgres } from '../../support/postgres.ts'
import { openSession, openStream, send } from '../../support/raw.ts'
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
  const server = await scriptedServer(
    legacy((arrived, response) => {
      const { id, method, params } = arrived.body
      if (method !== 'tools/call') return sendJson(response, result(id, { tools: [] }))
      if (params?.name === 'answer')
        return sendJson(response, result(id, { content: [{ type: 'text', text: 'here' }] }))
      if (params?.name === 'talk')
        openEvents(response).event(notice('notifications/message', { level: 'info', data: 1 }))
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
  const kill = async (): Promise<void> => {
    home.signal('SIGKILL')
    await home.ended
  }
  const calledTimes = (name: string): number =>
    server.of('tools/call').filter(({ body }) => body.params?.name === name).length
  return { server, home, other, headers, call, kill, calledTimes }
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
