import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FIXTURE_CELLS, type RunningCell, startCell } from '../../support/cells.ts'
import { textOf } from '../../support/client.ts'

describe.each(FIXTURE_CELLS)('$client with $server', cell => {
  let running: RunningCell
  beforeAll(async () => {
    running = await startCell(cell)
  })
  afterAll(() => running.close())

  it('cancels a call, and the server sees it', async () => {
    const client = await running.connect()
    const giveUp = new AbortController()
    const call = client.call('wait', {}, { signal: giveUp.signal, onProgress: () => giveUp.abort('no longer needed') })
    await expect(call).rejects.toThrow('no longer needed')
    expect(await running.journal.seen({ kind: 'cancelled', name: 'wait' })).toBeDefined()
  })

  it('goes on with other calls after one was cancelled', async () => {
    const client = await running.connect()
    const giveUp = new AbortController()
    const kept = client.call('wait', { ms: 300 })
    const dropped = client.call('wait', {}, { signal: giveUp.signal, onProgress: () => giveUp.abort() })
    await expect(dropped).rejects.toThrow()
    expect(textOf(await kept)).toBe('Waited')
    expect(textOf(await client.call('test_simple_text'))).toContain('simple text')
  })
})

describe.each(FIXTURE_CELLS)('$client with $server', cell => {
  let running: RunningCell
  beforeAll(async () => {
    running = await startCell(cell)
  })
  afterAll(() => running.close())

  it('leaves nothing running on the server when it goes away in the middle of a call', async () => {
    const client = await running.connect()
    const call = client.call('wait').catch(() => 'gone')
    await running.journal.seen({ kind: 'called', name: 'wait' })
    await client.close()
    expect(await call).toBe('gone')
    expect(await running.journal.seen({ kind: 'cancelled', name: 'wait' })).toBeDefined()
  })
})
