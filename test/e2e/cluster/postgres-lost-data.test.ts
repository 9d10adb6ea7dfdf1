import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openPostgres } from '../../../src/stores/postgres.ts'
import { openState } from '../../../src/stores/state/open-state.ts'
import { stateTables } from '../../../src/stores/state/state-schema.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { startPostgres, whyNoPostgres } from '../../support/postgres.ts'
import { openSession, openStream, send } from '../../support/raw.ts'
import { createReplicaServer } from '../../support/replica-server.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'
import { type Members, modernClient, textIn } from '../../support/task-client.ts'

const isOwn = whyNoPostgres() === undefined && !process.env.DATABASE_URL

/** Two gateways on one PostgreSQL, and a way to lose everything that is stored there. */
const startTwo = async () => {
  const postgres = await startPostgres()
  onTestFinished(postgres.stop)
  const place = { kind: 'postgres', url: postgres.url } as const
  const cluster = await startReplicas({
    ...{ size: 2, server: at => createReplicaServer(at), tasks: { afterMs: 100 } },
    openState: () => openState(place, SILENT),
  })
  onTestFinished(cluster.close)
  const database = openPostgres({ url: postgres.url })
  onTestFinished(() => database.close())
  const { meta, ...others } = stateTables(database)
  const lose = () => database.exec(`TRUNCATE ${Object.values(others)}; DELETE FROM ${meta} WHERE name <> 'schema'`)
  // The rows themselves: a replica answers for its records also before it has written them again.
  const waitForRow = (table: 'record' | 'event', condition = 'true') =>
    vi.waitFor(async () => {
      const rows = await database.all(`SELECT id FROM ${others[table]} WHERE ${condition}`)
      expect(rows).not.toEqual([])
    }, 10_000)
  const [home, other] = cluster.replicas as [TestReplica, TestReplica]
  return { place, home, other, lose, waitForRow }
}

const seqOf = (eventId = ''): number => Number(eventId.split('.').at(-1))

/** While the replicas write everything again, a task is not known to be missing. */
const taskAt = async (url: string, taskId: unknown): Promise<Members> => {
  const client = modernClient(url)
  for (;;)
    try {
      return await client.over(taskId)
    } catch (error) {
      expect(error).toMatchObject({ data: { reason: 'store_away' } })
    }
}

describe.skipIf(!isOwn)('a PostgreSQL that loses its data', () => {
  test('costs no running task, wherever it is asked for', async () => {
    const { home, other, lose } = await startTwo()
    const { taskId } = await modernClient(home.url).ask('tools/call', { name: 'silent', arguments: {} })
    await lose()
    const [there, here] = await Promise.all([taskAt(other.url, taskId), taskAt(home.url, taskId)])
    expect([there.status, textIn(there.result)]).toEqual(['completed', 'replica 0'])
    expect([here.status, textIn(here.result)]).toEqual(['completed', 'replica 0'])
  })

  test('costs no session, and no event that was sent meanwhile', async () => {
    const { home, other, lose, waitForRow } = await startTwo()
    const { headers } = await openSession(home.url)
    const call = (name: string, id: number) => ({
      headers,
      body: { jsonrpc: '2.0', id, method: 'tools/call', params: { name, _meta: { progressToken: 'p' } } },
    })
    const names = [home, other].map(({ store }) => store.members.self)
    const stream = await openStream(home.url, call('slow', 7))
    const progress = await stream.next()
    await lose()
    const result = await stream.next()
    expect(result?.json.result).toBeDefined()
    await waitForRow('event', `last >= ${seqOf(result?.id)}`)
    expect([home, other].map(({ store }) => store.members.self)).toEqual(names)
    await home.relay.stop()
    const at = { ...headers, accept: 'text/event-stream', 'last-event-id': progress?.id ?? '' }
    const resumed = await openStream(other.url, { method: 'GET', headers: at })
    expect((await resumed.all()).at(-1)?.json).toMatchObject({ id: 7, result: { content: [{ text: 'replica 0' }] } })
    expect(textIn((await send(other.url, call('where', 8))).json.result)).toBe('replica 1')
  })

  test('is joined by later replicas, which have the secret of the others', async () => {
    const { place, home, lose, waitForRow } = await startTwo()
    const { headers } = await openSession(home.url)
    await lose()
    await waitForRow('record')
    const { store } = await openState(place, SILENT)
    onTestFinished(() => store.close())
    expect(await store.take('session', headers['mcp-session-id'] ?? '')).toMatchObject({ kind: 'other' })
  })
})
