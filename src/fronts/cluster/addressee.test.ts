import type { NetworkInterfaceInfo } from 'node:os'
import { expect, test } from 'vitest'
import { addresseeOf } from './addressee.ts'
import { clusterAddress, clusterListen, firstAddress } from './cluster-address.ts'
import { requestHeaders, responseHeaders } from './forward-headers.ts'

test.each([
  ['/mcp', { 'mcp-session-id': 'a' }, 'a'],
  ['/mcp/work?x=1', { 'mcp-session-id': 'a' }, 'a'],
  ['/mcp?session_id=b', {}, undefined],
  ['/messages/?session_id=b', { 'mcp-session-id': 'a' }, 'b'],
  ['/messages?sessionId=b', {}, 'b'],
  ['/message?session_id=b&workspace=w', {}, 'b'],
  ['/messages/', { 'mcp-session-id': 'a' }, undefined],
  ['/messages/mcp', { 'mcp-session-id': 'a' }, 'a'], // the workspace "messages"
  ['/mcp', {}, undefined],
])('the addressee of %s %j is %s', (url, headers, id) => {
  expect(addresseeOf({ url, headers })).toBe(id)
})

const raw = (headers: Record<string, string>) =>
  ({
    rawHeaders: Object.entries(headers).flat(),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  }) as unknown as Parameters<typeof requestHeaders>[0]

test('a forwarded request has its own headers, without those of the connection and of the credentials', () => {
  const sent = requestHeaders(
    raw({
      Host: 'mcp.example.com',
      Connection: 'keep-alive, X-Once',
      'X-Once': '1',
      'Keep-Alive': 'timeout=5',
      Authorization: 'Bearer secret',
      Cookie: 'a=b',
      'Content-Length': '12',
      'Transfer-Encoding': 'chunked',
      Expect: '100-continue',
      'Dragoman-Caller': 'forged',
      'Dragoman-Replica': 'forged',
      'Mcp-Session-Id': 'id',
      'Mcp-Param-Café': 'é',
      Accept: 'text/event-stream',
    }),
    'sealed',
  )
  const expected = ['dragoman-caller', 'sealed', 'mcp-session-id', 'id', 'mcp-param-café', 'é']
  expect(sent).toEqual([...expected, 'accept', 'text/event-stream'])
})

test('a response keeps its headers, without those of the connection between the replicas', () => {
  const passed = responseHeaders({
    'content-type': 'application/json',
    'mcp-session-id': 'id',
    'set-cookie': ['a', 'b'],
    connection: 'close',
    'transfer-encoding': 'chunked',
    'dragoman-replica': 'r1',
  })
  expect(passed).toEqual({ 'content-type': 'application/json', 'mcp-session-id': 'id', 'set-cookie': ['a', 'b'] })
})

const at = (address: string, internal = false) =>
  ({ address, internal, family: address.includes(':') ? 'IPv6' : 'IPv4' }) as NetworkInterfaceInfo
const loopback = { lo: [at('127.0.0.1', true), at('::1', true)] }
const machine = { ...loopback, eth0: [at('fe80::1'), at('2001:db8::5'), at('10.0.0.5')] }

test('the first address that is not loopback is announced', () => {
  expect(firstAddress(machine)).toBe('10.0.0.5')
  expect(firstAddress(loopback)).toBe('127.0.0.1')
  expect(firstAddress({ ...loopback, eth0: [at('fe80::1'), at('169.254.1.2'), at('2001:db8::5')] })).toBe('2001:db8::5')
  expect(clusterListen({}, machine)).toEqual({ host: '10.0.0.5', port: 0 })
})

test.each([
  [{}, { host: '10.0.0.5', port: 81 }, 'http://10.0.0.5:81'],
  [{}, { host: '0.0.0.0', port: 81 }, 'http://10.0.0.5:81'],
  [{}, { host: '2001:db8::5', port: 81 }, 'http://[2001:db8::5]:81'],
  [{ address: 'http://pod:9' }, { host: '0.0.0.0', port: 81 }, 'http://pod:9'],
  [{ tls: { cert: '', key: '', ca: '' } }, { host: '10.0.0.5', port: 81 }, 'https://10.0.0.5:81'],
])('the address of %j at %j is %s', (config, place, address) => {
  expect(clusterAddress(config, place, machine)).toBe(address)
})
