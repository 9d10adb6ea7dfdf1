import { afterEach, expect, test, vi } from 'vitest'
import { type Front, startFront } from '../../../test/support/front.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
afterEach(() => {
  vi.restoreAllMocks()
  return front.close()
})

test('an internal error while a body is parsed is logged and answered with 500', async () => {
  const error = vi.fn()
  front = await startFront({}, { log: { ...SILENT, error } })
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  vi.spyOn(Json, 'parse').mockImplementation(() => {
    throw new RangeError('out of range')
  })
  const response = await fetch(front.url, { method: 'POST', headers, body: '{}' })
  expect(response.status).toBe(500)
  expect(await response.json()).toMatchObject({ error: { code: -32603 } })
  expect(error).toHaveBeenCalledWith({ err: expect.any(RangeError) }, 'request failed with an internal error')
})
