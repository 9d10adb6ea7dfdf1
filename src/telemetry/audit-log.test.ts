import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createTestLog } from '../../test/support/log.ts'
import { AuditLog, type AuditTarget, stdoutTarget } from './audit-log.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

/** A target that can be full, and that keeps what it could not write, as a file does. */
const createTarget = () => {
  const state = { text: '', isFull: false, writes: 0, isClosed: false }
  let rest = ''
  const target: AuditTarget = {
    write: async lines => {
      rest += lines.toString()
      state.writes++
      if (state.isFull) throw new Error('ENOSPC: no space left on device')
      state.text += rest
      rest = ''
    },
    close: async () => {
      state.isClosed = true
    },
  }
  return { target, state }
}

const start = () => {
  const { target, state } = createTarget()
  const { log, lines } = createTestLog()
  return { audit: new AuditLog(target, log), state, lines, messages: () => lines.map(({ message }) => message) }
}

test('events are written together, soon', async () => {
  const { audit, state } = start()
  audit.event('started', { version: '1', none: undefined })
  audit.add('{"event":"request"}\n')
  expect(state.writes).toBe(0)
  await vi.advanceTimersByTimeAsync(250)
  expect(state.writes).toBe(1)
  expect(state.text.split('\n').map(line => line && JSON.parse(line))).toMatchObject([
    { event: 'started', version: '1' },
    { event: 'request' },
    '',
  ])
  expect(audit.counts).toEqual({ written: 2, dropped: 0, failures: 0 })
})

test('many events are written at once, without the wait', async () => {
  const { audit, state } = start()
  for (let i = 0; i < 300; i++) audit.add(`${'x'.repeat(1000)}\n`)
  await vi.advanceTimersByTimeAsync(0)
  expect(state.writes).toBeGreaterThan(0)
  await audit.close()
  expect(state.text.length).toBe(300 * 1001)
})

test('closing writes everything, and adding later is counted as lost', async () => {
  const { audit, state } = start()
  for (let i = 0; i < 10; i++) audit.add(`${i}\n`)
  await audit.close()
  expect(state.text).toBe('0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n')
  expect(state.isClosed).toBe(true)
  audit.add('late\n')
  expect(audit.counts).toMatchObject({ written: 10, dropped: 1 })
})

test('a full disk is one line of the log; what waited is written when there is space again', async () => {
  const { audit, state, messages } = start()
  state.isFull = true
  audit.add('one\n')
  await vi.advanceTimersByTimeAsync(60_000)
  audit.add('two\n')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(messages()).toEqual(['audit log not written; calls go on, and writing is tried again'])
  expect(audit.counts.failures).toBeGreaterThan(2)
  state.isFull = false
  await vi.advanceTimersByTimeAsync(60_000)
  expect(state.text).toBe('one\ntwo\n')
  expect(messages().at(-1)).toBe('audit log is written again')
  expect(audit.counts).toMatchObject({ written: 2, dropped: 0 })
})

test('memory is bounded while the disk is full, and the log says how many events are missing', async () => {
  const { audit, state, lines } = start()
  state.isFull = true
  const line = `${'x'.repeat(64 * 1024 - 1)}\n`
  for (let i = 0; i < 400; i++) {
    audit.add(line)
    if (i === 5) await vi.advanceTimersByTimeAsync(1) // the first batch fails
  }
  await vi.advanceTimersByTimeAsync(60_000)
  const { dropped } = audit.counts
  expect(dropped).toBeGreaterThan(100)
  expect(lines.length).toBe(1)
  state.isFull = false
  await vi.advanceTimersByTimeAsync(120_000)
  const written = state.text.split('\n').filter(text => text !== '')
  expect(JSON.parse(written.at(-1) ?? '')).toMatchObject({ event: 'gap', dropped })
  expect(written.length).toBe(400 - dropped + 1)
  await audit.close()
})

test('what cannot be written before the end is logged with its number', async () => {
  const { audit, state, lines } = start()
  state.isFull = true
  audit.add('one\n')
  await vi.advanceTimersByTimeAsync(300)
  audit.add('two\n')
  await audit.close()
  expect(lines.at(-1)).toMatchObject({ level: 'error', fields: { events: 2 } })
})

test('stdout gets lines, and keeps those that it did not take', async () => {
  const taken: string[] = []
  let isBroken = true
  const stdout = {
    write: (text: Buffer, done: (error?: Error) => void) => {
      if (!isBroken) taken.push(text.toString())
      done(isBroken ? new Error('EPIPE') : undefined)
      return true
    },
  } as unknown as NodeJS.WritableStream
  const target = stdoutTarget(stdout)
  await expect(target.write(Buffer.from('one\n'))).rejects.toThrow('EPIPE')
  isBroken = false
  await target.write(Buffer.from('two\n'))
  await target.write(Buffer.alloc(0))
  expect(taken).toEqual(['one\ntwo\n'])
})
