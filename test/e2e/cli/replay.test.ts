import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectV2 } from '../../support/client-v2.ts'
import { type Configured, startConfigured } from '../endpoints/configured.ts'
import { runCommand } from './in-process.ts'
import { startProgram } from './program.ts'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
const BOOKING = fileURLToPath(new URL('../../support/servers/booking.mjs', import.meta.url))
const NIGHTS = { action: 'accept', content: { nights: 3 } } as const

let site: Configured
let file = ''

/** Records a call of a modern client to a legacy server that reports progress and asks, and exports it. */
beforeAll(async () => {
  site = await startConfigured({ mcpServers: { booking: { command: process.execPath, args: [BOOKING] } } }, 'data')
  await site.gateway.ready
  const client = await connectV2('SDK v2 modern', { url: `${site.origin}/mcp/booking`, answer: () => ({ ...NIGHTS }) })
  const args = { city: 'Bern', password: 'hunter2hunter2' }
  const { content } = await client.call('book', args, { onProgress: () => {} })
  expect(content[0]).toMatchObject({ text: '3 nights in Bern' })
  expect((await client.call('book', { city: 'Rome', fails: true })).isError).toBe(true)
  await client.close()
  const exported = await fetch(`${site.origin}/admin/recordings/export`, {
    headers: { authorization: `Bearer ${site.gateway.localSecret}` },
  })
  expect(exported.headers.get('content-type')).toBe('application/x-ndjson')
  expect(exported.headers.get('content-disposition')).toBe('attachment; filename="recordings.jsonl"')
  const text = await exported.text()
  expect(JSON.parse(text.slice(0, text.indexOf('\n')))).toMatchObject({ format: 'dragoman-recording', version: 1 })
  expect(text).not.toContain('hunter2')
  file = join(site.folder, 'recordings.jsonl')
  await writeFile(file, text)
})
afterAll(() => site.close())

describe('as a client', () => {
  test('sends the requests again, answers questions as they were answered, and compares the results', async () => {
    const { code, stdout } = await runCommand(['replay', `${site.origin}/mcp/booking`, file])
    expect(stdout).toMatch(/^same +tools\/call book .*ms, recorded \d+ ms\nsame +tools\/call book/)
    expect(stdout).toMatch(/2 the same, 0 different, \d+ skipped\n$/)
    expect(code).toBe(0)
  })

  test('sends them to a command, too, and prints JSON', async () => {
    const { code, stdout } = await runCommand(['replay', file, '--json', '--', process.execPath, BOOKING])
    expect(JSON.parse(stdout)).toMatchObject({ same: 2, different: 0 })
    expect(code).toBe(0)
  })

  test('says where an answer differs, and exits with 1', async () => {
    const other = join(site.folder, 'other.jsonl')
    const text = (await import('node:fs')).readFileSync(file, 'utf8')
    await writeFile(other, text.replaceAll('3 nights in Bern', '4 nights in Bern'))
    const { code, stdout } = await runCommand(['replay', other, '--', process.execPath, BOOKING])
    expect(stdout).toContain('content[0].text: expected "4 nights in Bern", found "3 nights in Bern"')
    expect([code, stdout.match(/\d+ the same, \d+ different/)?.[0]]).toEqual([1, '1 the same, 1 different'])
  })

  test.each([
    ['is missing', undefined, 'there is no such file'],
    ['is not JSON', 'hello\n', 'line 1 is not JSON'],
    ['is another file', '{"mcpServers":{}}\n', 'its first line has no "format": "dragoman-recording"'],
    ['is of a later version', '{"format":"dragoman-recording","version":2}\n', 'this program reads 1'],
    ['is empty', '{"format":"dragoman-recording","version":1}\n', 'has no recordings'],
    ['is damaged', '{"format":"dragoman-recording","version":1}\n{"id":1}\n', 'line 2 is not a recording'],
  ])('refuses a file that %s', async (_name, text, why) => {
    const bad = join(site.folder, `bad-${why.length}.jsonl`)
    if (text !== undefined) await writeFile(bad, text)
    const { code, stderr } = await runCommand(['replay', bad, '--', process.execPath, BOOKING])
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)])
  })
})

describe('as a server', () => {
  test('answers an SDK client over stdio as the recorded server did: progress, the question, the result', async () => {
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
    const asked: string[] = []
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params.message)
      return { action: 'accept', content: { nights: 9 } }
    })
    const args = [MAIN, 'replay', file, '--as', 'server']
    const transport = new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' })
    await client.connect(transport)
    expect(client.getServerVersion()?.name).toBe('replay of booking')
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['book'])
    const progress: unknown[] = []
    // Read from the wire: the client forgets progress that is read together with the result.
    const { onmessage } = transport
    transport.onmessage = message => {
      if ('method' in message && message.method === 'notifications/progress') progress.push(message.params?.progress)
      onmessage?.(message)
    }
    const call = { name: 'book', arguments: { city: 'Bern', password: 'another one' } }
    const result = await client.callTool(call, undefined, { onprogress: () => {} })
    expect(result.content).toEqual([{ type: 'text', text: '3 nights in Bern' }])
    expect([asked, progress]).toEqual([['How many nights in Bern?'], [1, 2]])
    const failed = await client.callTool({ name: 'book', arguments: { city: 'Rome', fails: true } })
    expect(failed).toMatchObject({ isError: true, content: [{ text: 'No rooms in Rome' }] })
    await expect(client.callTool({ name: 'book', arguments: { city: 'Oslo' } })).rejects.toThrow(
      'The recording has no answer to tools/call with these params',
    )
    await client.close()
  })

  test('answers a modern SDK client over HTTP', async () => {
    const program = startProgram(['replay', file, '--as', 'server', '--port', '0'])
    const [, url = ''] = await program.saw(/plays booking \(2025-11-25\) at (http\S+)/)
    const client = await connectV2('SDK v2 modern', { url, answer: () => ({ ...NIGHTS }) })
    const result = await client.call('book', { city: 'Bern', password: 'x' }, { onProgress: () => {} })
    expect(result.content[0]).toMatchObject({ text: '3 nights in Bern' })
    expect(client.asked).toMatchObject([{ method: 'elicitation/create' }])
    await client.close()
    program.signal('SIGTERM')
    expect(await program.ended).toBe(0)
  })

  test('says which servers there are', async () => {
    const { code, stderr } = await runCommand(['replay', file, '--as', 'server', '--server', 'other'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('recorded are booking')])
  })
})
