import { type LookupAddress, lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { isLoopbackAddress, isOwnAddress, isPrivateAddress } from '../../std/address.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { AddressRefused, type Destination } from '../../std/guarded-connector.ts'
import { isLoopback } from '../../std/host.ts'

/**
 * Which addresses a request may lead to. `configured`: any, because the configuration names its origin. Otherwise it depends on the
 * configured URL that led to it: one at a public address leads to public addresses only, a private one to any.
 * Only one that is written as `localhost` or a loopback address leads to `http:`, on loopback addresses: the owner of any other
 * name could point it to this machine for one lookup.
 */
export type FetchReach = 'configured' | 'loopback' | 'private' | 'public'

export interface ReachOptions {
  readonly ownPort?: (() => number | undefined) | undefined // where the gateway listens
  readonly lookup?: LookupFunction | undefined
  readonly isPrivate?: ((address: string) => boolean) | undefined // tests have no public addresses
}

const MOST_NAMES = 1000

/** Decides for each request how far it may reach. */
export class ReachRules {
  readonly #options: ReachOptions
  readonly #publicNames = new BoundedCache<true>(MOST_NAMES, Number.POSITIVE_INFINITY)

  constructor(options: ReachOptions) {
    this.#options = options
  }

  /** The reach of a request that the configured URL `from` led to; undefined: no configured URL did. */
  async reachOf(url: URL, from: string | undefined): Promise<FetchReach> {
    if (from === undefined) return 'public'
    const configured = new URL(from)
    return url.origin === configured.origin ? 'configured' : this.#reachOfHost(configured.hostname)
  }

  /** Why the gateway does not connect there; undefined if it does. */
  refusal(reach: FetchReach, { address, port, protocol }: Destination): AddressRefused | undefined {
    if (reach === 'configured') return undefined
    if (reach === 'public' && this.#isPrivate(address)) return new AddressRefused(`has the private address ${address}`)
    if (protocol === 'http:' && !isLoopbackAddress(address)) return new AddressRefused('is not encrypted (use https:)')
    const isSelf = port !== undefined && port === this.#options.ownPort?.() && isOwnAddress(address)
    return isSelf ? new AddressRefused('is the address of this gateway itself') : undefined
  }

  /** A name that was public once stays so: its owner could otherwise point it to this machine later. */
  async #reachOfHost(hostname: string): Promise<FetchReach> {
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    if (this.#publicNames.get(host)) return 'public'
    const addresses = isIP(host) > 0 ? [host] : await this.#lookup(host)
    if (addresses.length > 0 && addresses.every(address => this.#isPrivate(address)))
      return isLoopback(hostname) ? 'loopback' : 'private'
    if (addresses.length > 0) this.#publicNames.set(host, true)
    return 'public'
  }

  #lookup(host: string): Promise<string[]> {
    const find = this.#options.lookup ?? (lookup as LookupFunction)
    return new Promise(resolve =>
      find(host, { all: true }, (error, found) =>
        resolve(error ? [] : (found as LookupAddress[]).map(({ address }) => address)),
      ),
    )
  }

  #isPrivate(address: string): boolean {
    return (this.#options.isPrivate ?? isPrivateAddress)(address)
  }
}
