const LOOPBACK_V6 = '::1'
const GROUPS = 8
const PREFIX_GROUPS = 4

/** What counts as one remote address: an IPv4 address, or the /64 network of an IPv6 address, which is one customer's. */
export const networkOf = (address: string | undefined): string => {
  if (address === undefined) return 'unknown'
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!address.includes(':') || address === LOOPBACK_V6) return address
  const [head = '', tail = ''] = (address.split('%', 1)[0] ?? '').split('::')
  const [before, after] = [groupsOf(head), groupsOf(tail)]
  const zeros = new Array<string>(Math.max(0, GROUPS - before.length - after.length)).fill('0')
  return `${[...before, ...zeros, ...after].slice(0, PREFIX_GROUPS).join(':')}::/64`
}

const groupsOf = (text: string): string[] => text.split(':').filter(group => group !== '')

/** The owner that sessions, stream logs and rates count for: a principal, or the network of an anonymous caller. */
export const quotaOwner = (principal: string | undefined, address: string | undefined): string =>
  principal === undefined ? `@${networkOf(address)}` : `=${principal}`
