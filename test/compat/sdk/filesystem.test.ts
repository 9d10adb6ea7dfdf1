import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ServerConfig } from '../../../src/config/snapshot.ts'
import { type ClientKind, type ClientOptions, type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { nodeServer, startGatewayBefore } from '../../support/gateway.ts'

const FILESYSTEM = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'))
const CLIENTS: readonly ClientKind[] = ['SDK v1', 'SDK v2 legacy', 'SDK v2 auto', 'SDK v2 modern']
const WORKSPACES = [['filesystem'], ['filesystem', 'demo']]
const TIMEOUT = 60_000

let folder: string
let file: string
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'roots-')))
  file = join(folder, 'note.txt')
  await writeFile(file, 'in the root')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close().catch(() => undefined)
})

/** A gateway before a filesystem server that gets its folders from the client's roots alone. */
const start = async (servers: readonly string[]) => {
  const configs: Record<string, ServerConfig> = {
    filesystem: nodeServer('filesystem', [FILESYSTEM], { MARK: folder }), // what was learnt of a program is kept
    demo: { name: 'demo', disabled: false, kind: 'builtin', builtin: 'demo' },
  }
  const gateway = await startGatewayBefore(servers.map(name => configs[name] as ServerConfig))
  closing.push(gateway.close)
  return gateway.url
}

const connect = async (kind: ClientKind, options: ClientOptions): Promise<TestClient> => {
  const all = {
    ...options,
    capabilities: { roots: { listChanged: true } },
    answer: () => ({ roots: [{ uri: pathToFileURL(folder).href, name: 'work' }] }),
  }
  const client = await (kind === 'SDK v1' ? connectV1(all) : connectV2(kind, all))
  closing.push(client.close)
  return client
}

/** Reads the file. The server applies the roots it was given some time after it got them, and no message says when. */
const expectFile = (client: TestClient, tool: string, session: number) =>
  expect
    .poll(async () => [session, textOf(await client.call(tool, { path: file }))], { timeout: TIMEOUT / 4 })
    .toEqual([session, 'in the root'])

describe.each(WORKSPACES.map(servers => ({ servers })))(
  'a filesystem server in a workspace of $servers',
  ({ servers }) => {
    const named = (tool: string) => (servers.length === 1 ? tool : `filesystem__${tool}`)

    it.each(CLIENTS)('has the roots of %s in its first session and in the next', { timeout: TIMEOUT }, async kind => {
      const url = await start(servers)
      for (let session = 1; session <= 2; session++) {
        const client = await connect(kind, { url })
        expect(await client.toolNames()).toContain(named('read_text_file'))
        await expectFile(client, named('read_text_file'), session)
        await client.close()
      }
    })

    it('has the roots of SDK v1 over HTTP+SSE in the second session as in the first', {
      timeout: TIMEOUT,
    }, async () => {
      const url = (await start(servers)).replace('/mcp', '/sse')
      for (let session = 1; session <= 2; session++) {
        const client = await connect('SDK v1', { url, sse: true })
        await expectFile(client, named('read_text_file'), session)
        await client.close()
      }
    })
  },
)
