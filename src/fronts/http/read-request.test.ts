import { afterEach, expect, test, vi } from 'vitest'
import { type Front, startFront } from '../../../test/support/front.ts'
import { SILENT } from '../../telemetry/log.ts'

vi.mock('../../wire/json-rpc.ts', async original => ({
  ...(await original<typeof import('../../wire/json-rpc.ts')>()),
  readIncoming: () => {
    throw new RangeError('out of range')
  },
}))

let front: Front
afterEach(() => front.close())

test('an internal error while a body is parsed is logged and answered with 500', async () => {
  const error = vi.fn()
  front = await startFront({}, { log: { ...SILENT, error } })
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const response = await fetch(front.url, { method: 'POST', headers, body: '{}' })
  expect(response.status).toBe(500)
  expect(await response.json()).toMatchObject({ error: { code: -32603 } })
  expect(error).toHaveBeenCalledWith({ err: expect.any(RangeError) }, 'request failed with an internal error')
})
