import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Recording, RecordingList } from '../../../src/admin/api/recorder.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { type Configured, startConfigured } from '../endpoints/configured.ts'
import { runCommand } from './in-process.ts'

const BOOKING = fileURLToPath(new URL('../../support/servers/booking.mjs', import.meta.url))
const NIGHTS = { action: 'accept', content: { nights: 3 } } as const
const COMMAND = ['--', process.execPath, BOOKING]

let site: Configured
let url = ''
let file = ''

const admin = (path: string) =>
  fetch(`${site.origin}/admin/${path}`, { headers: { authorization: `Bearer ${site.gateway.localSecret}` } })
const list = async (query: string): Promise<RecordingList> =>
  (await admin(`recordings?${query}`)).json() as Promise<RecordingList>
const exported = async (query: string): Promise<string> => (await admin(`recordings/export?${query}`)).text()

const isCallTo = (recording: Recording, city: string): boolean =>
  recording.all.some(({ kind, text }) => kind === 'request' && text.includes(`"${city}"`))

/** Writes an export with some recordings changed; without the call that ends the server, unless it shall `exit`. */
const changedFile = async (
  name: string,
  change: (recording: Recording) => Recording,
  { exits = false } = {},
): Promise<string> => {
  const [header, ...lines] = (await readFile(file, 'utf8')).trimEnd().split('\n')
  const kept = lines.map(line => JSON.parse(line) as Recording).filter(each => exits || !isCallTo(each, 'Bern'))
  const changed = kept.map(each => JSON.stringify(change(each)))
  const place = join(site.folder, name)
  await writeFile(place, `${[header, ...changed].join('\n')}\n`)
  return place
}

/** One call after the other: the server exits, rejects, asks without an answer, asks with an answer, asks a client that goes away. */
beforeAll(async () => {
  site = await startConfigured({ mcpServers: { booking: { command: process.execPath, args: [BOOKING] } } }, 'data')
  await site.gateway.ready
  url = `${site.origin}/mcp/booking`
  const client = await connectV2('SDK v2 modern', { url, answer: () => ({ ...NIGHTS }) })
  await expect(client.call('book', { city: 'Bern', exits: true })).rejects.toThrow('exited')
  await expect(client.call('book', { city: 'Atlantis', rejects: true })).rejects.toThrow('There is no city')
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  }
  const unanswered = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'book',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'book', arguments: { city: 'Oslo' }, _meta: meta },
    }),
  })
  expect(await unanswered.text()).toContain('input_required')
  expect((await client.call('book', { city: 'Rome' })).content[0]).toMatchObject({ text: '3 nights in Rome' })
  await client.close()
  file = join(site.folder, 'recordings.jsonl')
  await writeFile(file, await exported('method=tools/call'))
})
afterAll(() => site.close())

describe.each([
  ['a gateway', () => [url, file]],
  ['a command', () => [file, ...COMMAND]],
])('to %s', (_name, target) => {
  test('an error that happens again and a question without an answer are the same, and later calls are played', async () => {
    const { code, stdout, stderr } = await runCommand(['replay', ...target()])
    expect(stderr).toBe('')
    expect(stdout).toMatch(/^(same +tools\/call book .*\n){4}4 the same, 0 different, 0 skipped\n$/)
    expect(code).toBe(0)
  })
})

