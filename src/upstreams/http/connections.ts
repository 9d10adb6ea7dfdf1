import { type LookupAddress, lookup } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { isOwnAddress, isPrivate } from './address.ts'
import { ADDRESS_REFUSED } from './http-failures.ts'

/**
 * Which addresses a request may connect to. The configuration may name any address. A redirect or an endpoint on another
 * origin never leads to the gateway's own port (`elsewhere`), and from a public server to public addresses only (`public`).
 */
export type AddressScope = 'configured' | 'elsewhere' | 'public'

/** A connection that a server asked for and the gateway does not open. */
export class AddressRefused extends Error {
  readonly code = ADDRESS_REFUSED
}

export interface ConnectionOptions {
  readonly connectMs: number
  readonly ownPort?: (() => number | undefined) | undefined // where the gateway listens
  readonly isPrivate?: ((address: string) => boolean) | undefined // tests have no public addresses
}

/** Opens connections within each reach, and knows which origins turned out to be public. */
export class Connections {
  readonly #options: ConnectionOptions
  readonly #agents = new Map<AddressScope, Agent>()
  readonly #streams = new Map<AddressScope, Agent>()
  readonly #publicOrigins = new Set<string>()

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  /** The pool of connections for a reach. Streams have one of their own: a pool looks through all its busy connections. */
  agent(reach: AddressScope, isStream: boolean): Agent {
    const agents = isStream ? this.#streams : this.#agents
    const known = agents.get(reach)
    if (known) return known
    const agent = this.#create(reach)
    agents.set(reach, agent)
    return agent
  }

  /** How far a server at that origin may send us. */
  from(origin: string): AddressScope {
    return this.#publicOrigins.has(origin) ? 'public' : 'elsewhere'
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#agents.values(), ...this.#streams.values()].map(agent => agent.destroy()))
  }

  #create(reach: AddressScope): Agent {
    const connect = buildConnector({ timeout: this.#options.connectMs, lookup: this.#lookup(reach) })
    const guarded: buildConnector.connector = (options, callback) => {
      const host = options.hostname.replace(/^\[(.*)\]$/, '$1')
      const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80)
      const early = isIP(host) > 0 ? this.#refusal(reach, host, port) : undefined // an address is not looked up
      if (early) return callback(early, null)
      connect(options, (...[error, socket]) => {
        if (error) return callback(error, null)
        const refusal = this.#refusal(reach, socket.remoteAddress ?? '', port)
        if (!refusal) this.#note(`${options.protocol}//${options.host ?? host}`, socket)
        else socket.destroy()
        if (refusal) callback(refusal, null)
        else callback(null, socket)
      })
    }
    // Silence is ours to judge (SilenceWatch), so the client keeps no timers for it.
    return new Agent({ connect: guarded, headersTimeout: 0, bodyTimeout: 0 })
  }

  #note(origin: string, { remoteAddress }: Socket): void {
    if (remoteAddress !== undefined && !this.#isPrivate(remoteAddress)) this.#publicOrigins.add(origin)
  }

  #lookup(reach: AddressScope): LookupFunction {
    return (hostname, options, callback) =>
      lookup(hostname, { ...options, all: true }, (error, found) => {
        if (error) return callback(error, '')
        const refused = found.map(({ address }) => this.#refusal(reach, address)).find(refusal => refusal)
        if (refused) return callback(refused, '')
        const [first] = found as [LookupAddress]
        if (options.all) callback(null, found)
        else callback(null, first.address, first.family)
      })
  }

  #isPrivate(address: string): boolean {
    return (this.#options.isPrivate ?? isPrivate)(address)
  }

  #refusal(reach: AddressScope, address: string, port?: number): AddressRefused | undefined {
    if (reach === 'configured') return undefined
    if (reach === 'public' && this.#isPrivate(address))
      return new AddressRefused(
        `redirected from a public server to the private address ${address}, which the gateway does not allow`,
      )
    const isSelf = port !== undefined && port === this.#options.ownPort?.() && isOwnAddress(address)
    return isSelf ? new AddressRefused('sent us to the address of this gateway itself') : undefined
  }
}
