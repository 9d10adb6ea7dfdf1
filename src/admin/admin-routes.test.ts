import { once } from 'node:events'
import { createServer, request as openRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { createTestLog } from '../../test/support/log.ts'
import { createAdminRoutes } from './admin-routes.ts'
import type { AdminCaller } from './callers.ts'

let server: Server | undefined
afterEach(() => server?.close())

test('a client that leaves while its caller is looked up is not served', async () => {
  const caller: AdminCaller = { role: 'owner', principal: 'ann', onEnded: vi.fn(() => () => {}) }
  const [run, limitRate] = [vi.fn(), vi.fn()]
  let admit = (_caller: AdminCaller): void => {}
  const findCaller = vi.fn(() => new Promise<AdminCaller>(resolve => (admit = resolve)))
  const routes = createAdminRoutes({
    endpoints: [{ method: 'GET', path: '/admin/events', access: 'viewer', summary: 'Events', run }],
    findCaller,
    limitRate,
    checkBody: () => undefined,
    log: createTestLog().log,
  })
  const closed = vi.fn()
  server = createServer((request, response) => {
    response.on('close', closed)
    routes['/admin/events']?.(request, response, '/admin/events')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const leaving = openRequest({ port, host: '127.0.0.1', path: '/admin/events' }).end()
  leaving.on('error', () => {})
  await vi.waitFor(() => expect(findCaller).toHaveBeenCalled())
  leaving.destroy()
  await vi.waitFor(() => expect(closed).toHaveBeenCalled())
  admit(caller)
  const staying = openRequest({ port, host: '127.0.0.1', path: '/admin/events' }).end()
  await vi.waitFor(() => expect(findCaller).toHaveBeenCalledTimes(2))
  admit(caller)
  await once(staying, 'response')
  expect(run).toHaveBeenCalledTimes(1)
  expect(caller.onEnded).toHaveBeenCalledTimes(1)
})
