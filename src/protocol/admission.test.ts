import { expect, it } from 'vitest'
import { networkOf, quotaOwner } from './admission.ts'

it.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::1', '::1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::5:6', '2001:db8:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  [undefined, 'unknown'],
])('%s counts as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

it('anonymous callers of one IPv6 /64 network count as one owner; a principal counts as itself at every address', () => {
  const ownerAt = (address: string, principal?: string): string => quotaOwner(principal, address)
  expect(ownerAt('2001:db8:1:2::1')).toBe(ownerAt('2001:db8:1:2:ffff::7'))
  expect(ownerAt('2001:db8:1:2::1')).not.toBe(ownerAt('2001:db8:1:3::1'))
  expect(ownerAt('192.0.2.1')).not.toBe(ownerAt('192.0.2.2'))
  expect(ownerAt('192.0.2.1', 'ana')).toBe(ownerAt('2001:db8::1', 'ana'))
})
