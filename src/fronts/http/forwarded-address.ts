import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Listen } from '../../config/snapshot.ts'
import { setClientAddress } from '../../protocol/admission.ts'
import { isPrivateAddress, matchAddresses } from '../../std/address.ts'
import type { Log } from '../../telemetry/log.ts'

const UNLISTED =
  'requests come through a proxy that is not listed in listen.trustedProxies: limits per address count all its clients as one'

/**
 * Notes at a request behind a proxy which client it is from, for `clientAddressOf`. `X-Forwarded-For` counts only from a proxy
 * of the configuration: any client can send it. A proxy with a private address that is not listed is logged once.
 */
export const createClientAddressNoter = (
  { trustedProxies, publicUrl }: Pick<Listen, 'trustedProxies' | 'publicUrl'>,
  log: Log,
): ((request: IncomingMessage) => void) => {
  const isTrusted = matchAddresses(trustedProxies)
  let mayWarn = publicUrl !== undefined // only then the gateway is meant to have a proxy

  return request => {
    const { 'x-forwarded-for': forwarded } = request.headers
    const { remoteAddress: peer } = request.socket
    if (forwarded === undefined || peer === undefined) return
    if (isTrusted(peer)) {
      const client = clientIn(String(forwarded), isTrusted)
      if (client !== undefined) setClientAddress(request, client)
    } else if (mayWarn && isPrivateAddress(peer)) {
      mayWarn = false
      log.warn({ address: peer }, UNLISTED)
    }
  }
}

/**
 * Each proxy appends the address that it was reached from, so that only the last ones are certain: the client is the last one
 * that is no proxy.
 */
const clientIn = (forwarded: string, isTrusted: (address: string) => boolean): string | undefined => {
  let client: string | undefined
  for (const entry of forwarded.split(',').reverse()) {
    const address = addressIn(entry.trim())
    if (address === undefined) return client
    client = address
    if (!isTrusted(address)) return client
  }
  return client
}

/** Some proxies add the port. */
const addressIn = (entry: string): string | undefined => {
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry
  return isIP(address) === 0 ? undefined : address
}
