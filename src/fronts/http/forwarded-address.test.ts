import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { clientAddressOf } from '../../protocol/admission.ts'
import { createClientAddressNoter } from './forwarded-address.ts'

const requestFrom = (remoteAddress: string, forwarded?: string): IncomingMessage =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage

const PROXIES = ['127.0.0.1', '10.1.0.0/16', '2001:db8:1::/48']

test.each([
  ['a proxy', '127.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['a proxy whose address is written as IPv6', '::ffff:127.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['a proxy of a listed network', '10.1.2.3', '203.0.113.7', '203.0.113.7'],
  ['a proxy with IPv6', '2001:db8:1:2::3', '2001:db8:9::1', '2001:db8:9::1'],
  ['two proxies, one behind the other', '127.0.0.1', '203.0.113.7, 10.1.0.1', '203.0.113.7'],
  ['a client that names another one', '127.0.0.1', '192.0.2.1, 203.0.113.7', '203.0.113.7'],
  ['a client that names a proxy', '127.0.0.1', '10.1.0.9, 203.0.113.7, 10.1.0.1', '203.0.113.7'],
  ['a client with the address of a proxy', '127.0.0.1', '10.1.0.9', '10.1.0.9'],
  ['a proxy that adds the port', '127.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
  ['a proxy that adds the port, with IPv6', '127.0.0.1', '[2001:db8:9::1]:4711', '2001:db8:9::1'],
  ['a proxy that names no address', '127.0.0.1', 'unknown', '127.0.0.1'],
  ['a proxy before one that names no address', '127.0.0.1', 'unknown, 10.1.0.1', '10.1.0.1'],
  ['a proxy that says nothing', '127.0.0.1', undefined, '127.0.0.1'],
  ['a client that is no proxy', '203.0.113.9', '192.0.2.1', '203.0.113.9'],
])('the client behind %s', (_, peer, forwarded, client) => {
  const request = requestFrom(peer, forwarded)
  createClientAddressNoter({ trustedProxies: PROXIES }, createTestLog().log)(request)
  expect(clientAddressOf(request)).toBe(client)
})

test('a private address that forwards requests, and is not listed, is logged once', () => {
  const { log, lines } = createTestLog()
  const note = createClientAddressNoter({ trustedProxies: [], publicUrl: 'https://mcp.example' }, log)
  note(requestFrom('203.0.113.9', '192.0.2.1')) // any client can send the header
  note(requestFrom('172.17.0.1'))
  expect(lines).toEqual([])
  for (let count = 0; count < 3; count++) note(requestFrom('172.17.0.1', '192.0.2.1'))
  expect(lines).toMatchObject([{ level: 'warn', fields: { address: '172.17.0.1' } }])
  createClientAddressNoter({ trustedProxies: [] }, log)(requestFrom('172.17.0.1', '192.0.2.1'))
  expect(lines).toHaveLength(1)
})
