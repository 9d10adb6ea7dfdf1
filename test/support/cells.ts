import type { WorkspaceRules } from '../../src/config/snapshot.ts'
import type { ClientKind, ClientOptions, TestClient } from './client.ts'
import { connectV1 } from './client-v1.ts'
import { connectV2 } from './client-v2.ts'
import { startTestGateway } from './gateway.ts'
import type { Endpoint } from './servers/http.ts'
import type { Journal } from './servers/journal.ts'
import { start as startV1 } from './servers/sdk-v1-server.ts'
import { start as startV2 } from './servers/sdk-v2-server.ts'

/** A client of one kind with a server of the same era behind the gateway. */
export interface Cell {
  readonly client: ClientKind
  readonly server: 'demo' | 'sdk-v1' | 'sdk-v2'
}

/** Every client with every server that speaks its era. */
export const CELLS: readonly Cell[] = [
  { client: 'SDK v1', server: 'demo' },
  { client: 'SDK v1', server: 'sdk-v1' },
  { client: 'SDK v2 legacy', server: 'demo' },
  { client: 'SDK v2 legacy', server: 'sdk-v1' },
  { client: 'SDK v2 auto', server: 'demo' },
  { client: 'SDK v2 auto', server: 'sdk-v2' },
  { client: 'SDK v2 modern', server: 'demo' },
  { client: 'SDK v2 modern', server: 'sdk-v2' },
]

/** The cells whose server is a fixture, which keeps a journal of what reached it. */
export const FIXTURE_CELLS = CELLS.filter(({ server }) => server !== 'demo')

/** A cell that is running. */
export interface RunningCell {
  readonly url: string
  /** What reached the server; only fixtures keep one. */
  readonly journal: Journal
  connect(options?: Partial<ClientOptions>): Promise<TestClient>
  close(): Promise<void>
}

/** Starts a cell's server and the gateway in front of it. */
export const startCell = async (
  { client, server }: Cell,
  rules: Partial<WorkspaceRules> = {},
): Promise<RunningCell> => {
  const fixture = server === 'demo' ? undefined : await FIXTURES[server]()
  const gateway = await startTestGateway(fixture?.url, undefined, undefined, rules)
  const clients: TestClient[] = []
  return {
    url: gateway.url,
    get journal() {
      if (fixture === undefined) throw new Error('The demo server keeps no journal')
      return fixture.journal
    },
    connect: async options => {
      const all = { url: gateway.url, ...options }
      const connected = await (client === 'SDK v1' ? connectV1(all) : connectV2(client, all))
      clients.push(connected)
      return connected
    },
    close: async () => {
      await Promise.all(clients.map(connected => connected.close().catch(() => undefined)))
      await gateway.close()
      await fixture?.close()
    },
  }
}

const FIXTURES: Record<'sdk-v1' | 'sdk-v2', () => Promise<Endpoint & { journal: Journal }>> = {
  'sdk-v1': startV1,
  'sdk-v2': startV2,
}
