import { type LookupAddress, lookup } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { buildConnector } from 'undici'

/** The code of an error that the gateway itself raises for an address it must not connect to. */
export const ADDRESS_REFUSED = 'ADDRESS_REFUSED'

/** A connection that the gateway does not open. */
export class AddressRefused extends Error {
  readonly code = ADDRESS_REFUSED
}

/** Where a connection would lead. While a name is looked up, only the address is known. */
export interface Destination {
  readonly address: string
  readonly port?: number
  readonly protocol?: string // `http:` or `https:`
}

interface GuardedConnectorOptions {
  readonly connectMs: number
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string } | undefined // PEM texts
  /** Why the gateway does not connect there; undefined if it does. */
  readonly refusalOf: (to: Destination) => AddressRefused | undefined
  readonly onConnected?: (origin: string, socket: Socket) => void
  readonly lookup?: LookupFunction | undefined
}

/**
 * Opens connections for undici, and checks each address three times: written in the URL, found for a name, and connected
 * to. A name whose addresses change in between leads nowhere else.
 */
export const buildGuardedConnector = (options: GuardedConnectorOptions): buildConnector.connector => {
  const { connectMs, tls, refusalOf, onConnected, lookup: find = lookup as LookupFunction } = options

  const guardedLookup: LookupFunction = (hostname, lookupOptions, callback) =>
    find(hostname, { ...lookupOptions, all: true }, (error, addresses) => {
      if (error) return callback(error, '')
      const found = addresses as LookupAddress[]
      const refused = found.map(({ address }) => refusalOf({ address })).find(refusal => refusal)
      if (refused) return callback(refused, '')
      const [first] = found as [LookupAddress]
      if (lookupOptions.all) callback(null, found)
      else callback(null, first.address, first.family)
    })

  const connect = buildConnector({ timeout: connectMs, lookup: guardedLookup, ...tls })
  return (target, callback) => {
    const { protocol } = target
    const host = target.hostname.replace(/^\[(.*)\]$/, '$1')
    const port = Number(target.port) || (protocol === 'https:' ? 443 : 80)
    const early = isIP(host) > 0 ? refusalOf({ protocol, address: host, port }) : undefined // an IP address is not looked up
    if (early) return callback(early, null)
    connect(target, (...[error, socket]) => {
      if (error) return callback(error, null)
      const refusal = refusalOf({ protocol, address: socket.remoteAddress ?? '', port })
      if (refusal) {
        socket.destroy()
        return callback(refusal, null)
      }
      onConnected?.(`${protocol}//${target.host ?? host}`, socket)
      callback(null, socket)
    })
  }
}