describe('differences', () => {
  const errorText = (reason: string, code = -32603) =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message: 'It failed', data: { reason } } })
  const withEnd = (recording: Recording, text: string, kind: 'error' | 'result' = 'error'): Recording => ({
    ...recording,
    all: recording.all.map(each =>
      each.side === 'client' && each.direction === 'out' && (each.kind === 'error' || each.kind === 'result')
        ? { ...each, kind, text }
        : each,
    ),
  })
  test('another error is different, and does not end the replay', async () => {
    const change = (each: Recording): Recording =>
      isCallTo(each, 'Bern') ? withEnd(each, errorText('upstream_timeout')) : each
    const other = await changedFile('other-error.jsonl', change, { exits: true })
    const { code, stdout } = await runCommand(['replay', url, other])
    expect(stdout).toContain('error.data.reason: expected upstream_timeout, found upstream_lost')
    expect(stdout).toContain('3 the same, 1 different, 0 skipped')
    expect(code).toBe(1)
  })

  test('an error is different where a result was recorded, and a result where an error was', async () => {
    const result = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [] } })
    const other = await changedFile('other-end.jsonl', each =>
      isCallTo(each, 'Atlantis')
        ? withEnd(each, result, 'result')
        : isCallTo(each, 'Rome') && each.continues !== undefined
          ? withEnd(each, errorText('upstream_lost'))
          : each,
    )
    const { code, stdout } = await runCommand(['replay', url, other])
    expect(stdout).toContain('(end): expected a result, found There is no city Atlantis')
    expect(stdout).toContain('(end): expected error -32603: It failed, found a result')
    expect([code, stdout.match(/\d+ the same, .*/)?.[0]]).toEqual([1, '1 the same, 2 different, 0 skipped'])
  })

  test('another question, and no question where one was recorded, are different', async () => {
    const other = await changedFile('other-question.jsonl', each =>
      isCallTo(each, 'Oslo')
        ? { ...each, all: each.all.map(message => ({ ...message, text: message.text.replace('How many', 'Which') })) }
        : each,
    )
    const asked = await runCommand(['replay', url, other])
    expect(asked.stdout).toContain(
      '(question): expected elicitation/create "Which nights in Oslo?", found elicitation/create "How many nights in Oslo?"',
    )
    const silent = await changedFile('no-question.jsonl', each =>
      isCallTo(each, 'Oslo')
        ? {
            ...each,
            all: each.all.map(message =>
              message.kind === 'request'
                ? { ...message, text: message.text.replace('"city":"Oslo"', '"city":"Oslo","fails":true') }
                : message,
            ),
          }
        : each,
    )
    const ended = await runCommand(['replay', url, silent])
    expect(ended.stdout).toContain(
      '(end): expected the question elicitation/create "How many nights in Oslo?", found a result',
    )
    expect([asked.code, ended.code]).toEqual([1, 1])
  })

  test('only a gateway that is gone ends the replay', async () => {
    const other = await changedFile('gone.jsonl', each => each)
    let calls = 0
    const server = createServer(async (request, response) => {
      const { id, method } = JSON.parse(await text(request)) as { id: number; method: string }
      const found = { supportedVersions: ['2026-07-28'], capabilities: {}, serverInfo: { name: 'x', version: '1' } }
      const result = { ...found, resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
      const answer = method === 'server/discover' ? { result } : { error: { code: -32050, message: 'It failed' } }
      response.setHeader('content-type', 'application/json').setHeader('connection', 'close')
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
      if (method === 'tools/call' && ++calls === 2) server.close()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const place = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
    const { code, stdout, stderr } = await runCommand(['replay', place, other])
    expect(stdout).toMatch(/^same .*\nDIFFERENT .*\n *\(end\): expected the question .* found It failed .*\n$/)
    expect([code, stderr]).toEqual([4, expect.stringContaining('ECONNREFUSED')])
  })
})

describe('a client with a session', () => {
  test('a call that was cancelled while a question was open ends there; without a question it is left out', async () => {
    let asked = 0
    const before = (await list('limit=1')).recordings[0]?.order ?? 0
    const controller = new AbortController()
    const client = await connectV1({
      url,
      answer: () => {
        asked++
        controller.abort()
        return new Promise(() => {})
      },
    })
    await expect(client.call('book', { city: 'Kyiv' }, { signal: controller.signal })).rejects.toThrow()
    expect(asked).toBe(1)
    await client.close()
    await expect
      .poll(async () => (await list('method=tools/call&limit=1')).recordings[0]?.outcome, { timeout: 5000 })
      .toBe('cancelled')
    const rows = (await list('method=tools/call&limit=1')).recordings.filter(({ order }) => order > before)
    const [row] = rows
    const place = join(site.folder, 'cancelled.jsonl')
    await writeFile(place, await exported(`id=${row?.id}`))
    const { code, stdout } = await runCommand(['replay', url, place])
    expect(stdout).toMatch(/^same +tools\/call book/)
    expect(code).toBe(0)

    const lines = (await readFile(place, 'utf8')).split('\n')
    const recording = JSON.parse(lines[1] ?? '') as Recording
    const quiet = { ...recording, all: recording.all.filter(({ kind }) => kind === 'request') }
    await writeFile(place, `${lines[0]}\n${JSON.stringify(quiet)}\n`)
    const left = await runCommand(['replay', url, place])
    expect(left.stdout).toContain('skipped    tools/call book: its client cancelled it')
  })
})

describe('an export', () => {
  test('of one exchange holds its whole conversation, from either end', async () => {
    const { recordings } = await list('method=tools/call&limit=500')
    const answering = recordings.find(({ continues }) => continues !== undefined)
    expect(answering).toBeDefined()
    for (const id of [answering?.id, answering?.continues]) {
      const lines = await exported(`id=${id}`)
      const rows = lines.trimEnd().split('\n').slice(1)
      expect(rows.map(line => (JSON.parse(line) as Recording).id)).toEqual([answering?.continues, answering?.id])
      const place = join(site.folder, 'one.jsonl')
      await writeFile(place, lines)
      const { code, stdout } = await runCommand(['replay', url, place])
      expect([code, stdout.match(/\d+ the same, .*/)?.[0]]).toEqual([0, '1 the same, 0 different, 0 skipped'])
    }
  })

  test('of filtered exchanges does, too, each exchange once', async () => {
    for (const query of ['outcome=ok&method=tools/call', 'method=tools/call']) {
      const rows = (await exported(query)).trimEnd().split('\n').slice(1)
      const found = rows.map(line => JSON.parse(line) as Recording)
      expect(found.some(({ outcome }) => outcome === 'input_required')).toBe(true)
      expect(new Set(found.map(({ id }) => id)).size).toBe(found.length)
      expect(found.map(({ order }) => order)).toEqual(found.map(({ order }) => order).sort((a, b) => a - b))
    }
  })
})
