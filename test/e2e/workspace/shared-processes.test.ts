import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import type { ProcessSharing } from '../../../src/config/snapshot.ts'
import { type ClientKind, type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { nodeServer, startGatewayBefore } from '../../support/gateway.ts'
import { eventually, SERVER } from '../../support/processes.ts'
import { livingWith } from '../../support/run-processes.ts'

const FILESYSTEM = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'))

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A gateway before one server that is started, and how clients connect to it. */
const start = async (args: readonly string[], share?: ProcessSharing, idleMs?: number) => {
  const run = randomUUID()
  const server = { ...nodeServer('small', args, { TEST_RUN: run }), share }
  const limits = { idleMs: idleMs ?? 60_000, lifetimeMs: 0, memoryBytes: 0, processes: 64, exitMs: 2000, termMs: 2000 }
  const { url, close } = await startGatewayBefore([{ ...server, limits } as typeof server])
  closing.push(close)
  const connect = async (kind: ClientKind, capabilities: Record<string, object> = {}, name = 'Ada') => {
    const roots = { roots: [{ uri: `file://${name}` }] }
    const answer = ({ method }: { method: string }) =>
      method === 'roots/list' ? roots : { action: 'accept', content: { name } }
    const options = { url, capabilities, answer }
    const client = await (kind === 'SDK v1' ? connectV1(options) : connectV2(kind, options))
    closing.push(() => client.close())
    return client
  }
  return { connect, living: () => livingWith(run) }
}

const call = async (client: TestClient, name: string, given = {}) => textOf(await client.call(name, given))
const KINDS: readonly ClientKind[] = ['SDK v1', 'SDK v1', 'SDK v2 legacy', 'SDK v2 modern', 'SDK v2 modern']

describe('a stdio server', () => {
  test('runs once for all clients of a user, and not at all after the idle limit', async () => {
    const { connect, living } = await start([SERVER, '{}'], undefined, 600)
    await eventually(living).toEqual([]) // the process that the health check started
    const clients = await Promise.all(KINDS.map(kind => connect(kind)))
    for (const { toolNames } of clients) expect(await toolNames()).toContain('pid')
    const pids = await Promise.all(clients.map(client => call(client, 'pid')))
    expect(new Set(pids).size).toBe(1)
    expect(living()).toEqual([Number(pids[0])])
    await eventually(living).toEqual([])
    expect(await call(clients[0] as TestClient, 'echo', { text: 'again' })).toBe('again')
  })

  test('runs once for each client session if its entry says so', async () => {
    const { connect } = await start([SERVER, '{}'], 'session')
    const clients = await Promise.all(KINDS.map(kind => connect(kind)))
    const pids = await Promise.all(clients.map(client => call(client, 'pid')))
    expect(new Set(pids).size).toBe(4) // the modern clients have no session
  })

  test('asks the client that called, while others call, too', async () => {
    const { connect } = await start([SERVER, '{}'])
    const names = ['Ada', 'Ben', 'Cyd']
    const clients = await Promise.all(names.map(name => connect('SDK v1', { elicitation: {} }, name)))
    const ask = async () => {
      const answers = await Promise.all(clients.map(client => call(client, 'ask')))
      return answers.map(answer => JSON.parse(answer).content?.name)
    }
    expect(await ask()).toEqual(names)
    expect(await ask()).toEqual(names)
  })

  test('that uses roots gets those of each client', async () => {
    const { connect, living } = await start([FILESYSTEM, '/tmp'])
    const folders = ['/tmp', '/usr', '/etc']
    const clients = await Promise.all(folders.map(folder => connect('SDK v1', { roots: {} }, folder)))
    const allowed = await Promise.all(clients.map(client => call(client, 'list_allowed_directories')))
    for (const [at, text] of allowed.entries()) expect(text).toContain(folders[at])
    expect(living()).toHaveLength(3)
    const plain = await Promise.all([connect('SDK v1'), connect('SDK v1')])
    for (const client of plain) expect(await call(client, 'list_allowed_directories')).toContain('/tmp')
    expect(living()).toHaveLength(4)
  })
})
