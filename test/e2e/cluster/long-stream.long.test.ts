import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openState } from '../../../src/stores/state/open-state.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { Json } from '../../../src/wire/json/json.ts'
import { rpcRequest, type Script, startFront } from '../../support/front.ts'
import { openSession, openStream } from '../../support/raw.ts'

const EVENTS = 100_000

test('a client that resumes after a restart gets 100,000 events in order, and then the result', async () => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-long-stream-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  let sent = (): void => {}
  const isSent = new Promise<void>(resolve => {
    sent = resolve
  })
  const talk: Script = {
    'tools/call': async ({ sink }) => {
      for (let at = 0; at < EVENTS; at++)
        await sink({ kind: 'notice', method: 'notifications/message', params: Json.of({ level: 'info', data: at }) })
      await sink({ kind: 'result', result: Json.of({ content: [] }) })
      sent()
    },
  }
  const start = async () => {
    const state = await openState({ kind: 'sqlite', data }, SILENT)
    return startFront(talk, { state: { store: state.store, keys: state.keys } })
  }
  const first = await start()
  const { headers } = await openSession(first.url)
  const stream = await openStream(first.url, { headers, body: rpcRequest(7, 'tools/call', { name: 'talk' }) })
  const seen = await stream.next()
  stream.close()
  await isSent
  await first.close() // with its store

  const second = await start()
  onTestFinished(second.close)
  const at = { ...headers, accept: 'text/event-stream', 'last-event-id': seen?.id ?? '' }
  const resumed = await openStream(second.url, { method: 'GET', headers: at })
  let next = seen?.data === '' ? 0 : 1 // the first event may only open the stream
  for (;;) {
    const event = await resumed.next()
    if (!event || event.json?.id === 7) {
      expect(event?.json).toMatchObject({ id: 7, result: { content: [] } })
      break
    }
    if ((event.json.params as { data: number }).data !== next++) throw new Error(`${next - 1} expected: ${event.data}`)
  }
  expect(next).toBe(EVENTS)
})
