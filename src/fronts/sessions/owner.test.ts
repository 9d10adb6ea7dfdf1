import { expect, test } from 'vitest'
import type { FrontRequest } from '../http/front-request.ts'
import { quotaOwner } from './owner.ts'

const ownerAt = (remoteAddress: string, principal?: string): string =>
  quotaOwner({ principal, request: { socket: { remoteAddress } } as FrontRequest['request'] })

test('anonymous callers of one IPv6 /64 network count as one owner; a principal counts as itself at every address', () => {
  expect(ownerAt('2001:db8:1:2::1')).toBe(ownerAt('2001:db8:1:2:ffff::7'))
  expect(ownerAt('2001:db8:1:2::1')).not.toBe(ownerAt('2001:db8:1:3::1'))
  expect(ownerAt('192.0.2.1')).not.toBe(ownerAt('192.0.2.2'))
  expect(ownerAt('192.0.2.1', 'ana')).toBe(ownerAt('2001:db8::1', 'ana'))
})
