import { expect, test } from 'vitest'
import { createTestLog } from '../../test/support/log.ts'
import { Abort } from '../protocol/cancellation.ts'
import { logRequests } from './request-log.ts'

test('a request whose signal is already aborted is logged as cancelled, and is dispatched', () => {
  const { log, lines } = createTestLog()
  const signal = new Abort()
  signal.abort({ kind: 'gone' })
  let dispatched = 0
  const dispatch = logRequests(log, 'session', () => dispatched++)
  dispatch({ kind: 'request', method: 'tools/call', caller: { workspace: 'default' }, signal, sink: () => {} })
  expect(dispatched).toBe(1)
  expect(lines).toMatchObject([{ message: 'request ended', fields: { outcome: 'cancelled' } }])
})
