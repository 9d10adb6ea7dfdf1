import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
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
  expect(reply.json.result?.structuredContent).toEqual({ dirs: [], files: ['note.txt'] })
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

test('neither the data directory, the configuration file nor its secret files are given out', async () => {
  const configured = await startConfigured(
    {
      mcpServers: {
        project: { builtin: 'files', root: '.', showHidden: true },
        remote: { url: 'http://127.0.0.1:9/mcp', headers: { 'x-key': '${file:key.txt}' }, disabled: true },
      },
    },
    'state',
  )
  const { folder, gateway: started } = configured
  const url = started.url('project')
  await mkdir(join(folder, 'state'), { recursive: true })
  for (const path of ['state/daemon.json', 'key.txt', 'note.txt', 'mcp.json.bak'])
    await writeFile(join(folder, path), 'needle')
  for (const path of ['state/daemon.json', 'mcp.json', 'mcp.json.bak', 'key.txt']) {
    const call = { name: 'read_file', arguments: { relative_path: path } }
    expect((await send(url, modern(1, 'tools/call', call))).json.result).toMatchObject({ isError: true })
    const read = await send(url, modern(2, 'resources/read', { uri: `file:///${path}` }))
    expect(read.json.error).toMatchObject({ code: -32602 })
  }
  const call = { name: 'list_dir', arguments: { relative_path: '.', recursive: true } }
  const { json } = await send(url, modern(3, 'tools/call', call))
  expect(json.result?.structuredContent).toEqual({ dirs: [], files: ['note.txt'] })
  await configured.close()
})
