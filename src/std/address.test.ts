import { networkInterfaces } from 'node:os'
import { describe, expect, it } from 'vitest'
import { isOwnAddress, isPrivateAddress } from './address.ts'

describe('an address', () => {
  it.each([
    ...['127.0.0.1', '127.9.9.9', '0.0.0.0', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ...['169.254.169.254', '100.100.100.100', '198.18.0.1', '224.0.0.1', '255.255.255.255'],
    ...['::', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', 'fe80::1', 'fe80::1%eth0', 'fec0::1'],
    ...['::127.0.0.1', '::ffff:0:10.0.0.1', '64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::1'],
    ...['fc00::1', 'fd12:3456::1', 'fd00:ec2::254', 'ff02::1', '2002:7f00:1::', 'no address'],
  ])('%s is private', address => {
    expect(isPrivateAddress(address)).toBe(true)
  })

  it.each(['1.1.1.1', '8.8.8.8', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '::ffff:1.1.1.1', '64:ff9b::1.1.1.1'])(
    '%s is public',
    address => {
      expect(isPrivateAddress(address)).toBe(false)
    },
  )

  it('is our own on loopback and on every interface', () => {
    const addresses = Object.values(networkInterfaces()).flatMap(some => (some ?? []).map(({ address }) => address))
    for (const address of [...addresses, '127.0.0.1', '127.0.0.2', '::1', '0.0.0.0', '::ffff:127.0.0.1'])
      expect(isOwnAddress(address)).toBe(true)
    for (const address of ['1.1.1.1', '2606:4700::1111']) expect(isOwnAddress(address)).toBe(false)
  })
})
