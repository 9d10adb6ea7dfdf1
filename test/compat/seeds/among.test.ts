import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sessionClient } from '../../matrix/session-client.ts'
import { openRawChannel } from '../../support/channel.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { send } from '../../support/raw.ts'
import type { Endpoint } from '../../support/servers/http.ts'
import { startIssues } from './issues-server.ts'
import { type Served, serve } from './served.ts'

/** Clients of all five seeds, each with the names its own server has, before one workspace that holds all the servers. */

let root: string
let github: Endpoint
let served: Served
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'dragoman-seeds-'))
  await mkdir(join(root, 'project'))
  await writeFile(join(root, 'project/main.py'), 'print("hello")\n')
  github = await startIssues()
  served = await serve(
    {
      mcpServers: {
        memory: { builtin: 'memory' },
        demo: { builtin: 'demo' },
        serena: { builtin: 'files', root: join(root, 'project') },
        github: { url: github.url },
      },
      workspaces: { default: { servers: '*', names: 'plain' } },
    },
    { data: join(root, 'data') },
  )
  await served.ready // the thread of the memory compiles TypeScript first
}, 60_000)
afterAll(async () => {
  await served.close()
  await github.close()
  await rm(root, { recursive: true, force: true })
})

const call = (name: string, given: object = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name, arguments: given },
})

it('000: a client of the memory calls add_memory and get_status', async () => {
  const client = await sessionClient(`${served.origin}/mcp`, '2024-11-05', {})
  const added = await client.call('tools/call', {
    name: 'add_memory',
    arguments: { name: 'a', episode_body: 'Ada likes tea' },
  })
  expect(added.result).toMatchObject({ content: [{ type: 'text' }] })
  expect(added.result?.isError ?? false).toBe(false)
  const status = await client.call('tools/call', { name: 'get_status', arguments: {} })
  const [said] = (status.result?.content ?? []) as { text: string }[]
  expect(JSON.parse(String(said?.text))).toMatchObject({ status: 'ok' })
  await client.close()
})

it('001: a client of the guide lists, and calls what it was shown', async () => {
  const client = await connectV1({ url: `${served.origin}/mcp` })
  const names = await client.toolNames()
  expect(names).toEqual(expect.arrayContaining(['add_memory', 'example-echo', 'list_dir', 'list_issues']))
  expect((await client.call('example-echo', { message: 'Hello' })).content).toEqual([
    { type: 'text', text: 'Echo: Hello' },
  ])
  await client.close()
})

it('002: a query client asks over HTTP+SSE for list_dir', async () => {
  const client = await connectV1({ url: `${served.origin}/sse`, sse: true })
  const { content } = await client.call('list_dir', { relative_path: '.', recursive: false })
  expect(JSON.parse(String(content[0]?.text))).toEqual({ dirs: [], files: ['main.py'] })
  await client.close()
})

it('003: curl calls example-ping without a session', async () => {
  const { json } = await send(`${served.origin}/message`, { headers: { accept: '*/*' }, body: call('example-ping') })
  expect([json.id, json.result?.content]).toEqual([7, [{ type: 'text', text: 'pong' }]])
})

it.each(['github/list_issues', 'list_issues'])('004: a client without a handshake calls %s', async name => {
  const url = `${served.origin}/mcp/default`
  const channel = await openRawChannel(url)
  await send(url, { headers: { accept: '*/*' }, body: call(name, { repo: 'user/repo' }) })
  const { data } = await channel.nextOf('response')
  expect(JSON.parse(data).result.content).toEqual([{ type: 'text', text: 'Issue list: user/repo' }])
  channel.close()
})
