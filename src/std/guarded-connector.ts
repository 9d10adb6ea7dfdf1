import { type LookupAddress, lookup } from 'node:dns'
import { connect, isIP, type LookupFunction, type OnReadOpts, Socket } from 'node:net'

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

export interface GuardedConnectorOptions {
  readonly connectMs: number
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string } | undefined // PEM texts
  /** Why the gateway does not connect there; undefined if it does. */
  readonly refusalOf: (to: Destination) => AddressRefused | undefined
  readonly onConnected?: (origin: string, socket: Socket) => void
  readonly lookup?: LookupFunction | undefined
}

const TCP_KEEP_ALIVE_MS = 60_000 // of silence, then the operating system checks the connection

/** Opens a TCP connection, whose bytes `onread` gets. The callback is called once, not before the function returns. */
export type GuardedSocketConnector = (url: URL, onread: OnReadOpts, callback: (error?: Error) => void) => Socket

/** Checks each address three times: written in the URL, found for a name, and connected to. */
export const guardOf = ({
  refusalOf,
  onConnected,
  lookup: find = lookup as LookupFunction,
}: GuardedConnectorOptions) => {
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

  return {
    lookup: guardedLookup,
    /** An IP address is not looked up. */
    refusalOfHost: (protocol: string, host: string, port: number) =>
      isIP(host) > 0 ? refusalOf({ protocol, address: host, port }) : undefined,
    refusalOfConnection: (protocol: string, authority: string, port: number, socket: Socket) => {
      const refusal = refusalOf({ protocol, address: socket.remoteAddress ?? '', port })
      if (!refusal) onConnected?.(`${protocol}//${authority}`, socket)
      return refusal
    },
  }
}

export const withoutBrackets = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** Opens TCP connections to allowed addresses only, for HTTP without TLS. A name whose addresses change in between leads nowhere else. */
export const buildGuardedSocketConnector = (options: GuardedConnectorOptions): GuardedSocketConnector => {
  const guard = guardOf(options)
  const { connectMs } = options
  return ({ protocol, hostname, host, port: portText }, onread, callback) => {
    const name = withoutBrackets(hostname)
    const port = Number(portText) || 80
    const early = guard.refusalOfHost(protocol, name, port)
    const socket = early
      ? new Socket().destroy(early)
      : connect({ host: name, port, lookup: guard.lookup, onread, noDelay: true })
    const timer = setTimeout(() => socket.destroy(new ConnectTimeout(name, port, connectMs)), connectMs)
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS)
    socket.once('close', () => clearTimeout(timer))
    socket.once('error', callback)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.off('error', callback)
      const refusal = guard.refusalOfConnection(protocol, host, port, socket)
      if (refusal) socket.destroy()
      callback(refusal)
    })
    return socket
  }
}

/** A server that did not accept a connection in time, with the code that undici gives it. */
class ConnectTimeout extends Error {
  readonly code = 'UND_ERR_CONNECT_TIMEOUT'

  constructor(host: string, port: number, ms: number) {
    super(`Connect Timeout Error (attempted address: ${host}:${port}, timeout: ${ms}ms)`)
  }
}
