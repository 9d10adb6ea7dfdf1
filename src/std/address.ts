import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

type Ranges = readonly (readonly [network: string, bits: number])[]

/** IPv4 ranges that are not the public Internet. */
const PRIVATE_V4: Ranges = [
  ['0.0.0.0', 8], // this host
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // carriers and overlay networks
  ['127.0.0.0', 8],
  ['169.254.0.0', 16], // link-local, and the metadata service of cloud providers
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15], // measurements between networks
  ['224.0.0.0', 3], // multicast, reserved, broadcast
]

/** IPv6 ranges that are not the public Internet. */
const PRIVATE_V6: Ranges = [
  ['::', 96], // unspecified, loopback, and IPv4 addresses in a form that is no longer used
  ['::ffff:0:0:0', 96], // translated IPv4 addresses
  ['64:ff9b:1::', 48], // local translation to IPv4
  ['2001::', 32], // tunnels that carry an IPv4 address
  ['2002::', 16],
  ['fc00::', 7], // unique local
  ['fe80::', 9], // link-local and site-local
  ['ff00::', 8],
]

/** Names of the public Internet have addresses with this prefix in networks without IPv4: an IPv4 address follows it. */
const TRANSLATED = '64:ff9b::'
const PRIVATE: Ranges = [
  ...PRIVATE_V4,
  ...PRIVATE_V6,
  ...PRIVATE_V4.map(([network, bits]) => [TRANSLATED + network, 96 + bits] as const),
]

const LOOPBACK: Ranges = [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['::', 127],
]

/** Makes the list with its first use: a start needs none, and compiles no expression for IPv6 addresses. */
const listOf = (ranges: Ranges): (() => BlockList) => {
  let list: BlockList | undefined
  const make = (): BlockList => {
    const made = new BlockList()
    for (const [network, bits] of ranges) made.addSubnet(network, bits, familyOf(network))
    return made
  }
  return () => (list ??= make())
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')
const [privateList, loopbackList] = [listOf(PRIVATE), listOf(LOOPBACK)]

/** True for this machine, the local network and every other address outside the public Internet. */
export const isPrivateAddress = (address: string): boolean => {
  const plain = withoutZone(address)
  return isIP(plain) === 0 || privateList().check(plain, familyOf(plain))
}

export const isLoopbackAddress = (address: string): boolean => {
  const plain = withoutZone(address)
  return loopbackList().check(plain, familyOf(plain))
}

/** True for the loopback addresses and those of this machine's network interfaces. */
export const isOwnAddress = (address: string): boolean => {
  const plain = withoutZone(address)
  if (isLoopbackAddress(plain)) return true
  const own = Object.values(networkInterfaces()).flatMap(some => some ?? [])
  return own.some(entry => plain === entry.address || plain === `::ffff:${entry.address}`)
}

/** Whether a text is an address, or a network like "10.0.0.0/8". */
export const isNetwork = (text: string): boolean => {
  const [address = '', bits = '0', ...more] = text.split('/')
  const family = isIP(address)
  return family !== 0 && more.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
}

/** Whether an address is one of these, or in one of these networks, like "10.0.0.0/8"; IPv4 also in its form as IPv6. */
export const matchAddresses = (networks: readonly string[]): ((address: string) => boolean) => {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    if (bits === undefined) list.addAddress(address, familyOf(address))
    else list.addSubnet(address, Number(bits), familyOf(address))
  }
  return address => networks.length > 0 && list.check(withoutZone(address), familyOf(address))
}

const withoutZone = (address: string): string => address.replace(/%.*$/, '')
