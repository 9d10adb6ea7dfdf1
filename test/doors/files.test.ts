import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { modern, openSession, openStream, send } from '../support/raw.ts'
import { type Configured, startConfigured } from './configured.ts'

let gateway: Configured
beforeAll(async () => {
  gateway = await startConfigured({ mcpServers: { project: { builtin: 'files', root: '.' } } })
  await writeFile(join(gateway.folder, 'note.txt'), 'one')
})
afterAll(() => gateway.close())

test('the files are those beside the configuration', async () => {
  const url = gateway.gateway.url('project')
  const reply = await send(url, modern(1, 'tools/call', { name: 'list_dir', arguments: { relative_path: '.' } }))
  expect(reply.json.result?.structuredContent).toEqual({ dirs: [], files: ['mcp.json', 'note.txt'] })
  const read = await send(url, modern(2, 'resources/read', { uri: 'file:///note.txt' }))
  expect(read.json.result?.contents).toEqual([{ uri: 'file:///note.txt', mimeType: 'text/plain', text: 'one' }])
})

test.each(['2024-11-05', '2025-11-25'])('a %s session hears of a file it subscribed to', async revision => {
  const url = gateway.gateway.url()
  const { headers } = await openSession(url, revision)
  const stream = await openStream(url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } })
  const subscribe = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: 'file:///note.txt' } }
  const plain = { ...headers, accept: 'application/json' } // a slow answer would be a stream otherwise
  expect((await send(url, { headers: plain, body: subscribe })).json.result).toEqual({})
  await writeFile(join(gateway.folder, 'note.txt'), `two ${revision}`)
  expect((await stream.next())?.json).toMatchObject({
    method: 'notifications/resources/updated',
    params: { uri: 'file:///note.txt' },
  })
  stream.close()
  await send(url, { method: 'DELETE', headers })
})
